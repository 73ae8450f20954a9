-- What may hold secrets can be sealed: bodies of `specs` and `fetched`, requests, and what the cloud
-- said when it refused. Where `key_id` is null, nothing is.
--
-- In a sealed state digests of specs and observations are masked, and `url` is a keyed name: a
-- guess can't be compared with them.

-- Which key opens what is sealed, and how a passphrase makes it.
ALTER TABLE meta ADD COLUMN key_id BLOB CHECK (length(key_id) = 8);
ALTER TABLE meta ADD COLUMN derivation TEXT;
-- Whether unused parts of the file may hold what was there before it was sealed.
ALTER TABLE meta ADD COLUMN unscrubbed INTEGER NOT NULL DEFAULT 0 CHECK (unscrubbed IN (0, 1));
-- Grows with each writer. Who began to write under an older number may not go on.
ALTER TABLE meta ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;

-- In a sealed state, a result that isn't one word and the detail; then `result` and `detail` are
-- empty.
ALTER TABLE history ADD COLUMN sealed BLOB;
-- In a sealed state, the message; then `message` is null.
ALTER TABLE journal ADD COLUMN sealed_message BLOB;

-- Specs of records that were changed by hand: undoing that takes them.
CREATE TABLE kept (
    apply_id INTEGER NOT NULL REFERENCES applies (id) ON DELETE CASCADE,
    spec_id INTEGER NOT NULL REFERENCES specs (id),
    PRIMARY KEY (apply_id, spec_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_by_spec ON kept (spec_id);
