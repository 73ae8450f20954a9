-- Where the state is now, if it was moved to another place. It is only read here.
ALTER TABLE meta ADD COLUMN moved_to TEXT;
