-- The sweep, which looks at all queued runs, reads it as well as one by time: how long a run may wait depends on its sends.
drop index job_run_queued;
create index job_run_queued on job_run (tenant_id, next_attempt_at) where state = 'queued';
