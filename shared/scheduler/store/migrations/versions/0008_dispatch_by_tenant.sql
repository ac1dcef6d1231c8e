-- Dispatch reads each tenant's planned runs by themselves, oldest first: a page costs what it returns, whatever the backlog.
drop index job_run_planned;
create index job_run_planned on job_run (tenant_id, next_attempt_at, id) where state = 'planned' and held_by is null;

-- Whether a run waits for its schedule: paused, disabled, or paused until a time that holds what was due before it. What a
-- person asked for is held by none of these. Inlined where it is called.
create function held_by_schedule(
    trigger text,
    redelivered_at timestamptz,
    scheduled_for timestamptz,
    status text,
    held_until timestamptz,
    at timestamptz
) returns boolean immutable parallel safe language sql
return trigger = 'schedule'
    and redelivered_at is null
    and (status in ('paused', 'disabled') or coalesce(held_until > at and scheduled_for < held_until, false));

-- The tenants that have planned runs scheduled up to then, found by leaping from one to the next in the index. A run is never due
-- before it is scheduled: that bound keeps the search out of the partitions ahead.
create function tenants_with_planned_runs(scheduled_through timestamptz) returns setof uuid stable language sql
begin atomic
with recursive found as (
    select cast('00000000-0000-0000-0000-000000000000' as uuid) as tenant_id
    union all
    select following.tenant_id
    from found
    cross join lateral (
        select r.tenant_id
        from job_run as r
        where r.tenant_id > found.tenant_id
            and r.state = 'planned'
            and r.held_by is null
            and r.scheduled_for <= scheduled_through
        order by r.tenant_id
        limit 1
    ) as following
)

select found.tenant_id from found where found.tenant_id <> '00000000-0000-0000-0000-000000000000';
end;
