-- The cache of observations that were compared with their records and found equal: one row. It was
-- a row of `fetched` under a name that is no URL. A sealed state hides that name, so there the next
-- writer of the cache removes the old row.

CREATE TABLE observation_cache (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    size INTEGER NOT NULL,
    body BLOB NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

DELETE FROM fetched WHERE url = 'nstance:familiar';
