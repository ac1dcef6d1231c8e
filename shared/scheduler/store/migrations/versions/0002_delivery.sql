alter table schedule
    -- The retry policy as its tenant wrote it; what it leaves out has the default.
    add column retry jsonb not null default '{}',
    add column retry_client_errors boolean not null default true,
    -- What becomes of a run that is due while an earlier one is in flight.
    add column overlap_policy text not null default 'allow'
    constraint schedule_overlap_policy check (overlap_policy in ('allow', 'skip', 'queue')),
    -- What becomes of the runs that an open breaker held, once it closes.
    add column after_outage text not null default 'all'
    constraint schedule_after_outage check (after_outage in ('all', 'latest', 'none')),
    -- Scheme, host and port of the URL, the default port left out: what a breaker judges.
    add column origin text generated always as (
        regexp_replace(
            lower(substring(url from '^[A-Za-z]+://[^/?#]+')), '^(https://.*):443$|^(http://.*):80$', '\1\2'
        )
    ) stored;
create index schedule_of_endpoint on schedule (tenant_id, origin) where status <> 'deleted';

alter table job_run
    -- Why a planned run is not sent, though it is due. Says nothing of one in another state.
    add column held_by text,
    -- When somebody asked for it anew: its policy counts from here, and neither pause nor disabling holds it.
    add column redelivered_at instant,
    add constraint job_run_held_by check (held_by in ('overlap', 'breaker')),
    drop constraint job_run_reason,
    add constraint job_run_reason check (
        case state
            when 'failed' then reason in ('exhausted', 'rejected', 'poisoned', 'expired')
            when 'cancelled' then reason in ('deleted', 'by_hand', 'overlap', 'held')
            else reason is null
        end
    );
drop index job_run_planned;
create index job_run_planned on job_run (next_attempt_at, id) where state = 'planned' and held_by is null;
create index job_run_held on job_run (schedule_id, scheduled_for) where state = 'planned' and held_by is not null;
drop index job_run_queued;
create index job_run_queued on job_run (next_attempt_at) include (tenant_id) where state = 'queued';

-- Of a schedule whose runs may not overlap: the run that is in flight, under the attempt that its claim gave it. One row a
-- schedule, so that two workers can't both pass.
create table overlap_turn (
    schedule_id uuid primary key,
    run_id uuid not null,
    scheduled_for instant not null,
    attempt integer not null
);
create index overlap_turn_of_run on overlap_turn (run_id);

-- How many runs of a tenant are being posted, and how many of its last claim were let through.
create table tenant_load (
    tenant_id uuid primary key,
    in_flight integer not null constraint tenant_load_counts check (in_flight >= 0),
    granted integer not null
) with (fillfactor = 50);

-- One tenant's view of one origin, kept from its first failure on.
create table endpoint (
    tenant_id uuid not null,
    origin text not null,
    state text not null constraint endpoint_state check (state in ('closed', 'open', 'half_open')),
    -- What the current window saw.
    window_started_at instant not null,
    attempts integer not null,
    failures integer not null,
    -- How often in a row it opened: the wait for the next probe doubles with it.
    trips integer not null,
    -- While open: when a probe may go. While half open: when the probe's lease ends.
    probe_at instant,
    probe_run_id uuid,
    -- No 2xx since then; and when its tenant was warned of it.
    failing_since instant,
    warned_at instant,
    primary key (tenant_id, origin),
    constraint endpoint_probe check ((state = 'closed') = (probe_at is null))
) with (fillfactor = 50);
create index endpoint_not_closed on endpoint (probe_at) where state <> 'closed';

-- Schedules that a recorded outcome wants disabled: decided with the outcome, carried out under the schedule's own locks.
create table disabling (
    schedule_id uuid primary key,
    tenant_id uuid not null,
    reason text not null constraint disabling_reason check (reason in ('gone', 'endpoint_failing')),
    decided_at instant not null
);

create index job_run_failed on job_run (tenant_id, scheduled_for) where state = 'failed';
