-- name: take
-- Up to a tenth of a second's requests out of the tenant's bucket; none where it is empty. The bucket holds a second's. No row
-- for a tenant that is gone or being deleted.
insert into request_bucket as b (tenant_id, tokens, granted, refilled_at)
select t.id, t.requests_per_second - greatest(1, t.requests_per_second / 10), greatest(1, t.requests_per_second / 10), :now
from tenant as t
where t.id = :tenant_id and t.status <> 'deleted'
on conflict (tenant_id) do update
set
    (tokens, granted) = (
        select l.level - l.granted, l.granted
        from (
            select f.level, least(floor(f.level), greatest(1, f.rate / 10)) as granted
            from (
                select
                    t.requests_per_second as rate,
                    least(
                        t.requests_per_second,
                        b.tokens
                        + t.requests_per_second
                        * greatest(0, extract(epoch from cast(excluded.refilled_at as timestamptz) - b.refilled_at))
                    ) as level
                from tenant as t
                where t.id = b.tenant_id
            ) as f
        ) as l
    ),
    refilled_at = greatest(b.refilled_at, excluded.refilled_at)
returning b.granted, b.tokens

-- name: hurry
-- A bucket that forgets a few requests in a crash does no harm: nobody waits for the disk.
set local synchronous_commit = off

-- name: get
select max_schedules, min_interval_seconds, max_payload_bytes, requests_per_second
from tenant
where id = :tenant_id

-- name: set
update tenant
set
    max_schedules = coalesce(cast(:max_schedules as integer), max_schedules),
    min_interval_seconds = coalesce(cast(:min_interval_seconds as integer), min_interval_seconds),
    max_payload_bytes = coalesce(cast(:max_payload_bytes as integer), max_payload_bytes),
    requests_per_second = coalesce(cast(:requests_per_second as integer), requests_per_second)
where id = :tenant_id and status <> 'deleted'

-- name: count_schedules
-- Up to the limit, so that a large tenant pays no more than a small one.
select count(*) as schedules
from (
    select from schedule as s where s.tenant_id = :tenant_id and s.status <> 'deleted' limit :most
) as first_ones

-- name: usage
select
    (select count(*) from schedule as s where s.tenant_id = :tenant_id and s.status <> 'deleted') as schedules,
    (
        select jsonb_object_agg(by_state.state, by_state.runs)
        from (
            select r.state, count(*) as runs
            from job_run as r
            where r.tenant_id = :tenant_id and r.scheduled_for > :since and r.scheduled_for <= :now
            group by r.state
        ) as by_state
    ) as runs
