-- name: claim_calendars
-- Due calendars that nobody holds. A calendar stamped by newer time zone data is left to planners that have it.
select id, kind, expression, timezone, gap, overlap, anchor, planned_through
from calendar
where next_fire_at <= :horizon
    and set_aside_at is null
    and tzdata_version <= :tzdata_version
    and id <> all(cast(:left_alone as bigint []))
order by next_fire_at
limit :most
for no key update skip locked

-- name: wait_for_calendars
-- The same, for those that were passed over twice: in id order, as all who wait for calendars, so that nobody deadlocks.
select id, kind, expression, timezone, gap, overlap, anchor, planned_through
from calendar
where next_fire_at <= :horizon
    and set_aside_at is null
    and tzdata_version <= :tzdata_version
    and id <> all(cast(:left_alone as bigint []))
order by id
limit :most
for no key update

-- name: bound_wait
set local lock_timeout = '5s'

-- name: count_due
select count(*) as due
from calendar
where next_fire_at <= :horizon
    and set_aside_at is null
    and tzdata_version <= :tzdata_version
    and id <> all(cast(:left_alone as bigint []))

-- name: materialise
-- Makes the runs of the given occurrences for the active schedules of their calendars (or for one of them), once each.
-- A schedule's own occurrences are a slice of its calendar's sorted ones: those before position `first_in` lie before its
-- window, those after `last_in` behind it, and those up to `late_through` are later than its grace. Late ones that its
-- misfire policy does not run, and all that are older than :oldest, become one skipped range.
with span as materialized (
    select
        o.calendar_id,
        array_agg(o.scheduled_for order by o.scheduled_for) as instants,
        array_agg(o.id_prefix order by o.scheduled_for) as id_prefixes
    from
        unnest(cast(:calendar_ids as bigint []), cast(:instants as timestamptz []), cast(:id_prefixes as text []))
            as o (calendar_id, scheduled_for, id_prefix)
    group by o.calendar_id
),

placed as not materialized (
    select
        s.id,
        s.tenant_id,
        s.version,
        s.misfire,
        s.misfire_cap,
        span.instants,
        span.id_prefixes,
        width_bucket(s.active_from - interval '1 microsecond', span.instants) as first_in,
        case
            when s.end_at is null then cardinality(span.instants)
            else width_bucket(s.end_at - interval '1 microsecond', span.instants)
        end as last_in,
        width_bucket(
            cast(:now as timestamptz) - make_interval(secs => s.misfire_grace_seconds) - interval '1 microsecond', span.instants
        ) as late_through,
        width_bucket(cast(:oldest as timestamptz) - interval '1 microsecond', span.instants) as forgotten_through
    from span
    inner join schedule as s on span.calendar_id = s.calendar_id
    where s.status = 'active' and (cast(:schedule_id as uuid) is null or s.id = :schedule_id)
),

owed as not materialized (
    select
        placed.*,
        greatest(
            placed.first_in,
            least(placed.forgotten_through, placed.last_in),
            least(placed.late_through, placed.last_in)
            - case placed.misfire when 'all' then placed.misfire_cap when 'latest' then 1 else 0 end
        ) as run_from
    from placed
    where placed.first_in < placed.last_in
),

skipped as (
    insert into skipped_range (
        schedule_id, tenant_id, first_scheduled_for, last_scheduled_for, occurrences, reason, recorded_at
    )
    select
        owed.id,
        owed.tenant_id,
        owed.instants [owed.first_in + 1],
        owed.instants [owed.run_from],
        owed.run_from - owed.first_in,
        'missed',
        :now
    from owed
    where cast(:some_late as boolean) and owed.run_from > owed.first_in
)

insert into job_run (
    id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at,
    schedule_version, tzdata_version, trigger, created_at
)
select
    -- The time of version 7 before, the schedule's own random bits behind: one occurrence has one id for ever.
    cast(o.id_prefix || substr(cast(owed.id as text), 16) as uuid),
    owed.id,
    o.scheduled_for,
    owed.tenant_id,
    'planned',
    o.scheduled_for,
    o.scheduled_for,
    owed.version,
    :tzdata_version,
    'schedule',
    :now
from owed
cross join lateral unnest(owed.instants, owed.id_prefixes) with ordinality as o (scheduled_for, id_prefix, place)
where o.place > owed.run_from and o.place <= owed.last_in
on conflict (schedule_id, scheduled_for) do nothing

-- name: advance
update calendar as c
set planned_through = :horizon, next_fire_at = n.next_fire_at, tzdata_version = :tzdata_version
from
    unnest(cast(:ids as bigint []), cast(:next_fire_ats as timestamptz [])) as n (id, next_fire_at)
where c.id = n.id and c.planned_through < :horizon

-- name: set_aside
update calendar as c
set set_aside_at = :now, set_aside_reason = a.reason
from unnest(cast(:ids as bigint []), cast(:reasons as text [])) as a (id, reason)
where c.id = a.id
