-- name: free_turns
-- Runs that wait for an earlier one of their schedule, though none is in flight any more (it was poisoned, cancelled or
-- expired, or its worker died before it sent the next), or though runs may overlap by now: the oldest, or all of them. The oldest
-- gets the turn as well, as from a record, so that none which becomes due before it is claimed overtakes it.
with waiting as (
    select
        r.id,
        r.scheduled_for,
        s.overlap_policy,
        row_number() over (partition by r.schedule_id order by r.scheduled_for, r.id) as place
    from job_run as r
    inner join schedule as s on r.schedule_id = s.id
    where r.state = 'planned'
        and r.held_by = 'overlap'
        and (
            s.overlap_policy = 'allow'
            or s.status = 'deleted'
            or not exists (
                select 1
                from overlap_turn as o
                where o.schedule_id = r.schedule_id and holds_turn(o.run_id, o.scheduled_for, o.attempt)
            )
        )
),

seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join waiting as w on r.id = w.id and r.scheduled_for = w.scheduled_for
    where r.state = 'planned' and r.held_by = 'overlap' and (w.overlap_policy = 'allow' or w.place = 1)
    order by r.id
    for no key update of r
),

freed as (
    update job_run as r
    set held_by = null
    from seen
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for
    returning r.id, r.schedule_id, r.scheduled_for, r.attempt
),

passed_on as (
    insert into overlap_turn as turn (schedule_id, run_id, scheduled_for, attempt)
    select f.schedule_id, f.id, f.scheduled_for, f.attempt
    from freed as f
    inner join schedule as s on f.schedule_id = s.id
    where s.overlap_policy <> 'allow' and s.status = 'active'
    order by f.schedule_id
    on conflict (schedule_id) do update
    set run_id = excluded.run_id, scheduled_for = excluded.scheduled_for, attempt = excluded.attempt
    where not holds_turn(turn.run_id, turn.scheduled_for, turn.attempt)
)

select freed.id from freed

-- name: send_probes
-- An endpoint whose breaker waits for a probe gets one of the runs that it held, the oldest, when the probe may go. Another
-- one may come first: then this one is held again.
with due as (
    select distinct on (e.tenant_id, e.origin) r.id, r.scheduled_for, e.probe_at
    from endpoint as e
    inner join schedule as s on e.tenant_id = s.tenant_id and e.origin = s.origin
    inner join tenant as t on e.tenant_id = t.id
    inner join job_run as r on s.id = r.schedule_id
    where e.state <> 'closed'
        and e.probe_at <= :horizon
        and t.status = 'active'
        and not held_by_schedule(r.trigger, r.redelivered_at, r.scheduled_for, s.status, s.held_until, :now)
        and r.state = 'planned'
        and r.held_by = 'breaker'
    order by e.tenant_id, e.origin, r.scheduled_for, r.id
),

seen as (
    select r.id, r.scheduled_for, due.probe_at
    from job_run as r
    inner join due on r.id = due.id and r.scheduled_for = due.scheduled_for
    where r.state = 'planned' and r.held_by = 'breaker'
    order by r.id
    for no key update of r
)

update job_run as r
set held_by = null, next_attempt_at = greatest(r.next_attempt_at, seen.probe_at)
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for

-- name: drain
-- What breakers held that are closed by now: of each schedule all runs, the latest, or none; the others end as cancelled,
-- with their event. What a person asked for always goes. Each endpoint gets at most :rate runs a minute, spread over it.
with held as (
    select
        r.id,
        r.scheduled_for,
        s.tenant_id,
        s.origin,
        r.next_attempt_at,
        r.redelivered_at is not null
        or r.trigger <> 'schedule'
        or s.after_outage = 'all'
        or (
            s.after_outage = 'latest'
            and row_number() over (partition by r.schedule_id order by r.scheduled_for desc, r.id desc) = 1
        ) as goes
    from job_run as r
    inner join schedule as s on r.schedule_id = s.id
    left join endpoint as e on s.tenant_id = e.tenant_id and s.origin = e.origin
    where r.state = 'planned' and r.held_by = 'breaker' and coalesce(e.state = 'closed', true)
),

placed as (
    select
        held.*,
        row_number() over (partition by held.tenant_id, held.origin, held.goes order by held.next_attempt_at, held.id) as place
    from held
),

seen as (
    select r.id, r.scheduled_for, p.goes, p.place
    from job_run as r
    inner join placed as p on r.id = p.id and r.scheduled_for = p.scheduled_for
    where r.state = 'planned' and r.held_by = 'breaker' and (p.place <= cast(:rate as bigint) or not p.goes)
    order by r.id
    for no key update of r
),

moved as (
    update job_run as r
    set
        held_by = null,
        state = case when seen.goes then 'planned' else 'cancelled' end,
        reason = case when not seen.goes then 'held' end,
        ended_at = case when not seen.goes then cast(:now as timestamptz) end,
        next_attempt_at = case
            when seen.goes
                then greatest(
                    r.next_attempt_at, cast(:now as timestamptz) + (seen.place - 1) * interval '1 minute' / cast(:rate as integer)
                )
            else r.next_attempt_at
        end
    from seen
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for
    returning r.id, r.schedule_id, r.tenant_id, r.scheduled_for, r.state
),

announced as (
    insert into outbox (id, type, tenant_id, detail, created_at)
    select
        gen_random_uuid(),
        'schedule.run.skipped',
        moved.tenant_id,
        jsonb_build_object(
            'schedule_id', moved.schedule_id, 'run_id', moved.id, 'scheduled_for', moved.scheduled_for, 'reason', 'held'
        ),
        :now
    from moved
    where moved.state = 'cancelled'
)

select
    count(*) filter (where moved.state = 'planned') as released,
    count(*) filter (where moved.state = 'cancelled') as dropped
from moved

-- name: miscounted
-- Loads that a crash or a lease's end left wrong; held, so that no claim or record changes them before they are counted.
select load.tenant_id
from tenant_load as load
left join
    (select r.tenant_id, count(*) as runs from job_run as r where r.state = 'delivering' group by r.tenant_id) as under_way
    on load.tenant_id = under_way.tenant_id
where load.in_flight <> coalesce(under_way.runs, 0)
order by load.tenant_id
for no key update of load

-- name: count_loads
update tenant_load as load
set in_flight = (select count(*) from job_run as r where r.state = 'delivering' and r.tenant_id = load.tenant_id)
where load.tenant_id = any(cast(:tenant_ids as uuid []))
