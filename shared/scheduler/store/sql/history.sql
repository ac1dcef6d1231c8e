-- name: run
select
    r.id, r.schedule_id, r.scheduled_for, r.due_at, r.state, r.reason, r.attempt, r.failures, r.next_attempt_at,
    r.ended_at, r.trigger
from job_run as r
where r.id = :id and r.scheduled_for = :scheduled_for and r.tenant_id = :tenant_id

-- name: attempts
-- The POSTs of one run, in order. An attempt that left no outcome has no row.
select
    a.attempt, a.started_at, a.lateness_ms, a.outcome, a.stage, a.status, a.detail, a.response_headers, a.response_body,
    a.dns_ms, a.connect_ms, a.tls_ms, a.first_byte_ms, a.total_ms
from attempt as a
where a.run_id = :run_id and a.scheduled_for = :scheduled_for
order by a.attempt

-- name: calendars
select c.id, c.kind, c.expression, c.timezone, c.gap, c.overlap, c.anchor, c.excluded_dates, c.on_excluded, c.set_aside_at
from calendar as c
where c.id = any(cast(:ids as bigint []))

-- name: next_planned
-- The next planned run of schedules that will make no further one.
select r.schedule_id, min(r.scheduled_for) as scheduled_for
from job_run as r
where r.schedule_id = any(cast(:schedule_ids as uuid [])) and r.scheduled_for > :now and r.trigger = 'schedule'
group by r.schedule_id

-- name: count_planned
-- How many runs of a schedule are planned for later already.
select count(*) as planned
from job_run as r
where r.schedule_id = :schedule_id and r.scheduled_for > :now and r.trigger = 'schedule'

-- name: find_runs
-- A tenant's runs before the keyset, newest first. The bounds on scheduled_for alone keep the other days' partitions out.
select
    r.id, r.schedule_id, r.scheduled_for, r.due_at, r.state, r.reason, r.attempt, r.failures, r.next_attempt_at,
    r.ended_at, r.trigger
from job_run as r
where r.tenant_id = :tenant_id
    and r.scheduled_for >= :since
    and r.scheduled_for <= :before_at
    and r.scheduled_for < :until
    and (r.scheduled_for, r.id) < (:before_at, cast(:before_id as uuid))
    and (cast(:schedule_id as uuid) is null or r.schedule_id = :schedule_id)
    and r.state = any(cast(:states as text []))
    and r.trigger = any(cast(:triggers as text []))
order by r.scheduled_for desc, r.id desc
limit :most
