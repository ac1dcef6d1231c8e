-- name: make_one
-- A run at the first of these instants that has none yet.
insert into job_run (
    id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at, schedule_version, tzdata_version, trigger, created_at
)
select
    cast(o.id_prefix || substr(cast(s.id as text), 16) as uuid),
    s.id,
    o.scheduled_for,
    s.tenant_id,
    'planned',
    o.scheduled_for,
    o.scheduled_for,
    s.version,
    :tzdata_version,
    'manual',
    :now
from schedule as s
cross join unnest(cast(:instants as timestamptz []), cast(:id_prefixes as text [])) as o (scheduled_for, id_prefix)
where s.id = :id
    and not exists (select from job_run as r where r.schedule_id = s.id and r.scheduled_for = o.scheduled_for)
order by o.scheduled_for
limit 1
returning id

-- name: count_missing
-- How many of these instants have no run.
select count(*) as missing
from unnest(cast(:instants as timestamptz [])) as o (scheduled_for)
where not exists (select from job_run as r where r.schedule_id = :id and r.scheduled_for = o.scheduled_for)

-- name: make_missing
-- Runs of the past, due now; an instant that has a run keeps it.
insert into job_run (
    id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at, schedule_version, tzdata_version, trigger, created_at
)
select
    cast(o.id_prefix || substr(cast(s.id as text), 16) as uuid),
    s.id,
    o.scheduled_for,
    s.tenant_id,
    'planned',
    :now,
    :now,
    s.version,
    :tzdata_version,
    'backfill',
    :now
from schedule as s
cross join unnest(cast(:instants as timestamptz []), cast(:id_prefixes as text [])) as o (scheduled_for, id_prefix)
where s.id = :id
on conflict (schedule_id, scheduled_for) do nothing

-- name: calendar
-- The schedule's calendar, held still as by any change.
select c.id, c.kind, c.expression, c.timezone, c.gap, c.overlap, c.anchor, c.excluded_dates, c.on_excluded, c.planned_through
from calendar as c
where c.id = (
    select s.calendar_id from schedule as s where s.id = :id and s.tenant_id = :tenant_id and s.status <> 'deleted'
)
for share

-- name: lock
-- Behind its calendar; nothing where the schedule is gone, or has another calendar by now.
select s.version
from schedule as s
where s.id = :id and s.tenant_id = :tenant_id and s.status <> 'deleted' and s.calendar_id = :calendar_id
for no key update

-- name: days_there
-- The first day that has a partition: older runs have nowhere to be.
with partition as materialized (
    select c.relname as name
    from pg_inherits as i
    inner join pg_class as c on i.inhrelid = c.oid
    where i.inhparent = cast('job_run' as regclass)
)

select min(to_date(right(partition.name, 8), 'YYYYMMDD')) as first_day
from partition
