-- What is let go after it became a run (overlap, held, deleted) is said by the run; nobody ever wrote these here.
alter table skipped_range
drop constraint skipped_range_reason,
add constraint skipped_range_reason check (reason in ('missed', 'paused', 'disabled', 'excluded'));
