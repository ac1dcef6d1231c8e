-- name: expire
-- What is held for longer than its policy lasts, whoever holds it: a pause, a suspension, a breaker, an earlier run. Theirs is the
-- state in which the claim leaves what it holds: planned. Two halves, since each has an index of its own.
with held as (
    select r.id, r.scheduled_for, coalesce(r.redelivered_at, r.due_at) as counts_from, its_schedule.retry
    from job_run as r
    -- Row by row, behind a fence: a plan that began with the schedules would look for runs of each.
    cross join lateral (
        select
            s.retry,
            t.status = 'suspended'
            or held_by_schedule(r.trigger, r.redelivered_at, r.scheduled_for, s.status, s.held_until, :now) as held
        from schedule as s
        inner join tenant as t on s.tenant_id = t.id
        where s.id = r.schedule_id
        offset 0
    ) as its_schedule
    where r.state = 'planned'
        and r.held_by is null
        and r.scheduled_for <= :now
        and r.next_attempt_at <= :now
        and its_schedule.held
    union all
    select r.id, r.scheduled_for, coalesce(r.redelivered_at, r.due_at) as counts_from, s.retry
    from job_run as r
    inner join schedule as s on r.schedule_id = s.id
    where r.state = 'planned' and r.held_by is not null and r.scheduled_for <= :now and r.next_attempt_at <= :now
),

due as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join held on r.id = held.id and r.scheduled_for = held.scheduled_for
    where r.state = 'planned'
        and held.counts_from <= cast(:now as timestamptz) - make_interval(
            secs => coalesce(cast(held.retry ->> 'max_age_seconds' as double precision), :default_age_seconds)
        )
    order by r.id
    limit :most
    for no key update of r skip locked
),

ended as (
    update job_run as r
    set state = 'failed', reason = 'expired', ended_at = :now
    from due
    where r.id = due.id and r.scheduled_for = due.scheduled_for
    returning r.id, r.schedule_id, r.tenant_id, r.scheduled_for, r.attempt
)

insert into outbox (id, type, tenant_id, detail, created_at)
select
    gen_random_uuid(),
    'schedule.run.failed',
    ended.tenant_id,
    jsonb_build_object(
        'schedule_id', ended.schedule_id, 'run_id', ended.id, 'scheduled_for', ended.scheduled_for,
        'attempt', ended.attempt, 'reason', 'expired'
    ),
    :now
from ended
