-- name: find_planned
-- Of each tenant its oldest planned runs that are due by :horizon: no more than make :tenant_queued with those that are queued
-- already, and none while its deliveries are at their limit, since the claim would only put them back. What a pause, a
-- disabled schedule or a suspended tenant holds is passed over; of a deleted schedule runs go on, for the claim to cancel them.
-- The tenants share a page of :most, so that it costs what it returns, however long a backlog is. Of one that has more, one run
-- more is returned, as `left_behind`; `cut` says that the page was too small for it.
-- A run is never due before it is scheduled: that bound keeps the query out of the partitions ahead.
with owing as (
    select p.tenant_id
    from tenants_with_planned_runs(:horizon) as p (tenant_id)
    where cast(:schedule_id as uuid) is null
    union all
    select s.tenant_id from schedule as s where s.id = :schedule_id
),

room as (
    select
        owing.tenant_id,
        case
            when load.in_flight >= cast(:tenant_concurrency as integer) then 0
            else greatest(0, cast(:tenant_queued as bigint) - queued.runs)
        end as allowed,
        greatest(1, cast(:most as bigint) / (select count(*) from owing)) as share
    from owing
    inner join tenant as t on owing.tenant_id = t.id
    left join tenant_load as load on owing.tenant_id = load.tenant_id
    cross join lateral (
        select count(*) as runs from job_run as r where r.state = 'queued' and r.tenant_id = owing.tenant_id
    ) as queued
    where t.status <> 'suspended'
),

placed as (
    select
        room.tenant_id,
        room.allowed,
        room.share,
        due.*,
        row_number() over (partition by room.tenant_id order by due.next_attempt_at, due.id) as place
    from room
    cross join lateral (
        select oldest.*
        from (
            select r.id, r.scheduled_for, r.next_attempt_at, r.attempt, r.sends
            from job_run as r
            -- Row by row, behind a fence: a plan that began with the schedules would read all of a backlog.
            cross join lateral (
                select held_by_schedule(r.trigger, r.redelivered_at, r.scheduled_for, s.status, s.held_until, :now) as held
                from schedule as s
                where s.id = r.schedule_id
                offset 0
            ) as its_schedule
            where r.tenant_id = room.tenant_id
                and r.state = 'planned'
                and r.held_by is null
                and r.scheduled_for <= :horizon
                and r.next_attempt_at <= :horizon
                and (cast(:schedule_id as uuid) is null or r.schedule_id = :schedule_id)
                and not its_schedule.held
            order by r.next_attempt_at, r.id
            -- No limit of ours but the planner's: it tells how few of them are wanted.
            limit cast(:tenant_queued as bigint) + 1
        ) as oldest
        limit least(room.allowed, room.share) + 1
    ) as due
)

select
    p.id,
    p.tenant_id,
    p.scheduled_for,
    p.next_attempt_at,
    p.attempt,
    p.sends,
    p.place > least(p.allowed, p.share) as left_behind,
    p.place > p.share as cut
from placed as p
order by p.next_attempt_at, p.id

-- name: find_lost
-- What should have happened and did not: a lease that ran out, a message that nobody received. A backlog is not a loss, so
-- each message sent doubles the wait for the next, up to 80 minutes: `sends` also counts what was put back, and a run that was put
-- back often must not be lost for longer than its policy lasts.
select r.id, r.tenant_id, r.scheduled_for, r.attempt, r.sends, cast(:now as timestamptz) as next_attempt_at
from job_run as r
where r.scheduled_for <= :now
    and (
        (r.state = 'delivering' and r.lease_until <= :now)
        or (
            r.state = 'queued'
            and r.next_attempt_at <= cast(:now as timestamptz) - interval '5 minutes' * power(2, least(greatest(r.sends - 1, 0), 4))
        )
    )
order by r.id
limit :most

-- name: mark_queued
-- Guarded by all that was seen, since a message can overtake its mark: a run that was claimed, or claimed and parked again, is
-- no longer the one that was sent. A locked row is being claimed. [:earliest, :latest] keeps the plan to those days' partitions.
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
    where r.state = 'planned' and r.scheduled_for between :earliest and :latest
    order by r.id
    for no key update of r skip locked
)

update job_run as r
set state = 'queued', sends = r.sends + 1
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for and r.scheduled_for between :earliest and :latest
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
    where r.scheduled_for between :earliest and :latest
        and (r.state = 'queued' or (r.state = 'delivering' and r.lease_until <= :now))
    order by r.id
    for no key update of r skip locked
)

update job_run as r
set state = 'queued', sends = r.sends + 1, lease_until = null, next_attempt_at = :now
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for and r.scheduled_for between :earliest and :latest
returning r.id
