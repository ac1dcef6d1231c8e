-- Whether a turn is held is said by its run as it is, not as the statement's snapshot has it: a run that was made and claimed since
-- the statement began is in no snapshot of before, and its turn was taken for one that nobody holds.
alter function holds_turn(uuid, timestamptz, integer) volatile;
