-- name: claim
-- One lease for each run of a batch that may be delivered now, and a verdict on every id that was asked for:
--   claimed    ours until lease_until, under the fencing token `attempt`
--   parked     held by a pause or a suspension, or due so late that its message can't wait in the queue: planned, the planner
--              sends it again when it may go
--   early      due later than a second from now: its message waits in the queue
--   suspect    an earlier claim left no outcome: to be claimed alone, so that it takes no neighbour with it
--   poisoned   five claims in a row left no outcome: failed
--   cancelled  its schedule or its tenant is gone
--   busy       its tenant has as many deliveries under way as it may have: planned
--   barred     its endpoint's breaker is open, and another run probes it: planned, held until that closes
--   waiting    an earlier run of its schedule is in flight: planned, held until that one has ended
--   skipped    the same, and the schedule wants no run to wait, or as many wait as may: cancelled
--   held       another worker has it, or is just looking at it
--   settled    ended before, or no such run
-- Planned runs are claimed too: a message can arrive before its run is marked as queued.
-- Locks, here and in the record: runs in id order (two batches that share runs do not deadlock, the later one skips what it
-- can't have), then the tenants' loads, endpoints and turns, each in the order of its key, then the crowds of schedules.
-- All that is asked for lies in [:earliest, :latest]: said where runs are read or changed, it keeps the plan to those days'
-- partitions. A turn's run may be of any day: functions look at it, whose plans the session keeps.
-- The time is the database's, unless the caller states one; all events are the caller's to publish while its lease lasts.
with time as materialized (
    select t.now, t.now + cast(:lease as interval) as lease_until
    from (select database_time(cast(:now as timestamptz)) as now) as t
),

asked as (
    select a.id, a.scheduled_for, a.longest_wait
    from
        unnest(cast(:ids as uuid []), cast(:scheduled_for as timestamptz []), cast(:longest_waits as interval []))
            as a (id, scheduled_for, longest_wait)
),

locked as (
    select r.*, asked.longest_wait, time.now
    from job_run as r
    inner join asked on r.id = asked.id and r.scheduled_for = asked.scheduled_for
    cross join time
    where r.state in ('planned', 'queued', 'delivering') and r.scheduled_for between :earliest and :latest
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
        s.overlap_policy,
        s.origin,
        coalesce(l.payload_version, s.payload_version) as body_version,
        l.trigger <> 'schedule' or l.redelivered_at is not null as by_hand,
        coalesce(e.state <> 'closed', false) as probes,
        case
            when l.state = 'delivering' and l.lease_until > l.now then 'held'
            when s.status = 'deleted' or t.status = 'deleted' then 'cancelled'
            when t.status = 'suspended' then 'parked'
            when held_by_schedule(l.trigger, l.redelivered_at, l.scheduled_for, s.status, s.held_until, l.now) then 'parked'
            when l.next_attempt_at > l.now + greatest(l.longest_wait, interval '1 second') then 'parked'
            when l.next_attempt_at > l.now + interval '1 second' then 'early'
            when l.unrecorded >= :poisoned_after then 'poisoned'
            when l.unrecorded > 0 and not cast(:alone as boolean) then 'suspect'
            when e.state <> 'closed' and e.probe_at > l.now then 'barred'
            when
                s.overlap_policy <> 'allow'
                and exists (
                    select 1
                    from overlap_turn as o
                    where o.schedule_id = l.schedule_id
                        and o.run_id <> l.id
                        and holds_turn(o.run_id, o.scheduled_for, o.attempt)
                )
                then 'overlapped'
            else 'candidate'
        end as finding
    from locked as l
    inner join schedule as s on l.schedule_id = s.id
    inner join tenant as t on l.tenant_id = t.id
    left join endpoint as e on l.tenant_id = e.tenant_id and s.origin = e.origin
),

placed as (
    select
        j.*,
        row_number() over (partition by j.finding, j.schedule_id order by j.scheduled_for, j.id) as place_in_schedule,
        row_number() over (
            partition by j.finding, j.tenant_id, case when j.probes then j.origin else cast(j.id as text) end
            order by j.scheduled_for, j.id
        ) as place_at_endpoint
    from judged as j
),

-- Of a batch's candidates one goes for each schedule whose runs may not overlap, and one to each endpoint that is probed.
sifted as (
    select
        p.*,
        case
            when p.finding = 'candidate' and p.overlap_policy <> 'allow' and p.place_in_schedule > 1 then 'overlapped'
            when p.finding = 'candidate' and p.place_at_endpoint > 1 then 'barred'
            else p.finding
        end as sifted
    from placed as p
),

-- A conflict shows the row as it is now, not as this statement's snapshot has it: two claims never share a free place.
granted as (
    insert into tenant_load as load (tenant_id, in_flight, granted)
    select s.tenant_id, least(count(*), cast(:tenant_concurrency as bigint)), least(count(*), cast(:tenant_concurrency as bigint))
    from sifted as s
    where s.sifted = 'candidate'
    group by s.tenant_id
    order by s.tenant_id
    on conflict (tenant_id) do update
    set
        in_flight = load.in_flight + greatest(0, least(excluded.granted, cast(:tenant_concurrency as integer) - load.in_flight)),
        granted = greatest(0, least(excluded.granted, cast(:tenant_concurrency as integer) - load.in_flight))
    returning load.tenant_id, load.granted
),

admitted as (
    select
        s.*,
        s.sifted = 'candidate'
        and row_number() over (partition by s.tenant_id, s.sifted order by s.scheduled_for, s.id) <= g.granted as admitted
    from sifted as s
    left join granted as g on s.tenant_id = g.tenant_id
),

probed as (
    select e.tenant_id, e.origin, a.id, time.lease_until
    from endpoint as e
    inner join admitted as a on e.tenant_id = a.tenant_id and e.origin = a.origin
    cross join time
    where a.admitted and a.probes and e.state <> 'closed' and e.probe_at <= a.now
    order by e.tenant_id, e.origin
    for no key update of e
),

probing as (
    update endpoint as e
    set state = 'half_open', probe_at = p.lease_until, probe_run_id = p.id
    from probed as p
    where e.tenant_id = p.tenant_id and e.origin = p.origin
    returning p.id
),

cleared as (
    select a.id, a.schedule_id, a.scheduled_for, a.attempt, a.overlap_policy
    from admitted as a
    where a.admitted and (not a.probes or a.id in (select probing.id from probing))
),

-- The turn is taken by the row's unique key: two workers can't both pass. One whose run has ended without giving it back
-- (poisoned, cancelled, expired) is taken over: holds_turn looks at the run as it is, not as our snapshot has it.
turns as (
    insert into overlap_turn as turn (schedule_id, run_id, scheduled_for, attempt)
    select c.schedule_id, c.id, c.scheduled_for, c.attempt + 1
    from cleared as c
    where c.overlap_policy <> 'allow'
    order by c.schedule_id
    on conflict (schedule_id) do update
    set run_id = excluded.run_id, scheduled_for = excluded.scheduled_for, attempt = excluded.attempt
    where turn.run_id = excluded.run_id or not holds_turn(turn.run_id, turn.scheduled_for, turn.attempt)
    returning turn.run_id
),

ruled as (
    select
        a.*,
        case
            when a.sifted not in ('candidate', 'overlapped') then a.sifted
            when a.sifted = 'candidate' and not a.admitted then 'busy'
            when a.sifted = 'candidate' and a.probes and a.id not in (select probing.id from probing) then 'barred'
            when a.sifted = 'candidate' and (a.overlap_policy = 'allow' or a.id in (select turns.run_id from turns))
                then 'claimed'
            when a.by_hand then 'waiting'
            when a.overlap_policy = 'queue' then 'queueing'
            else 'skipped'
        end as ruling
    from admitted as a
),

-- Counted under a lock for each schedule that is kept until the commit: workers that judge at once count each other's.
crowds as materialized (
    select q.schedule_id, runs_that_wait(q.schedule_id, cast(:ids as uuid [])) as waiting
    from (select distinct u.schedule_id from ruled as u where u.ruling = 'queueing') as q
    order by q.schedule_id
),

decided as (
    select
        u.*,
        case
            when u.ruling <> 'queueing' then u.ruling
            when
                c.waiting + row_number() over (partition by u.schedule_id, u.ruling order by u.scheduled_for, u.id)
                <= cast(:most_waiting as bigint)
                then 'waiting'
            else 'skipped'
        end as verdict
    from ruled as u
    left join crowds as c on u.schedule_id = c.schedule_id
),

moved as (
    update job_run as r
    set
        state = case
            when d.verdict = 'claimed' then 'delivering'
            when d.verdict = 'poisoned' then 'failed'
            when d.verdict in ('cancelled', 'skipped') then 'cancelled'
            else 'planned'
        end,
        reason = case d.verdict when 'poisoned' then 'poisoned' when 'cancelled' then 'deleted' when 'skipped' then 'overlap' end,
        held_by = case d.verdict when 'waiting' then 'overlap' when 'barred' then 'breaker' end,
        lease_until = case d.verdict when 'claimed' then time.lease_until end,
        ended_at = case when d.verdict in ('poisoned', 'cancelled', 'skipped') then d.now end,
        attempt = r.attempt + case d.verdict when 'claimed' then 1 else 0 end,
        unrecorded = r.unrecorded + case d.verdict when 'claimed' then 1 else 0 end,
        -- A mark that is still on its way must not queue what was put back here.
        sends = r.sends + case when d.verdict in ('parked', 'busy', 'barred', 'waiting') then 1 else 0 end,
        payload_version = case d.verdict when 'claimed' then d.body_version else r.payload_version end
    from decided as d
    cross join time
    where r.id = d.id
        and r.scheduled_for = d.scheduled_for
        and r.scheduled_for between :earliest and :latest
        and d.verdict not in ('held', 'early', 'suspect')
    returning r.id, r.attempt
),

announced as (
    insert into outbox (id, type, tenant_id, detail, created_at, held_until)
    select
        gen_random_uuid(),
        case d.verdict when 'poisoned' then 'schedule.run.failed' else 'schedule.run.skipped' end,
        d.tenant_id,
        jsonb_strip_nulls(jsonb_build_object(
            'schedule_id', d.schedule_id, 'run_id', d.id, 'scheduled_for', d.scheduled_for,
            'attempt', case d.verdict when 'poisoned' then d.attempt end,
            'reason', case d.verdict when 'poisoned' then 'poisoned' else 'overlap' end
        )),
        d.now,
        time.lease_until
    from decided as d
    cross join time
    where d.verdict in ('poisoned', 'skipped')
    returning id, type, tenant_id, detail
)

select
    asked.id,
    coalesce(
        d.verdict,
        case
            when
                exists (
                    select 1 from job_run as r
                    where r.id = asked.id
                        and r.scheduled_for = asked.scheduled_for
                        and r.scheduled_for between :earliest and :latest
                        and r.state in ('planned', 'queued', 'delivering')
                )
                then 'held'
            else 'settled'
        end
    ) as verdict,
    time.now,
    d.tenant_id,
    d.schedule_id,
    asked.scheduled_for,
    moved.attempt,
    d.failures,
    coalesce(d.redelivered_at, d.due_at) as counts_from,
    d.retry,
    d.retry_client_errors,
    d.due_at,
    d.next_attempt_at,
    d.url,
    d.origin,
    d.headers,
    v.payload,
    array(
        select encode(k.ciphertext, 'base64')
        from signing_secret as k
        where k.tenant_id = d.tenant_id and (k.expires_at is null or k.expires_at > time.now)
        order by k.created_at desc, k.id
    ) as secrets,
    (select jsonb_agg(announced) from announced) as events
from asked
cross join time
left join decided as d on asked.id = d.id
left join moved on asked.id = moved.id
left join schedule_version as v on d.schedule_id = v.schedule_id and d.body_version = v.version

-- name: record
-- The outcomes of a batch's attempts, each guarded by its fencing token: a stale worker's result changes no run, though what
-- it did is logged. A lease that ran out does not void a result while nobody has claimed the run since. Without an outcome
-- nothing was tried: the lease is given back, no attempt is made of it, and an event only where its age has ended the run.
-- Whoever ends a run that others of its schedule wait for wakes the next of them, here and for good: where nobody lives to send
-- it, the planner does. The events are the caller's to publish until :held_until.
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
            cast(:origins as text []),
            cast(:unhealthy as integer []),
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
                id, scheduled_for, attempt, state, reason, failed, next_attempt_at, outcome, gone, origin, unhealthy,
                started_at, lateness_ms, stage, status, detail, response_headers, response_body,
                dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms
            )
),

seen as (
    select r.id, r.scheduled_for
    from job_run as r
    inner join outcome as o on r.id = o.id and r.scheduled_for = o.scheduled_for and r.attempt = o.attempt
    where r.state in ('planned', 'queued', 'delivering')
        and r.scheduled_for between :earliest and :latest
        -- Recorded before, by a statement whose answer was lost: a failure counts once.
        and not exists (
            select from attempt as a
            where a.run_id = o.id
                and a.scheduled_for = o.scheduled_for
                and a.scheduled_for between :earliest and :latest
                and a.attempt = o.attempt
        )
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
    where r.id = seen.id and r.scheduled_for = seen.scheduled_for and r.scheduled_for between :earliest and :latest
    returning r.id, r.scheduled_for, r.schedule_id, r.tenant_id, r.attempt, r.reason, r.state, old.state as was
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
    insert into outbox (id, type, tenant_id, detail, created_at, held_until)
    select
        gen_random_uuid(),
        'schedule.run.' || coalesce(o.outcome, 'failed'),
        changed.tenant_id,
        jsonb_strip_nulls(jsonb_build_object(
            'schedule_id', changed.schedule_id, 'run_id', changed.id, 'scheduled_for', changed.scheduled_for,
            'attempt', changed.attempt, 'reason', changed.reason, 'stage', o.stage, 'status', o.status,
            'next_attempt_at', case o.outcome when 'retrying' then o.next_attempt_at end
        )),
        :now,
        :held_until
    from changed
    inner join outcome as o on changed.id = o.id
    where o.outcome is not null or changed.state = 'failed'
    returning id, type, tenant_id, detail
),

eased as (
    select load.tenant_id, c.ended
    from tenant_load as load
    inner join
        (select changed.tenant_id, count(*) as ended from changed where changed.was = 'delivering' group by 1) as c
        on load.tenant_id = c.tenant_id
    order by load.tenant_id
    for no key update of load
),

unloaded as (
    update tenant_load as load
    set in_flight = greatest(0, load.in_flight - eased.ended)
    from eased
    where load.tenant_id = eased.tenant_id
    returning load.tenant_id
),

-- What the batch says of each endpoint. One that was well and is well costs no write.
tally as (
    select
        changed.tenant_id,
        o.origin,
        count(*) as attempts,
        sum(o.unhealthy) as failures,
        bool_or(o.outcome = 'succeeded') as acknowledged,
        bool_or(e.state = 'half_open' and e.probe_run_id = changed.id) as probed
    from changed
    inner join outcome as o on changed.id = o.id
    left join endpoint as e on changed.tenant_id = e.tenant_id and o.origin = e.origin
    -- The loads first: all who lock these tables do it in one order.
    where o.outcome is not null and o.origin is not null and (select count(*) from unloaded) >= 0
    group by changed.tenant_id, o.origin
    having bool_or(o.outcome <> 'succeeded')
        or bool_or(e.state <> 'closed')
        or bool_or(e.failing_since is not null)
        or bool_or(e.failures > 0 and e.window_started_at > cast(:now as timestamptz) - cast(:breaker_window as interval))
),

-- The rows as they are now, not as this statement's snapshot has them.
known as (
    select e.*
    from endpoint as e
    inner join tally on e.tenant_id = tally.tenant_id and e.origin = tally.origin
    order by e.tenant_id, e.origin
    for no key update of e
),

counted as (
    select
        tally.tenant_id,
        tally.origin,
        coalesce(known.state, 'closed') as state,
        coalesce(known.trips, 0) as trips,
        known.probe_at,
        known.probe_run_id,
        known.warned_at,
        tally.acknowledged,
        tally.attempts > tally.failures as healthy,
        coalesce(known.state = 'half_open' and tally.probed, false) as probed,
        case when w.goes_on then known.window_started_at else cast(:now as timestamptz) end as window_started_at,
        case when w.goes_on then known.attempts else 0 end + tally.attempts as attempts,
        case when w.goes_on then known.failures else 0 end + tally.failures as failures,
        case when not tally.acknowledged then coalesce(known.failing_since, cast(:now as timestamptz)) end as failing_since
    from tally
    left join known on tally.tenant_id = known.tenant_id and tally.origin = known.origin
    cross join lateral (
        select
            coalesce(known.window_started_at > cast(:now as timestamptz) - cast(:breaker_window as interval), false) as goes_on
    ) as w
),

ruled as (
    select
        c.*,
        case
            when
                c.state = 'closed'
                and c.attempts >= cast(:breaker_volume as integer)
                and c.failures >= cast(:breaker_ratio as double precision) * c.attempts
                then 'open'
            when c.state = 'closed' or c.healthy then 'closed'
            when c.probed then 'open'
            else c.state
        end as next_state,
        coalesce(c.failing_since <= cast(:now as timestamptz) - cast(:failing_for as interval), false) as fails_for_good,
        coalesce(
            c.warned_at is null
            and c.failing_since <= cast(:now as timestamptz) - cast(:failing_for as interval) / 2
            and c.failing_since > cast(:now as timestamptz) - cast(:failing_for as interval),
            false
        ) as warns
    from counted as c
),

turned as (
    select
        r.*,
        r.next_state = 'open' and (r.state = 'closed' or r.probed) as trips_now,
        r.next_state = 'closed' and r.state <> 'closed' as closes_now,
        cast(:now as timestamptz)
        + least(cast(:longest_wait as interval), cast(:first_wait as interval) * power(2, least(r.trips, 16))) as waits_until
    from ruled as r
),

kept as (
    insert into endpoint (
        tenant_id, origin, state, window_started_at, attempts, failures, trips, probe_at, probe_run_id, failing_since, warned_at
    )
    select
        n.tenant_id,
        n.origin,
        n.next_state,
        case when n.trips_now or n.closes_now then cast(:now as timestamptz) else n.window_started_at end,
        case when n.trips_now or n.closes_now then 0 else n.attempts end,
        case when n.trips_now or n.closes_now then 0 else n.failures end,
        case when n.trips_now then n.trips + 1 when n.next_state = 'closed' then 0 else n.trips end,
        case when n.trips_now then n.waits_until when n.next_state <> 'closed' then n.probe_at end,
        case when n.next_state = 'half_open' then n.probe_run_id end,
        -- Disabled once, its schedules have the whole time again when they are resumed.
        case when n.fails_for_good then cast(:now as timestamptz) else n.failing_since end,
        case when n.warns then cast(:now as timestamptz) when not n.acknowledged and not n.fails_for_good then n.warned_at end
    from turned as n
    order by n.tenant_id, n.origin
    -- A row that was not known is another's, made at the same moment of the same trouble: what that one has opened stays open,
    -- and is told once.
    on conflict (tenant_id, origin) do update
    set
        state = excluded.state,
        window_started_at = excluded.window_started_at,
        attempts = excluded.attempts,
        failures = excluded.failures,
        trips = excluded.trips,
        probe_at = excluded.probe_at,
        probe_run_id = excluded.probe_run_id,
        failing_since = excluded.failing_since,
        warned_at = excluded.warned_at
    where endpoint.state = 'closed'
        or exists (select from known where known.tenant_id = endpoint.tenant_id and known.origin = endpoint.origin)
    returning tenant_id, origin
),

cried as (
    insert into outbox (id, type, tenant_id, detail, created_at, held_until)
    select
        gen_random_uuid(),
        c.type,
        n.tenant_id,
        jsonb_strip_nulls(jsonb_build_object(
            'origin', n.origin,
            'probe_at', case c.type when 'endpoint.opened' then n.waits_until end,
            'failing_since', case c.type when 'endpoint.failing' then n.failing_since end,
            'disables_at', case c.type when 'endpoint.failing' then n.failing_since + cast(:failing_for as interval) end
        )),
        :now,
        :held_until
    from turned as n
    inner join kept on n.tenant_id = kept.tenant_id and n.origin = kept.origin
    inner join
        (values ('endpoint.opened'), ('endpoint.closed'), ('endpoint.failing')) as c (type)
        on case c.type
            when 'endpoint.opened' then n.trips_now and n.state = 'closed'
            when 'endpoint.closed' then n.closes_now
            else n.warns
        end
    returning id, type, tenant_id, detail
),

-- Carried out after the commit, under the schedule's own locks.
ordered as (
    insert into disabling (schedule_id, tenant_id, reason, decided_at)
    select d.schedule_id, d.tenant_id, min(d.reason), cast(:now as timestamptz)
    from (
        select changed.schedule_id, changed.tenant_id, 'gone' as reason
        from changed
        inner join outcome as o on changed.id = o.id
        where o.gone
        union all
        select s.id, s.tenant_id, 'endpoint_failing'
        from turned as n
        inner join schedule as s on n.tenant_id = s.tenant_id and n.origin = s.origin
        where n.fails_for_good and s.status = 'active'
    ) as d
    group by d.schedule_id, d.tenant_id
    order by d.schedule_id
    -- The newest order counts: what the tenant changed after an older one does not overrule it.
    on conflict (schedule_id) do update
    set reason = excluded.reason, decided_at = greatest(disabling.decided_at, excluded.decided_at)
    returning schedule_id
),

given_up as (
    select o.schedule_id
    from overlap_turn as o
    inner join changed on o.run_id = changed.id and o.scheduled_for = changed.scheduled_for
    where changed.state in ('succeeded', 'failed') and (select count(*) from kept) >= 0
    order by o.schedule_id
    for update of o
),

-- The turn passes to the run that has waited longest: one that becomes due before that is claimed does not overtake it.
woken as (
    select w.id, w.schedule_id, w.scheduled_for, w.tenant_id, w.attempt, w.next_attempt_at
    from given_up
    inner join schedule as s on given_up.schedule_id = s.id
    cross join lateral wake_next_run(given_up.schedule_id) as w
    where s.status = 'active'
),

passed_on as (
    update overlap_turn as o
    set run_id = woken.id, scheduled_for = woken.scheduled_for, attempt = woken.attempt
    from woken
    where o.schedule_id = woken.schedule_id
),

freed as (
    delete from overlap_turn as o
    using given_up
    where o.schedule_id = given_up.schedule_id
        and not exists (select from woken where woken.schedule_id = given_up.schedule_id)
)

select
    changed.id,
    exists (select 1 from ordered) as disables,
    (select jsonb_agg(woken) from woken) as woken,
    (
        select jsonb_agg(e)
        from (select announced.* from announced union all select cried.* from cried) as e
    ) as events
from changed

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
