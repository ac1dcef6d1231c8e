-- name: claim_outdated
-- Calendars that were last planned with older time zone data, whether due or not.
select
    id, kind, expression, timezone, gap, overlap, anchor, excluded_dates, on_excluded, planned_through, next_fire_at,
    utc_offset, set_aside_at
from calendar
where tzdata_version < :tzdata_version
    and set_aside_at is null
    and retired_at is null
    and id <> all(cast(:left_alone as bigint []))
order by id
limit :most
for no key update skip locked

-- name: planned_later
-- The distinct times later than :now for which these calendars' schedules have runs. Only active ones do.
select s.calendar_id, r.scheduled_for
from schedule as s
inner join job_run as r on s.id = r.schedule_id
where s.calendar_id = any(cast(:calendar_ids as bigint []))
    and s.status = 'active'
    and r.scheduled_for > :now
    and r.trigger = 'schedule'
group by s.calendar_id, r.scheduled_for

-- name: take_back
-- Runs of a calendar's schedules that are later than :after, were never claimed and are at none of the :kept times; given back
-- to their schedules' limits.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join schedule as s on r.schedule_id = s.id
    where s.calendar_id = :calendar_id
        and s.status = 'active'
        and r.scheduled_for > :after
        and r.scheduled_for <> all(cast(:kept as timestamptz []))
        and r.trigger = 'schedule'
        and r.attempt = 0
        and r.state in ('planned', 'queued')
    order by r.id
    for update of r
),

dropped as (
    delete from job_run as r
    using seen
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for
    returning r.schedule_id, r.scheduled_for
),

given_back as (
    update schedule as s
    set runs_left = s.runs_left + d.runs
    from (select schedule_id, count(*) as runs from dropped group by schedule_id) as d
    where s.id = d.schedule_id and s.runs_left is not null
)

select distinct scheduled_for from dropped

-- name: revise
-- The calendar as it is from now on.
update calendar
set
    excluded_dates = cast(:excluded_dates as date []),
    planned_through = :cursor,
    next_fire_at = :next_fire_at,
    utc_offset = :utc_offset,
    tzdata_version = :tzdata_version,
    revised_at = :revised_at
where id = :id and planned_through <= :cursor

-- name: stamp
-- Calendars in which newer time zone data changes nothing.
update calendar as c
set tzdata_version = :tzdata_version, utc_offset = n.utc_offset
from unnest(cast(:ids as bigint []), cast(:utc_offsets as integer [])) as n (id, utc_offset)
where c.id = n.id

-- name: announce
-- One event for each schedule that fires at other times now: those that it had, and those that it has.
insert into outbox (id, type, tenant_id, detail, created_at)
select
    gen_random_uuid(),
    'schedule.shifted',
    s.tenant_id,
    jsonb_build_object(
        'schedule_id', s.id, 'timezone', c.timezone, 'tzdata_version', c.tzdata_version,
        'old_times', to_jsonb(seen.old_times), 'new_times', to_jsonb(seen.new_times)
    ),
    :now
from schedule as s
inner join calendar as c on s.calendar_id = c.id
cross join lateral (
    select
        array(
            select o.at from unnest(cast(:old_times as timestamptz [])) as o (at)
            where o.at >= s.active_from and (s.end_at is null or o.at < s.end_at)
            order by o.at
        ) as old_times,
        array(
            select n.at from unnest(cast(:new_times as timestamptz [])) as n (at)
            where n.at >= s.active_from and (s.end_at is null or n.at < s.end_at)
            order by n.at
        ) as new_times
) as seen
where s.calendar_id = :calendar_id
    and s.status = 'active'
    and coalesce(s.runs_left, 1) > 0
    and cardinality(seen.old_times) + cardinality(seen.new_times) > 0

-- name: drop_later_skips
-- Skipped ranges of a calendar's schedules that lie wholly behind a revision.
delete from skipped_range as k
using schedule as s
where s.calendar_id = :calendar_id
    and s.status = 'active'
    and k.schedule_id = s.id
    and k.last_scheduled_for > :now
    and k.first_scheduled_for > :now

-- name: open_skips
-- Schedules of a calendar with a skipped range that a revision cuts in two.
select distinct k.schedule_id
from skipped_range as k
inner join schedule as s on k.schedule_id = s.id
where s.calendar_id = :calendar_id and s.status = 'active' and k.last_scheduled_for > :now and k.first_scheduled_for <= :now

-- name: held
-- Schedules of a calendar that are inside a pause whose end is known.
select s.id, s.timing, s.held_until
from schedule as s
where s.calendar_id = :calendar_id and s.status = 'active' and s.held_until > :now and coalesce(s.runs_left, 1) > 0
