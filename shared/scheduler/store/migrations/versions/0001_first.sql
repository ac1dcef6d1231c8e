-- Every stored point in time is one a calendar can hold: no infinity, nothing before 1970 or after 9998.
create domain instant as timestamptz
    constraint instant_is_bounded check (value >= '1970-01-01 00:00:00+00' and value < '9999-01-01 00:00:00+00');

create table tenant (
    id uuid primary key,
    name text not null constraint tenant_name_length check (length(name) between 1 and 200),
    status text not null constraint tenant_status check (status in ('active', 'suspended', 'deleted')),
    created_at instant not null
);

create table api_key (
    id uuid primary key,
    tenant_id uuid not null references tenant,
    -- What may be shown of the key; the key itself is nowhere.
    prefix text not null,
    hash bytea not null constraint api_key_hash_is_sha256 check (length(hash) = 32),
    scopes text [] not null constraint api_key_scopes check (scopes <@ array['read', 'write', 'admin']),
    created_at instant not null,
    expires_at instant,
    revoked_at instant,
    constraint api_key_once unique (hash)
);
create index api_key_of_tenant on api_key (tenant_id);

create table signing_secret (
    id uuid primary key,
    tenant_id uuid not null references tenant,
    ciphertext bytea not null,
    created_at instant not null,
    -- Set when it was replaced: signed with until then.
    expires_at instant
);
create index signing_secret_of_tenant on signing_secret (tenant_id);

-- One row for each distinct calendar; the cursor belongs to it, not to the schedules that share it.
create table calendar (
    id bigint generated always as identity primary key,
    kind text not null constraint calendar_kind check (kind in ('cron', 'rate', 'at')),
    expression text not null,
    timezone text not null,
    gap text not null constraint calendar_gap check (gap in ('shift', 'skip')),
    overlap text not null constraint calendar_overlap check (overlap in ('first', 'last', 'both')),
    -- A rate's first occurrence in Unix seconds, modulo its period, so that rates share rows too; 0 otherwise.
    anchor bigint not null,
    -- Every occurrence up to here is a run or inside a skipped range. Never moves back.
    planned_through instant not null,
    -- The first occurrence after planned_through; null when there is none.
    next_fire_at instant,
    tzdata_version text not null,
    -- A calendar that could not be computed waits here for a person; it stops no tick.
    set_aside_at instant,
    set_aside_reason text,
    constraint calendar_once unique (kind, expression, timezone, gap, overlap, anchor),
    constraint calendar_fires_after_cursor check (next_fire_at > planned_through),
    constraint calendar_set_aside check ((set_aside_at is null) = (set_aside_reason is null))
);
create index calendar_due on calendar (next_fire_at) where set_aside_at is null;

create table schedule (
    id uuid primary key,
    tenant_id uuid not null references tenant,
    name text constraint schedule_name_length check (length(name) between 1 and 200),
    status text not null constraint schedule_status check (status in ('active', 'paused', 'disabled', 'deleted')),
    version integer not null,
    -- The version that holds the payload in force.
    payload_version integer not null,
    -- When it fires, as the tenant wrote it; the calendar is its canonical form.
    timing jsonb not null,
    calendar_id bigint not null references calendar,
    -- The half-open window of its occurrences: active_from <= occurrence < end_at.
    active_from instant not null,
    end_at instant,
    misfire text not null constraint schedule_misfire check (misfire in ('all', 'latest', 'skip')),
    misfire_grace_seconds integer not null constraint schedule_misfire_grace check (misfire_grace_seconds between 0 and 86400),
    misfire_cap integer not null constraint schedule_misfire_cap check (misfire_cap between 1 and 1000),
    url text not null,
    headers jsonb not null,
    created_at instant not null,
    updated_at instant not null
);
create unique index schedule_name_once on schedule (tenant_id, name) where status <> 'deleted';
create index schedule_on_calendar on schedule (calendar_id) where status = 'active';
create index schedule_of_tenant on schedule (tenant_id, created_at, id) where status <> 'deleted';

-- Append only: who changed what, when. The audit recomputes what was owed from it.
create table schedule_version (
    schedule_id uuid not null references schedule,
    version integer not null,
    change text not null
    constraint schedule_version_change check (change in ('created', 'edited', 'paused', 'resumed', 'deleted', 'disabled')),
    changed_at instant not null,
    changed_by text not null,
    status text not null,
    timing jsonb not null,
    calendar_id bigint not null references calendar,
    active_from instant not null,
    end_at instant,
    -- The bytes to POST, where this version set them; the default body where it set none.
    payload bytea,
    primary key (schedule_id, version)
);

-- One row for each occurrence, for ever unique. Partitioned by day; no foreign keys, so that planning writes no other row.
create table job_run (
    id uuid not null,
    schedule_id uuid not null,
    scheduled_for instant not null,
    tenant_id uuid not null,
    state text not null
    constraint job_run_state check (state in ('planned', 'queued', 'delivering', 'succeeded', 'failed', 'cancelled')),
    reason text,
    due_at instant not null,
    next_attempt_at instant not null,
    lease_until instant,
    -- +1 at each claim: X-Attempt, and the fencing token.
    attempt integer not null default 0,
    -- Recorded failed attempts: the only number that the retry policy counts.
    failures integer not null default 0,
    -- Claims in a row without a recorded outcome: the only number that calls a run poisoned.
    unrecorded integer not null default 0,
    -- Messages sent for it.
    sends integer not null default 0,
    schedule_version integer not null,
    -- Fixed by the first claim, so that the body is the same on all attempts.
    payload_version integer,
    tzdata_version text not null,
    trigger text not null constraint job_run_trigger check (trigger in ('schedule', 'manual', 'backfill')),
    created_at instant not null,
    ended_at instant,
    primary key (id, scheduled_for),
    -- The contract: materialised exactly once.
    constraint job_run_once unique (schedule_id, scheduled_for),
    -- The id alone finds the partition.
    constraint job_run_id_embeds_scheduled_for check (uuid_extract_timestamp(id) = scheduled_for),
    constraint job_run_whole_seconds check (scheduled_for = date_trunc('second', scheduled_for, 'UTC')),
    constraint job_run_never_early check (due_at >= scheduled_for and next_attempt_at >= due_at),
    constraint job_run_lease check ((state = 'delivering') = (lease_until is not null)),
    constraint job_run_ended check ((state in ('succeeded', 'failed', 'cancelled')) = (ended_at is not null)),
    constraint job_run_reason check (
        case state
            when 'failed' then reason in ('exhausted', 'rejected', 'poisoned', 'expired')
            when 'cancelled' then reason in ('deleted', 'by_hand', 'overlap')
            else reason is null
        end
    )
) partition by range (scheduled_for);
create index job_run_planned on job_run (next_attempt_at, id) where state = 'planned';
create index job_run_queued on job_run (next_attempt_at) where state = 'queued';
create index job_run_delivering on job_run (lease_until) where state = 'delivering';

-- One row for each POST that was tried. Dropped with the run's partition.
create table attempt (
    run_id uuid not null,
    scheduled_for instant not null,
    attempt integer not null,
    started_at instant not null,
    lateness_ms bigint not null,
    outcome text not null constraint attempt_outcome check (outcome in ('succeeded', 'retrying', 'failed')),
    stage text,
    status integer constraint attempt_status check (status between 100 and 999),
    detail text,
    response_headers jsonb not null,
    response_body text not null,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    total_ms real not null,
    primary key (run_id, scheduled_for, attempt)
) partition by range (scheduled_for);

-- What was expected and is not a run: a range of occurrences with its reason, both ends included.
create table skipped_range (
    id bigint generated always as identity primary key,
    schedule_id uuid not null references schedule,
    tenant_id uuid not null,
    first_scheduled_for instant not null,
    last_scheduled_for instant not null,
    occurrences bigint not null constraint skipped_range_counts check (occurrences > 0),
    reason text not null
    constraint skipped_range_reason
    check (reason in ('missed', 'paused', 'overlap', 'excluded', 'held', 'ended', 'over_quota')),
    recorded_at instant not null,
    constraint skipped_range_ordered check (first_scheduled_for <= last_scheduled_for)
);
create index skipped_range_of_schedule on skipped_range (schedule_id, last_scheduled_for);

-- Events that were decided in a transaction and are published after it; a row goes when the bus took it.
create table outbox (
    id uuid primary key,
    type text not null,
    tenant_id uuid not null,
    detail jsonb not null,
    created_at instant not null
);
create index outbox_oldest on outbox (created_at);

-- Makes the daily partitions of [first_day, last_day] that are missing; returns how many days it made.
create function make_partitions(first_day date, last_day date) returns integer language plpgsql as $$
declare
    partitioned text;
    day date;
    made integer := 0;
    name text;
begin
    for day in select d::date from generate_series(first_day, last_day, interval '1 day') as d loop
        foreach partitioned in array array['job_run', 'attempt'] loop
            name := partitioned || '_' || to_char(day, 'YYYYMMDD');
            if to_regclass(name) is null then
                execute format(
                    'create table %I partition of %I for values from (%L) to (%L)',
                    name, partitioned, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00'
                );
                made := made + 1;
            end if;
        end loop;
    end loop;
    return made;
end
$$;

-- Drops one day of runs and their attempts.
create function drop_partitions(day date) returns void language plpgsql as $$
begin
    execute format('drop table %I', 'job_run_' || to_char(day, 'YYYYMMDD'));
    execute format('drop table %I', 'attempt_' || to_char(day, 'YYYYMMDD'));
end
$$;
