-- name: oldest_due
-- Since when the due run waits that waits longest: planned and held back by nobody, its tenant within its share, or in the queue.
-- A run is never due before it is scheduled, which keeps the query out of the partitions ahead.
select min(waiting.next_attempt_at) as since
from (
    select due.next_attempt_at
    from tenants_with_planned_runs(:now) as owing (tenant_id)
    inner join tenant as t on owing.tenant_id = t.id
    left join tenant_load as load on owing.tenant_id = load.tenant_id
    cross join lateral (
        select count(*) as runs from job_run as r where r.state = 'queued' and r.tenant_id = owing.tenant_id
    ) as queued
    cross join lateral (
        select r.next_attempt_at
        from job_run as r
        -- Row by row, as in dispatch.find_planned.
        cross join lateral (
            select held_by_schedule(r.trigger, r.redelivered_at, r.scheduled_for, s.status, s.held_until, :now) as held
            from schedule as s
            where s.id = r.schedule_id
            offset 0
        ) as its_schedule
        where r.tenant_id = owing.tenant_id
            and r.state = 'planned'
            and r.held_by is null
            and r.scheduled_for <= :now
            and r.next_attempt_at <= :now
            and not its_schedule.held
        order by r.next_attempt_at
        limit 1
    ) as due
    where t.status <> 'suspended'
        and queued.runs < cast(:tenant_queued as bigint)
        and coalesce(load.in_flight, 0) < cast(:tenant_concurrency as integer)
    union all
    (
        select r.next_attempt_at
        from job_run as r
        where r.state = 'queued' and r.scheduled_for <= :now and r.next_attempt_at <= :now
        order by r.next_attempt_at
        limit 1
    )
) as waiting

-- name: calendars_behind
-- How long the calendar waits that should have been planned first, those under a lock included; and how many wait for a person.
select
    min(next_fire_at) filter (where set_aside_at is null and next_fire_at <= :now) as since,
    count(*) filter (where set_aside_at is not null) as set_aside
from calendar
where next_fire_at <= :now or set_aside_at is not null

-- name: last_day
-- The last day that has a partition.
select max(to_date(right(c.relname, 8), 'YYYYMMDD')) as day
from pg_inherits as i
inner join pg_class as c on i.inhrelid = c.oid
where i.inhparent = cast('job_run' as regclass)

-- name: endpoints_open
-- Tenants' endpoints that get nothing but probes at this moment.
select count(*) as endpoints from endpoint where state <> 'closed'
