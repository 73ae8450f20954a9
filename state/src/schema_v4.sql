-- A rollout applies a plan in steps, possibly in several runs. Only the latest is kept. In a sealed
-- state `plan`, `detail` and `body` are sealed.

CREATE TABLE rollouts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    plan_digest TEXT,
    status TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    -- When the plan was stored. Null without a plan, as are its length and its zlib stream.
    planned_at INTEGER,
    size INTEGER,
    plan BLOB,
    CHECK ((plan IS NULL) = (size IS NULL)),
    CHECK ((plan IS NULL) = (planned_at IS NULL))
) STRICT;

CREATE TABLE rollout_groups (
    rollout_id INTEGER NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
    group_name TEXT NOT NULL,
    stage TEXT NOT NULL,
    since INTEGER NOT NULL,
    detail BLOB NOT NULL,
    PRIMARY KEY (rollout_id, group_name)
) STRICT;

CREATE TABLE rollout_slots (
    rollout_id INTEGER NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
    address TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    stage TEXT NOT NULL,
    since INTEGER NOT NULL,
    detail BLOB NOT NULL,
    PRIMARY KEY (rollout_id, address, instance_id)
) STRICT;

-- What other processes ask the running one to do. Nothing in it is sealed.
CREATE TABLE rollout_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_name TEXT,
    kind TEXT NOT NULL,
    who TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- What the last successful rollout of a group left.
CREATE TABLE last_good (
    group_name TEXT NOT NULL PRIMARY KEY,
    size INTEGER NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL
) STRICT;
