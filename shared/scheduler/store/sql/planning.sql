-- name: claim_calendars
-- Due calendars that nobody holds. One stamped by newer time zone data is left to planners that have it, and one stamped by
-- older data to the step that retimes it.
select id, kind, expression, timezone, gap, overlap, anchor, excluded_dates, on_excluded, planned_through
from calendar
where next_fire_at <= :horizon
    and set_aside_at is null
    and tzdata_version = :tzdata_version
    and id <> all(cast(:left_alone as bigint []))
order by next_fire_at
limit :most
for no key update skip locked

-- name: wait_for_calendars
-- The same, for those that were passed over twice: in id order, as all who wait for calendars, so that nobody deadlocks.
select id, kind, expression, timezone, gap, overlap, anchor, excluded_dates, on_excluded, planned_through
from calendar
where next_fire_at <= :horizon
    and set_aside_at is null
    and tzdata_version = :tzdata_version
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

-- name: lock_limited
-- The schedules of these calendars (or one of them) that may make only so many runs: locked before their runs are counted, in
-- id order, so that nobody deadlocks.
select s.id
from schedule as s
where s.calendar_id = any(cast(:calendar_ids as bigint []))
    and s.status = 'active'
    and s.runs_left is not null
    and (cast(:schedule_id as uuid) is null or s.id = :schedule_id)
order by s.id
for no key update

-- name: weigh
-- How many schedules may make runs of these calendars' occurrences, how many late ones at most one of them still runs, and the
-- longest grace.
select
    s.calendar_id,
    count(*) as schedules,
    max(case s.misfire when 'all' then s.misfire_cap when 'latest' then 1 else 0 end) as cap,
    max(s.misfire_grace_seconds) as grace_seconds
from schedule as s
where s.calendar_id = any(cast(:ids as bigint [])) and s.status = 'active' and coalesce(s.runs_left, 1) > 0
group by s.calendar_id

-- name: materialise
-- Makes the runs of the given occurrences for the active schedules of their calendars (or for one of them), once each.
-- A schedule's own occurrences are a slice of its calendar's sorted ones: those before position `first_in` lie before its
-- window, those after `last_in` behind it, those up to `late_through` are later than its grace, and those up to `due_through`
-- are not to come. Its misfire policy says how many of those that are due may run, the newest ones, of which `later_due` are
-- behind this stretch (:later); within the grace all do.
-- What is left, and all that is older than :oldest, becomes one skipped range. A limited schedule makes the first `runs_left` of
-- the rest, and what it really made is taken off. `room`: the seconds from an occurrence to the next, less one.
with span as materialized (
    select
        o.calendar_id,
        array_agg(o.scheduled_for order by o.scheduled_for) as instants,
        array_agg(o.id_prefix order by o.scheduled_for) as id_prefixes,
        array_agg(o.room order by o.scheduled_for) as rooms
    from
        unnest(
            cast(:calendar_ids as bigint []),
            cast(:instants as timestamptz []),
            cast(:id_prefixes as text []),
            cast(:rooms as integer [])
        )
            as o (calendar_id, scheduled_for, id_prefix, room)
    group by o.calendar_id
),

placed as not materialized (
    select
        s.id,
        s.tenant_id,
        s.version,
        s.misfire,
        s.misfire_cap,
        s.jitter_seconds,
        s.runs_left,
        span.instants,
        span.id_prefixes,
        span.rooms,
        width_bucket(s.active_from - interval '1 microsecond', span.instants) as first_in,
        case
            when s.end_at is null then cardinality(span.instants)
            else width_bucket(s.end_at - interval '1 microsecond', span.instants)
        end as last_in,
        width_bucket(
            cast(:now as timestamptz) - make_interval(secs => s.misfire_grace_seconds) - interval '1 microsecond', span.instants
        ) as late_through,
        width_bucket(cast(:now as timestamptz), span.instants) as due_through,
        width_bucket(cast(:oldest as timestamptz) - interval '1 microsecond', span.instants) as forgotten_through,
        case
            when s.end_at is null then cardinality(cast(:later as timestamptz []))
            else width_bucket(s.end_at - interval '1 microsecond', cast(:later as timestamptz []))
        end as later_due
    from span
    inner join schedule as s on span.calendar_id = s.calendar_id
    where s.status = 'active'
        and coalesce(s.runs_left, 1) > 0
        and (cast(:schedule_id as uuid) is null or s.id = :schedule_id)
),

owed as not materialized (
    select
        placed.*,
        greatest(
            placed.first_in,
            least(placed.forgotten_through, placed.last_in),
            least(
                placed.late_through,
                least(placed.due_through, placed.last_in) - greatest(
                    case placed.misfire when 'all' then placed.misfire_cap when 'latest' then 1 else 0 end - placed.later_due, 0
                )
            )
        ) as run_from
    from placed
    where placed.first_in < placed.last_in
),

limited as not materialized (
    select
        owed.*,
        case
            when owed.runs_left is null then owed.last_in
            else (
                select coalesce(max(first_ones.place), 0)
                from (
                    select o.place
                    from unnest(owed.instants) with ordinality as o (scheduled_for, place)
                    where o.place > owed.run_from
                        and o.place <= owed.last_in
                        and not exists (
                            select from job_run as r
                            where r.schedule_id = owed.id
                                and r.scheduled_for = o.scheduled_for
                                -- Keeps the plan to those days' partitions.
                                and r.scheduled_for between :earliest and :latest
                        )
                    order by o.place
                    limit owed.runs_left
                ) as first_ones
            )
        end as run_to
    from owed
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
    returning schedule_id, tenant_id, first_scheduled_for, last_scheduled_for, occurrences
),

announced as (
    insert into outbox (id, type, tenant_id, detail, created_at)
    select
        gen_random_uuid(),
        'schedule.run.missed',
        skipped.tenant_id,
        jsonb_build_object(
            'schedule_id', skipped.schedule_id,
            'first_scheduled_for', skipped.first_scheduled_for,
            'last_scheduled_for', skipped.last_scheduled_for,
            'occurrences', skipped.occurrences
        ),
        :now
    from skipped
),

made as (
    insert into job_run (
        id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at,
        schedule_version, tzdata_version, trigger, created_at
    )
    select
        -- The time of version 7 before, the schedule's own random bits behind: one occurrence has one id for ever.
        cast(o.id_prefix || substr(cast(limited.id as text), 16) as uuid),
        limited.id,
        o.scheduled_for,
        limited.tenant_id,
        'planned',
        d.due_at,
        d.due_at,
        limited.version,
        :tzdata_version,
        'schedule',
        :now
    from limited
    -- Only those places are looked at: to go through all for each schedule would be a schedule's work for each late occurrence.
    cross join lateral generate_series(limited.run_from + 1, limited.run_to) as p (place)
    cross join lateral (
        select
            limited.instants [p.place] as scheduled_for,
            limited.id_prefixes [p.place] as id_prefix,
            limited.rooms [p.place] as room
    ) as o
    cross join lateral (
        select
            case
                when limited.jitter_seconds = 0 then o.scheduled_for
                -- The same number as calendar/jitter.py: 32 bits of a digest, cut to what fits before the next occurrence.
                else o.scheduled_for + make_interval(
                    secs => cast(
                        cast(
                            'x' || encode(
                                substr(
                                    sha256(
                                        convert_to(
                                            concat(
                                                'jitter ', limited.id, ' ', cast(extract(epoch from o.scheduled_for) as bigint)
                                            ),
                                            'UTF8'
                                        )
                                    ),
                                    1,
                                    4
                                ),
                                'hex'
                            ) as bit (32)
                        ) as bigint
                    ) % (least(limited.jitter_seconds, o.room) + 1)
                )
            end as due_at
    ) as d
    on conflict (schedule_id, scheduled_for) do nothing
    returning schedule_id
),

lowered as (
    update schedule as s
    set runs_left = s.runs_left - m.runs
    from (
        select made.schedule_id, count(*) as runs
        from made
        where cast(:some_limited as boolean)
        group by made.schedule_id
    ) as m
    where cast(:some_limited as boolean) and s.id = m.schedule_id and s.runs_left is not null
)

select count(*) as made from made

-- name: advance
update calendar as c
set
    planned_through = n.planned_through,
    next_fire_at = n.next_fire_at,
    utc_offset = n.utc_offset,
    tzdata_version = :tzdata_version
from
    unnest(
        cast(:ids as bigint []),
        cast(:ends as timestamptz []),
        cast(:next_fire_ats as timestamptz []),
        cast(:utc_offsets as integer [])
    )
        as n (id, planned_through, next_fire_at, utc_offset)
where c.id = n.id and c.planned_through < n.planned_through

-- name: set_aside
update calendar as c
set set_aside_at = :now, set_aside_reason = a.reason
from unnest(cast(:ids as bigint []), cast(:reasons as text [])) as a (id, reason)
where c.id = a.id
