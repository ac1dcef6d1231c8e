-- name: record_excluded
-- What the excluded dates of calendars left out, for their active schedules or for one of them: a range for each stretch.
with span as (
    select
        o.calendar_id,
        o.stretch,
        array_agg(o.scheduled_for order by o.scheduled_for) as instants
    from
        unnest(
            cast(:calendar_ids as bigint []), cast(:instants as timestamptz []), cast(:stretches as integer [])
        )
            as o (calendar_id, scheduled_for, stretch)
    group by o.calendar_id, o.stretch
),

placed as (
    select
        s.id,
        s.tenant_id,
        span.instants,
        width_bucket(s.active_from - interval '1 microsecond', span.instants) as first_in,
        case
            when s.end_at is null then cardinality(span.instants)
            else width_bucket(s.end_at - interval '1 microsecond', span.instants)
        end as last_in
    from span
    inner join schedule as s on span.calendar_id = s.calendar_id
    where s.status = 'active'
        and coalesce(s.runs_left, 1) > 0
        and (cast(:schedule_id as uuid) is null or s.id = :schedule_id)
)

insert into skipped_range (schedule_id, tenant_id, first_scheduled_for, last_scheduled_for, occurrences, reason, recorded_at)
select
    placed.id,
    placed.tenant_id,
    placed.instants [placed.first_in + 1],
    placed.instants [placed.last_in],
    placed.last_in - placed.first_in,
    'excluded',
    :now
from placed
where placed.first_in < placed.last_in

-- name: record
insert into skipped_range (schedule_id, tenant_id, first_scheduled_for, last_scheduled_for, occurrences, reason, recorded_at)
select s.id, s.tenant_id, :first, :last, :occurrences, :reason, :now
from schedule as s
where s.id = :schedule_id

-- name: drop_later
-- What a change takes back together with the runs: ranges wholly later than it.
delete from skipped_range
where schedule_id = :schedule_id and last_scheduled_for > :now and first_scheduled_for > :now

-- name: straddling
-- Ranges that begin before a change and end behind it.
select id, first_scheduled_for, reason
from skipped_range
where schedule_id = :schedule_id and last_scheduled_for > :now and first_scheduled_for <= :now
for update

-- name: trim
update skipped_range
set last_scheduled_for = :last, occurrences = :occurrences
where id = :id

-- name: list
-- Newest first, before the keyset (:before_at, :before_id).
select id, first_scheduled_for, last_scheduled_for, occurrences, reason, recorded_at
from skipped_range
where schedule_id = :schedule_id
    and tenant_id = :tenant_id
    and (last_scheduled_for, id) < (:before_at, cast(:before_id as bigint))
order by last_scheduled_for desc, id desc
limit :most
