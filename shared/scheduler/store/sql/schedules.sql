-- name: add_calendar
-- The calendar's row, if it is not there yet. Its cursor begins at :now; the transaction that made it moves it on.
insert into calendar (
    kind, expression, timezone, gap, overlap, anchor, planned_through, next_fire_at, tzdata_version
)
values (:kind, :expression, :timezone, :gap, :overlap, :anchor, :now, :next_fire_at, :tzdata_version)
on conflict (kind, expression, timezone, gap, overlap, anchor) do nothing
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

-- name: lock_calendars
-- A change to a schedule holds its calendars still: first of all its locks, in id order.
select id, kind, expression, timezone, gap, overlap, anchor, planned_through, tzdata_version
from calendar
where id = any(cast(:ids as bigint []))
order by id
for share

-- name: get
select
    s.id, s.tenant_id, s.name, s.status, s.version, s.timing, s.calendar_id, s.active_from, s.end_at, s.misfire,
    s.url, s.headers, s.retry, s.retry_client_errors, s.overlap_policy, s.after_outage,
    s.payload_version, v.payload, s.created_at, s.updated_at
from schedule as s
inner join schedule_version as v on s.id = v.schedule_id and s.payload_version = v.version
where s.id = :id and s.tenant_id = :tenant_id and s.status <> 'deleted'

-- name: lock
-- The same row, held for a change; taken after the calendars.
select
    s.id, s.tenant_id, s.name, s.status, s.version, s.timing, s.calendar_id, s.active_from, s.end_at, s.misfire,
    s.url, s.headers, s.retry, s.retry_client_errors, s.overlap_policy, s.after_outage,
    s.payload_version, v.payload, s.created_at, s.updated_at
from schedule as s
inner join schedule_version as v on s.id = v.schedule_id and s.payload_version = v.version
where s.id = :id and s.tenant_id = :tenant_id and s.status <> 'deleted'
for no key update of s

-- name: list
select
    s.id, s.tenant_id, s.name, s.status, s.version, s.timing, s.calendar_id, s.active_from, s.end_at, s.misfire,
    s.url, s.headers, s.retry, s.retry_client_errors, s.overlap_policy, s.after_outage,
    s.payload_version, v.payload, s.created_at, s.updated_at
from schedule as s
inner join schedule_version as v on s.id = v.schedule_id and s.payload_version = v.version
where s.tenant_id = :tenant_id
    and s.status <> 'deleted'
    and (s.created_at, s.id) > (:after_at, cast(:after_id as uuid))
order by s.created_at, s.id
limit :most

-- name: insert
insert into schedule (
    id, tenant_id, name, status, version, payload_version, timing, calendar_id, active_from, end_at,
    misfire, misfire_grace_seconds, misfire_cap, url, headers, retry, retry_client_errors, overlap_policy, after_outage,
    created_at, updated_at
)
values (
    :id, :tenant_id, :name, 'active', 1, 1, cast(:timing as jsonb), :calendar_id, :active_from, :end_at,
    'all', :grace_seconds, :cap, :url, cast(:headers as jsonb), cast(:retry as jsonb), :retry_client_errors,
    :overlap_policy, :after_outage, :now, :now
)

-- name: update
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
    url = :url,
    headers = cast(:headers as jsonb),
    retry = cast(:retry as jsonb),
    retry_client_errors = :retry_client_errors,
    overlap_policy = :overlap_policy,
    after_outage = :after_outage,
    updated_at = :now
where id = :id and version = :version

-- name: add_version
-- What the row says now, under its new number; the payload only where this change set it.
insert into schedule_version (
    schedule_id, version, change, changed_at, changed_by, status, timing, calendar_id, active_from, end_at, payload
)
select
    s.id, s.version, :change, :now, :changed_by, s.status, s.timing, s.calendar_id, s.active_from, s.end_at,
    case when s.payload_version = s.version then cast(:payload as bytea) end
from schedule as s
where s.id = :id

-- name: drop_future_runs
-- Runs later than the change that nobody ever claimed. A message for one of them finds nothing and is acknowledged.
delete from job_run
where schedule_id = :id
    and scheduled_for > :now
    and trigger = 'schedule'
    and attempt = 0
    and state in ('planned', 'queued')

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
