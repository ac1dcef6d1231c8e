alter table tenant
-- What it may have and do; an operator sets them.
add max_schedules integer not null default 10000 constraint tenant_max_schedules check (max_schedules between 0 and 10000000),
add min_interval_seconds integer not null default 10
constraint tenant_min_interval check (min_interval_seconds between 1 and 86400),
add max_payload_bytes integer not null default 262144
constraint tenant_max_payload check (max_payload_bytes between 0 and 262144),
add requests_per_second integer not null default 50
constraint tenant_requests check (requests_per_second between 1 and 1000000);

-- A tenant's requests that may still be made: full after a second without any. The sandboxes of the API take from it.
create table request_bucket (
    tenant_id uuid primary key references tenant on delete cascade,
    tokens double precision not null,
    -- What the last taker got.
    granted integer not null,
    refilled_at instant not null
) with (fillfactor = 50);

alter table api_key
add name text constraint api_key_name_length check (length(name) between 1 and 200),
-- To the minute: it is not worth a write at each request.
add last_used_at instant;

alter table schedule
add description text constraint schedule_description_length check (length(description) between 1 and 1000),
add labels jsonb not null default '{}' constraint schedule_labels check (jsonb_typeof(labels) = 'object');
create index schedule_labelled on schedule using gin (labels jsonb_path_ops) where status <> 'deleted';

-- The newest runs of a tenant, whatever their schedule.
create index job_run_of_tenant on job_run (tenant_id, scheduled_for, id);

-- What was answered to a POST that named itself, for a day. Written in the transaction that did the work.
create table idempotent_request (
    tenant_id uuid not null references tenant on delete cascade,
    key text not null constraint idempotent_request_key_length check (length(key) between 1 and 255),
    -- SHA-256 of the method, the path and the body.
    fingerprint bytea not null constraint idempotent_request_fingerprint check (length(fingerprint) = 32),
    status integer,
    headers jsonb,
    body bytea,
    -- The body is encrypted with the signing key: it shows a credential.
    sealed boolean not null default false,
    created_at instant not null,
    primary key (tenant_id, key)
);
create index idempotent_request_oldest on idempotent_request (created_at);

-- What operators did: append only, and without a reference, so that it outlives the tenant.
create table admin_action (
    id bigint generated always as identity primary key,
    at instant not null,
    operator text not null,
    action text not null,
    tenant_id uuid,
    detail jsonb not null
);

-- The second wall. A transaction that is bound to a tenant (app.tenant, set for that transaction) sees and changes that tenant's
-- rows alone, whatever its statement says; one that is bound to none, as the planner's, all. Each policy reads the setting once
-- a statement, in a subquery, and is forced upon the tables' owner too.
create function bound_tenant() returns uuid stable parallel safe language sql
return cast(nullif(current_setting('app.tenant', true), '') as uuid);

do $$
declare
    name text;
begin
    foreach name in array array[
        'schedule', 'job_run', 'skipped_range', 'api_key', 'signing_secret', 'exclusion_list', 'idempotent_request',
        'request_bucket', 'outbox', 'endpoint', 'tenant_load', 'disabling'
    ] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format(
            'create policy own_rows on %I using ((select bound_tenant()) is null or tenant_id = (select bound_tenant()))', name
        );
    end loop;
end
$$;

alter table tenant enable row level security, force row level security;
create policy own_rows on tenant using ((select bound_tenant()) is null or id = (select bound_tenant()));

-- Rows that name no tenant are as visible as what they belong to.
alter table schedule_version enable row level security, force row level security;
create policy own_rows on schedule_version
using ((select bound_tenant()) is null or exists (select from schedule as s where s.id = schedule_id));

alter table attempt enable row level security, force row level security;
create policy own_rows on attempt using (
    (select bound_tenant()) is null
    or exists (select from job_run as r where r.id = run_id and r.scheduled_for = attempt.scheduled_for)
);
