-- name: make_partitions
select make_partitions(cast(:first_day as date), cast(:last_day as date)) as made

-- name: days_before
-- The days that have partitions and lie wholly before :first_kept, oldest first.
-- The names are read first and by themselves: other tables' names are no dates.
with partition as materialized (
    select c.relname as name
    from pg_inherits as i
    inner join pg_class as c on i.inhrelid = c.oid
    where i.inhparent = cast('job_run' as regclass)
)

select to_date(right(partition.name, 8), 'YYYYMMDD') as day
from partition
where to_date(right(partition.name, 8), 'YYYYMMDD') < cast(:first_kept as date)
order by 1

-- name: forget_endpoints
-- A row says what failed: it goes when the endpoint has been well for a day, or when no schedule posts to it any more.
with forgotten as (
    select e.tenant_id, e.origin
    from endpoint as e
    where e.window_started_at <= cast(:now as timestamptz) - interval '1 day'
        and (
            (e.state = 'closed' and e.failing_since is null)
            or not exists (
                select from schedule as s where s.tenant_id = e.tenant_id and s.origin = e.origin and s.status <> 'deleted'
            )
        )
    order by e.tenant_id, e.origin
    for update of e skip locked
)

delete from endpoint as e
using forgotten as f
where e.tenant_id = f.tenant_id and e.origin = f.origin

-- name: bound_wait
set local lock_timeout = '2s'

-- name: expire_day
-- What is still unfinished after the whole retention ends here, with its event: no run leaves without a recorded outcome.
with ended as (
    update job_run as r
    set state = 'failed', reason = 'expired', lease_until = null, ended_at = :now
    where r.scheduled_for >= cast(cast(:day as date) as timestamp) at time zone 'UTC'
        and r.scheduled_for < cast(cast(:day as date) + 1 as timestamp) at time zone 'UTC'
        and r.state in ('planned', 'queued', 'delivering')
    returning r.id, r.schedule_id, r.tenant_id, r.scheduled_for, r.attempt
)

insert into outbox (id, type, tenant_id, detail, created_at)
select
    gen_random_uuid(),
    'schedule.run.failed',
    ended.tenant_id,
    jsonb_build_object(
        'schedule_id', ended.schedule_id, 'run_id', ended.id, 'scheduled_for', ended.scheduled_for,
        'attempt', ended.attempt, 'reason', 'expired'
    ),
    :now
from ended

-- name: drop_day
-- DROP, not DETACH CONCURRENTLY: a killed concurrent detach blocks all later ones.
select drop_partitions(cast(:day as date))
