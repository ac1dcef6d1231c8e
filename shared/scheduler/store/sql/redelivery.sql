-- name: lock
-- A run as history.run reads it, held for a change.
select
    r.id, r.schedule_id, r.scheduled_for, r.due_at, r.state, r.reason, r.attempt, r.failures, r.next_attempt_at,
    r.ended_at, r.trigger
from job_run as r
where r.id = :id and r.scheduled_for = :scheduled_for and r.tenant_id = :tenant_id
for no key update

-- name: redeliver
-- Ended runs are planned anew: their policy begins again, their key, their body and their count of attempts go on. Neither a
-- pause nor a disabled schedule holds them.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join
        unnest(cast(:ids as uuid []), cast(:scheduled_for as timestamptz [])) as p (id, scheduled_for)
        on r.id = p.id and r.scheduled_for = p.scheduled_for
    inner join schedule as s on r.schedule_id = s.id
    where r.tenant_id = :tenant_id and r.state = any(cast(:states as text [])) and s.status <> 'deleted'
    order by r.id
    for no key update of r
)

update job_run as r
set
    state = 'planned',
    reason = null,
    held_by = null,
    ended_at = null,
    failures = 0,
    unrecorded = 0,
    sends = r.sends + 1,
    next_attempt_at = greatest(r.due_at, :now),
    redelivered_at = :now
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for

-- name: count
-- How many ended runs a filter matches; what it leaves out is null.
select count(*) as matched
from job_run as r
inner join schedule as s on r.schedule_id = s.id
where r.tenant_id = :tenant_id
    and r.state = :state
    and r.scheduled_for >= :since
    and r.scheduled_for < :until
    and (cast(:schedule_id as uuid) is null or r.schedule_id = :schedule_id)
    and (cast(:reason as text) is null or r.reason = :reason)
    and s.status <> 'deleted'

-- name: matching
-- Those runs, oldest first, at most :most.
select r.id, r.scheduled_for
from job_run as r
inner join schedule as s on r.schedule_id = s.id
where r.tenant_id = :tenant_id
    and r.state = :state
    and r.scheduled_for >= :since
    and r.scheduled_for < :until
    and (cast(:schedule_id as uuid) is null or r.schedule_id = :schedule_id)
    and (cast(:reason as text) is null or r.reason = :reason)
    and s.status <> 'deleted'
order by r.scheduled_for, r.id
limit :most

-- name: cancel
-- A run that nobody is posting ends here, and gives up its turn. A message for it finds it ended.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    where r.id = :id
        and r.scheduled_for = :scheduled_for
        and r.tenant_id = :tenant_id
        and (r.state in ('planned', 'queued') or (r.state = 'delivering' and r.lease_until <= :now))
    for no key update
),

cancelled as (
    update job_run as r
    set state = 'cancelled', reason = 'by_hand', ended_at = :now, lease_until = null
    from seen
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for
    returning r.id, r.scheduled_for
),

released as (
    delete from overlap_turn as o
    using cancelled
    where o.run_id = cancelled.id and o.scheduled_for = cancelled.scheduled_for
)

select cancelled.id from cancelled
