-- Times are milliseconds since the epoch. Blobs named `body` and `request` are zlib streams;
-- `size` is their length before.

CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    cluster TEXT NOT NULL,
    shard TEXT NOT NULL,
    provider TEXT NOT NULL,
    lineage TEXT NOT NULL,
    serial INTEGER NOT NULL CHECK (serial >= 0),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- One row however many instances share it. Referred to by number, to keep their rows narrow.
CREATE TABLE specs (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    size INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE instances (
    instance_id TEXT NOT NULL PRIMARY KEY,
    provider_id TEXT NOT NULL UNIQUE,
    group_id INTEGER NOT NULL REFERENCES groups (id),
    slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 4294967295),
    deposed INTEGER NOT NULL CHECK (deposed IN (0, 1)),
    generation INTEGER NOT NULL CHECK (generation >= 0),
    kind TEXT NOT NULL,
    spec_id INTEGER NOT NULL REFERENCES specs (id),
    observed BLOB CHECK (length(observed) = 32),
    zone TEXT NOT NULL,
    subnet TEXT,
    ip4 TEXT,
    ip6 TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    attributes TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT;

-- Finds all instances of a slot, and lets only one of them be live.
CREATE UNIQUE INDEX instances_by_slot
    ON instances (group_id, slot, CASE deposed WHEN 0 THEN '' ELSE instance_id END);
-- Without these, dropping one spec would read all instances to see that none refers to it.
CREATE INDEX instances_by_spec ON instances (spec_id);

-- The newest generation of a slot, where no instance of the slot has it (any more).
CREATE TABLE generations (
    group_id INTEGER NOT NULL REFERENCES groups (id),
    slot INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (group_id, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE applies (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    who TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    operation TEXT NOT NULL,
    serial_before INTEGER NOT NULL,
    serial_after INTEGER,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    plan_digest TEXT
) STRICT;

CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    apply_id INTEGER NOT NULL REFERENCES applies (id) ON DELETE CASCADE,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    before_instance_id TEXT,
    before_provider_id TEXT,
    after_instance_id TEXT,
    after_provider_id TEXT,
    result TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX history_by_apply ON history (apply_id);

-- What was intended. Open until `closed_at` is set; then the request and the spec are let go.
CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    apply_id INTEGER REFERENCES applies (id) ON DELETE SET NULL,
    address TEXT NOT NULL,
    group_name TEXT NOT NULL,
    slot INTEGER NOT NULL,
    operation TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    provider_id TEXT,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    token TEXT NOT NULL,
    spec_id INTEGER REFERENCES specs (id),
    size INTEGER,
    request BLOB,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    outcome TEXT,
    message TEXT,
    CHECK ((closed_at IS NULL) = (outcome IS NULL)),
    CHECK ((closed_at IS NULL) = (request IS NOT NULL))
) STRICT;

CREATE INDEX journal_open ON journal (group_name, slot) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX journal_token ON journal (token)
    WHERE closed_at IS NULL AND operation = 'create';
CREATE INDEX journal_by_apply ON journal (apply_id);
CREATE INDEX journal_by_spec ON journal (spec_id) WHERE spec_id IS NOT NULL;

CREATE TABLE images (
    name TEXT NOT NULL PRIMARY KEY,
    query_digest TEXT NOT NULL,
    image_id TEXT NOT NULL,
    source TEXT NOT NULL,
    resolved_at INTEGER NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE TABLE fetched (
    url TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    body BLOB NOT NULL,
    fetched_at INTEGER NOT NULL
) STRICT;
