-- name: find_planned
-- Planned runs that are due by :horizon, oldest first, after the keyset (:after_at, :after_id). Those that a pause, a disabled
-- schedule or a suspended tenant holds are passed over; of a deleted schedule they go on, for the claim to cancel them.
-- A run is never due before it is scheduled: that bound keeps the query out of the partitions ahead.
-- Of each tenant no more than make :tenant_queued with those that are queued already; of one whose deliveries are at their
-- limit none, since the claim would only put them back.
with queued as (
    select r.tenant_id, count(*) as runs
    from job_run as r
    where r.state = 'queued'
        and (
            cast(:schedule_id as uuid) is null
            or r.tenant_id = (select s.tenant_id from schedule as s where s.id = :schedule_id)
        )
    group by r.tenant_id
),

due as (
    select
        r.id,
        r.tenant_id,
        r.scheduled_for,
        r.next_attempt_at,
        r.attempt,
        r.sends,
        row_number() over (partition by r.tenant_id order by r.next_attempt_at, r.id) as place
    from job_run as r
    inner join schedule as s on r.schedule_id = s.id
    inner join tenant as t on r.tenant_id = t.id
    where r.state = 'planned'
        and r.held_by is null
        and r.scheduled_for <= :horizon
        and r.next_attempt_at <= :horizon
        and (r.next_attempt_at, r.id) > (:after_at, cast(:after_id as uuid))
        and (cast(:schedule_id as uuid) is null or r.schedule_id = :schedule_id)
        and t.status <> 'suspended'
        and (
            r.trigger <> 'schedule'
            or r.redelivered_at is not null
            or s.status = 'deleted'
            or (s.status = 'active' and (s.held_until is null or s.held_until <= :now or r.scheduled_for >= s.held_until))
        )
)

select due.id, due.tenant_id, due.scheduled_for, due.next_attempt_at, due.attempt, due.sends
from due
left join queued on due.tenant_id = queued.tenant_id
left join tenant_load as load on due.tenant_id = load.tenant_id
where due.place <= cast(:tenant_queued as bigint) - coalesce(queued.runs, 0)
    and coalesce(load.in_flight, 0) < cast(:tenant_concurrency as integer)
order by due.next_attempt_at, due.id
limit :most

-- name: held_back
-- Whether anything is due that was not sent yet, and may be.
select
    exists (
        select 1
        from job_run as r
        inner join schedule as s on r.schedule_id = s.id
        inner join tenant as t on r.tenant_id = t.id
        where r.state = 'planned'
            and r.held_by is null
            and r.scheduled_for <= :horizon
            and r.next_attempt_at <= :horizon
            and t.status <> 'suspended'
            and (
                r.trigger <> 'schedule'
                or r.redelivered_at is not null
                or s.status = 'deleted'
                or (s.status = 'active' and (s.held_until is null or s.held_until <= :now or r.scheduled_for >= s.held_until))
            )
    ) as held_back

-- name: find_next
-- Of each of these schedules the oldest run that waits for its turn; it waits no longer.
with next as (
    select distinct on (r.schedule_id) r.id, r.scheduled_for
    from job_run as r
    where r.schedule_id = any(cast(:schedule_ids as uuid [])) and r.state = 'planned' and r.held_by = 'overlap'
    order by r.schedule_id, r.scheduled_for, r.id
),

seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join next on r.id = next.id and r.scheduled_for = next.scheduled_for
    where r.state = 'planned' and r.held_by = 'overlap'
    order by r.id
    for no key update of r
)

update job_run as r
set held_by = null
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for
returning r.id, r.tenant_id, r.scheduled_for, r.next_attempt_at, r.attempt, r.sends

-- name: find_lost
-- What should have happened and did not: a lease that ran out, a message that nobody received. A backlog is not a loss, so
-- each message sent doubles the wait for the next.
select r.id, r.tenant_id, r.scheduled_for, r.attempt, r.sends, cast(:now as timestamptz) as next_attempt_at
from job_run as r
where r.scheduled_for <= :now
    and (
        (r.state = 'delivering' and r.lease_until <= :now)
        or (
            r.state = 'queued'
            and r.next_attempt_at <= cast(:now as timestamptz) - interval '5 minutes' * power(2, least(greatest(r.sends - 1, 0), 10))
        )
    )
order by r.id
limit :most

-- name: mark_queued
-- Guarded by all that was seen, since a message can overtake its mark: a run that was claimed, or claimed and parked again, is
-- no longer the one that was sent. A locked row is being claimed.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join
        unnest(
            cast(:ids as uuid []),
            cast(:scheduled_for as timestamptz []),
            cast(:attempts as integer []),
            cast(:sends as integer [])
        ) as m (id, scheduled_for, attempt, sends)
        on r.id = m.id and r.scheduled_for = m.scheduled_for and r.attempt = m.attempt and r.sends = m.sends
    where r.state = 'planned'
    order by r.id
    for no key update of r skip locked
)

update job_run as r
set state = 'queued', sends = r.sends + 1
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for
returning r.id

-- name: mark_sent_again
-- A swept run is queued anew, its overdue time counted from now. Its lease is over, but the attempt that held it may still
-- record its outcome: the fencing token moves at the next claim, not here.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join
        unnest(
            cast(:ids as uuid []),
            cast(:scheduled_for as timestamptz []),
            cast(:attempts as integer []),
            cast(:sends as integer [])
        ) as m (id, scheduled_for, attempt, sends)
        on r.id = m.id and r.scheduled_for = m.scheduled_for and r.attempt = m.attempt and r.sends = m.sends
    where r.state = 'queued' or (r.state = 'delivering' and r.lease_until <= :now)
    order by r.id
    for no key update of r skip locked
)

update job_run as r
set state = 'queued', sends = r.sends + 1, lease_until = null, next_attempt_at = :now
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for
returning r.id
