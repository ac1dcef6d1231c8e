-- name: claim
-- One lease for each run of a batch that may be delivered now, and a verdict on every id that was asked for:
--   claimed    ours until lease_until, under the fencing token `attempt`
--   parked     held by a pause or a suspension: planned, the planner sends it again when it may go
--   early      due later than a second from now: left to the caller, who waits in SQS or parks it
--   suspect    an earlier claim left no outcome: to be claimed alone, so that it takes no neighbour with it
--   poisoned   five claims in a row left no outcome: failed
--   cancelled  its schedule or its tenant is gone
--   held       another worker has it, or is just looking at it
--   settled    ended before, or no such run
-- Planned runs are claimed too: a message can arrive before its run is marked as queued. Locks in id order: two batches
-- that share runs do not deadlock, the later one skips what it can't have.
with asked as (
    select a.id, a.scheduled_for
    from unnest(cast(:ids as uuid []), cast(:scheduled_for as timestamptz [])) as a (id, scheduled_for)
),

locked as (
    select r.*
    from job_run as r
    inner join asked on r.id = asked.id and r.scheduled_for = asked.scheduled_for
    where r.state in ('planned', 'queued', 'delivering')
    order by r.id
    for no key update of r skip locked
),

judged as (
    select
        l.*,
        s.url,
        s.headers,
        s.retry,
        s.retry_client_errors,
        coalesce(l.payload_version, s.payload_version) as body_version,
        case
            when l.state = 'delivering' and l.lease_until > :now then 'held'
            when s.status = 'deleted' or t.status = 'deleted' then 'cancelled'
            when t.status = 'suspended' then 'parked'
            when
                l.trigger = 'schedule'
                and l.redelivered_at is null
                and (
                    s.status in ('paused', 'disabled')
                    -- A pause with an end holds what was due before that.
                    or (l.scheduled_for < s.held_until and s.held_until > :now)
                )
                then 'parked'
            when l.next_attempt_at > cast(:now as timestamptz) + interval '1 second' then 'early'
            when l.unrecorded >= :poisoned_after then 'poisoned'
            when l.unrecorded > 0 and not cast(:alone as boolean) then 'suspect'
            else 'claimed'
        end as verdict
    from locked as l
    inner join schedule as s on l.schedule_id = s.id
    inner join tenant as t on l.tenant_id = t.id
),

moved as (
    update job_run as r
    set
        state = case j.verdict
            when 'claimed' then 'delivering' when 'parked' then 'planned' when 'poisoned' then 'failed' else 'cancelled'
        end,
        reason = case j.verdict when 'poisoned' then 'poisoned' when 'cancelled' then 'deleted' end,
        lease_until = case j.verdict when 'claimed' then cast(:lease_until as timestamptz) end,
        ended_at = case when j.verdict in ('poisoned', 'cancelled') then cast(:now as timestamptz) end,
        attempt = r.attempt + case j.verdict when 'claimed' then 1 else 0 end,
        unrecorded = r.unrecorded + case j.verdict when 'claimed' then 1 else 0 end,
        -- A mark that is still on its way must not queue what was parked here.
        sends = r.sends + case j.verdict when 'parked' then 1 else 0 end,
        payload_version = case j.verdict when 'claimed' then j.body_version else r.payload_version end
    from judged as j
    where r.id = j.id
        and r.scheduled_for = j.scheduled_for
        and j.verdict in ('claimed', 'parked', 'poisoned', 'cancelled')
    returning r.id, r.attempt
),

announced as (
    insert into outbox (id, type, tenant_id, detail, created_at)
    select
        gen_random_uuid(),
        'schedule.run.failed',
        j.tenant_id,
        jsonb_build_object(
            'schedule_id', j.schedule_id, 'run_id', j.id, 'scheduled_for', j.scheduled_for,
            'attempt', j.attempt, 'reason', 'poisoned'
        ),
        :now
    from judged as j
    where j.verdict = 'poisoned'
)

select
    asked.id,
    coalesce(
        j.verdict,
        case
            when
                exists (
                    select 1 from job_run as r
                    where r.id = asked.id and r.scheduled_for = asked.scheduled_for
                        and r.state in ('planned', 'queued', 'delivering')
                )
                then 'held'
            else 'settled'
        end
    ) as verdict,
    j.tenant_id,
    j.schedule_id,
    asked.scheduled_for,
    moved.attempt,
    j.failures,
    coalesce(j.redelivered_at, j.due_at) as counts_from,
    j.retry,
    j.retry_client_errors,
    j.due_at,
    j.next_attempt_at,
    j.url,
    j.headers,
    v.payload,
    array(
        select encode(k.ciphertext, 'base64')
        from signing_secret as k
        where k.tenant_id = j.tenant_id and (k.expires_at is null or k.expires_at > :now)
        order by k.created_at desc, k.id
    ) as secrets
from asked
left join judged as j on asked.id = j.id
left join moved on asked.id = moved.id
left join schedule_version as v on j.schedule_id = v.schedule_id and j.body_version = v.version

-- name: park
-- A run whose wait is too long for the queue goes back to planned; the planner's look-ahead sends it again.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join
        unnest(cast(:ids as uuid []), cast(:scheduled_for as timestamptz [])) as p (id, scheduled_for)
        on r.id = p.id and r.scheduled_for = p.scheduled_for
    where r.state in ('planned', 'queued') and r.next_attempt_at > :now
    order by r.id
    for no key update of r
)

update job_run as r
set state = 'planned', sends = r.sends + 1
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for

-- name: record
-- The outcomes of a batch's attempts, each guarded by its fencing token: a stale worker's result changes no run, though what
-- it did is logged. A lease that ran out does not void a result while nobody has claimed the run since. Without an outcome
-- nothing was tried: the lease is given back, and neither an attempt nor an event is made of it.
with outcome as (
    select o.*
    from
        unnest(
            cast(:ids as uuid []),
            cast(:scheduled_for as timestamptz []),
            cast(:attempts as integer []),
            cast(:states as text []),
            cast(:reasons as text []),
            cast(:failed as integer []),
            cast(:next_attempt_ats as timestamptz []),
            cast(:outcomes as text []),
            cast(:gone as boolean []),
            cast(:started_ats as timestamptz []),
            cast(:lateness_ms as bigint []),
            cast(:stages as text []),
            cast(:statuses as integer []),
            cast(:details as text []),
            cast(:response_headers as text []),
            cast(:response_bodies as text []),
            cast(:dns_ms as real []),
            cast(:connect_ms as real []),
            cast(:tls_ms as real []),
            cast(:first_byte_ms as real []),
            cast(:total_ms as real [])
        )
            as o (
                id, scheduled_for, attempt, state, reason, failed, next_attempt_at, outcome, gone, started_at, lateness_ms,
                stage, status, detail, response_headers, response_body,
                dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms
            )
),

seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join outcome as o on r.id = o.id and r.scheduled_for = o.scheduled_for and r.attempt = o.attempt
    where r.state in ('planned', 'queued', 'delivering')
    order by r.id
    for no key update of r
),

changed as (
    update job_run as r
    set
        state = o.state,
        reason = o.reason,
        failures = r.failures + o.failed,
        unrecorded = 0,
        lease_until = null,
        next_attempt_at = greatest(r.next_attempt_at, o.next_attempt_at),
        ended_at = case when o.state in ('succeeded', 'failed') then cast(:now as timestamptz) end,
        sends = r.sends + case o.state when 'planned' then 1 else 0 end
    from seen
    inner join outcome as o on seen.id = o.id and seen.scheduled_for = o.scheduled_for
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for
    returning r.id, r.scheduled_for, r.schedule_id, r.tenant_id, r.attempt, r.reason
),

logged as (
    insert into attempt (
        run_id, scheduled_for, attempt, started_at, lateness_ms, outcome, stage, status, detail,
        response_headers, response_body, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms
    )
    select
        o.id, o.scheduled_for, o.attempt, o.started_at, o.lateness_ms, o.outcome, o.stage, o.status, o.detail,
        cast(o.response_headers as jsonb), o.response_body, o.dns_ms, o.connect_ms, o.tls_ms, o.first_byte_ms, o.total_ms
    from outcome as o
    where o.outcome is not null
    on conflict (run_id, scheduled_for, attempt) do nothing
),

announced as (
    insert into outbox (id, type, tenant_id, detail, created_at)
    select
        gen_random_uuid(),
        'schedule.run.' || o.outcome,
        changed.tenant_id,
        jsonb_strip_nulls(jsonb_build_object(
            'schedule_id', changed.schedule_id, 'run_id', changed.id, 'scheduled_for', changed.scheduled_for,
            'attempt', changed.attempt, 'reason', changed.reason, 'stage', o.stage, 'status', o.status,
            'next_attempt_at', case o.outcome when 'retrying' then o.next_attempt_at end
        )),
        :now
    from changed
    inner join outcome as o on changed.id = o.id
    where o.outcome is not null
),

-- Carried out after the commit, under the schedule's own locks.
ordered as (
    insert into disabling (schedule_id, tenant_id, reason, decided_at)
    select distinct on (changed.schedule_id) changed.schedule_id, changed.tenant_id, 'gone', cast(:now as timestamptz)
    from changed
    inner join outcome as o on changed.id = o.id
    where o.gone
    order by changed.schedule_id
    on conflict (schedule_id) do nothing
    returning schedule_id
)

select changed.id, exists (select 1 from ordered where ordered.schedule_id = changed.schedule_id) as disables from changed

-- name: put_back
-- What reached the dead-letter queue decides nothing: an unfinished run is planned again. One under a live lease is in good
-- hands, and the sweep finds it if not.
with seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join
        unnest(cast(:ids as uuid []), cast(:scheduled_for as timestamptz [])) as p (id, scheduled_for)
        on r.id = p.id and r.scheduled_for = p.scheduled_for
    where r.state in ('planned', 'queued') or (r.state = 'delivering' and r.lease_until <= :now)
    order by r.id
    for no key update of r
)

update job_run as r
set state = 'planned', lease_until = null, sends = r.sends + 1, next_attempt_at = greatest(r.next_attempt_at, :now)
from seen
where r.id = seen.id and r.scheduled_for = seen.scheduled_for
returning r.id
