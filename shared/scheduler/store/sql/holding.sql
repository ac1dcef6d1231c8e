-- name: expire
-- Held runs that are older than their policy lasts. Theirs is the state in which the claim leaves what it holds: planned.
with due as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join schedule as s on r.schedule_id = s.id
    where r.state = 'planned'
        and r.trigger = 'schedule'
        and r.redelivered_at is null
        and r.held_by is null
        and r.scheduled_for <= :now
        and r.next_attempt_at <= :now
        and r.due_at <= cast(:now as timestamptz) - make_interval(
            secs => coalesce(cast(s.retry ->> 'max_age_seconds' as double precision), :default_age_seconds)
        )
        and (s.status in ('paused', 'disabled') or (r.scheduled_for < s.held_until and s.held_until > :now))
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
