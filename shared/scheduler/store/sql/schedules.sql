-- name: add_calendar
-- The calendar's row, if it is not there yet. Its cursor begins at :now; the transaction that made it moves it on.
insert into calendar (
    kind, expression, timezone, gap, overlap, anchor, exclusion_key, own_dates, exclusion_lists, excluded_dates, on_excluded,
    planned_through, next_fire_at, tzdata_version
)
values (
    :kind, :expression, :timezone, :gap, :overlap, :anchor, :exclusion_key, cast(:own_dates as date []),
    cast(:exclusion_lists as uuid []), cast(:excluded_dates as date []), :on_excluded, :now, :next_fire_at, :tzdata_version
)
on conflict (kind, expression, timezone, gap, overlap, anchor, exclusion_key) do nothing
returning id

-- name: find_calendar
select id
from calendar
where kind = :kind
    and expression = :expression
    and timezone = :timezone
    and gap = :gap
    and overlap = :overlap
    and anchor = :anchor
    and exclusion_key = :exclusion_key

-- name: lock_calendars
-- A change to a schedule holds its calendars still: first of all its locks, in id order.
select
    id, kind, expression, timezone, gap, overlap, anchor, excluded_dates, on_excluded, planned_through, set_aside_at, retired_at
from calendar
where id = any(cast(:ids as bigint []))
order by id
for share

-- name: get
select
    s.id, s.tenant_id, s.name, s.status, s.version, s.timing, s.calendar_id, s.active_from, s.held_until, s.pause_reason,
    s.runs_left,
    s.url, s.headers, s.retry, s.retry_client_errors, s.overlap_policy, s.after_outage,
    s.description, s.labels,
    s.payload_version, v.payload, s.created_at, s.updated_at
from schedule as s
inner join schedule_version as v on s.id = v.schedule_id and s.payload_version = v.version
where s.id = :id and s.tenant_id = :tenant_id and s.status <> 'deleted'

-- name: lock
-- Its row, held for a change; taken after the calendars.
select s.version
from schedule as s
where s.id = :id and s.tenant_id = :tenant_id and s.status <> 'deleted'
for no key update

-- name: list
-- `statuses` are those at :now, when a pause with an end may be over by itself. Where the next run must lie in a range, those
-- are left out whose calendars rule it out: it is planned already, up to `planned_through`, or it is not before `next_fire_at`; and
-- not behind that one, if that lies in the schedule's window.
select
    s.id, s.tenant_id, s.name, s.status, s.version, s.timing, s.calendar_id, s.active_from, s.held_until, s.pause_reason,
    s.runs_left,
    s.url, s.headers, s.retry, s.retry_client_errors, s.overlap_policy, s.after_outage,
    s.description, s.labels,
    s.payload_version, v.payload, s.created_at, s.updated_at
from schedule as s
inner join schedule_version as v on s.id = v.schedule_id and s.payload_version = v.version
inner join calendar as c on s.calendar_id = c.id
where s.tenant_id = :tenant_id
    and s.status <> 'deleted'
    and case when s.status = 'active' and s.held_until > :now then 'paused' else s.status end = any(cast(:statuses as text []))
    and (
        not cast(:has_next_run as boolean)
        or (
            s.status = 'active'
            and s.active_from < :next_run_until
            and coalesce(s.end_at, 'infinity') > :next_run_from
            and (
                c.next_fire_at < :next_run_until
                or (c.planned_through > :now and c.planned_through >= :next_run_from)
            )
            and (
                c.next_fire_at is null
                or c.next_fire_at >= :next_run_from
                or c.next_fire_at <= :now
                or c.next_fire_at < s.active_from
                or c.next_fire_at >= coalesce(s.end_at, 'infinity')
            )
        )
    )
    and (s.created_at, s.id) > (:after_at, cast(:after_id as uuid))
    and s.labels @> cast(:labels as jsonb)
    and (cast(:name_prefix as text) is null or starts_with(s.name, :name_prefix))
order by s.created_at, s.id
limit :most

-- name: named
select s.id
from schedule as s
where s.tenant_id = :tenant_id and s.name = :name and s.status <> 'deleted'

-- name: insert
insert into schedule (
    id, tenant_id, name, status, version, payload_version, timing, calendar_id, active_from, end_at,
    misfire, misfire_grace_seconds, misfire_cap, url, headers, retry, retry_client_errors, overlap_policy, after_outage,
    description, labels, jitter_seconds, runs_left, created_at, updated_at
)
values (
    :id, :tenant_id, :name, 'active', 1, 1, cast(:timing as jsonb), :calendar_id, :active_from, :end_at,
    :misfire, :misfire_grace_seconds, :misfire_cap, :url, cast(:headers as jsonb), cast(:retry as jsonb), :retry_client_errors,
    :overlap_policy, :after_outage, :description, cast(:labels as jsonb),
    :jitter_seconds, :max_runs, :now, :now
)

-- name: update
-- A limit counts what was made since there was one; a change of it keeps the count.
update schedule
set
    name = :name,
    status = :status,
    version = version + 1,
    payload_version = case when cast(:payload_changed as boolean) then version + 1 else payload_version end,
    timing = cast(:timing as jsonb),
    calendar_id = :calendar_id,
    active_from = :active_from,
    end_at = :end_at,
    misfire = :misfire,
    misfire_grace_seconds = :misfire_grace_seconds,
    misfire_cap = :misfire_cap,
    jitter_seconds = :jitter_seconds,
    runs_left = case
        when cast(:max_runs as bigint) is null then null
        when runs_left is null then cast(:max_runs as bigint)
        else cast(:max_runs as bigint) - cast(timing ->> 'max_runs' as bigint) + runs_left
    end,
    held_until = :held_until,
    pause_reason = :pause_reason,
    url = :url,
    headers = cast(:headers as jsonb),
    retry = cast(:retry as jsonb),
    retry_client_errors = :retry_client_errors,
    overlap_policy = :overlap_policy,
    after_outage = :after_outage,
    description = :description,
    labels = cast(:labels as jsonb),
    updated_at = :now
where id = :id and version = :version

-- name: add_version
-- What the row says now, under its new number; the payload only where this change set it.
insert into schedule_version (
    schedule_id, version, change, changed_at, changed_by, status, timing, calendar_id, active_from, end_at, runs_left, held_until,
    pause_reason, payload
)
select
    s.id, s.version, :change, :now, :changed_by, s.status, s.timing, s.calendar_id, s.active_from, s.end_at, s.runs_left,
    s.held_until, s.pause_reason,
    case when s.payload_version = s.version then cast(:payload as bytea) end
from schedule as s
where s.id = :id

-- name: drop_future_runs
-- Runs later than the change that nobody ever claimed, given back to the limit if there is one. A message for one of them finds
-- nothing and is acknowledged.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    where r.schedule_id = :id
        and r.scheduled_for > :now
        and r.trigger = 'schedule'
        and r.attempt = 0
        and r.state in ('planned', 'queued')
    order by r.id
    for update
),

dropped as (
    delete from job_run as r
    using seen
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for
    returning r.id
)

update schedule as s
set runs_left = s.runs_left + (select count(*) from dropped)
where s.id = :id and s.runs_left is not null

-- name: cancel_owed_runs
-- What a deleted schedule still owed ends as cancelled. One that is just being delivered is cancelled by its next claim, if any.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    where r.schedule_id = :id and r.state in ('planned', 'queued')
    order by r.id
    for no key update of r
)

update job_run as r
set state = 'cancelled', reason = 'deleted', ended_at = :now
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for and r.state in ('planned', 'queued')
