-- name: orders
-- What outcomes decided and nobody has carried out yet, oldest first.
select d.schedule_id, d.tenant_id, d.reason, d.decided_at
from disabling as d
order by d.decided_at
limit :most

-- name: announce
insert into outbox (id, type, tenant_id, detail, created_at)
select
    gen_random_uuid(),
    'schedule.disabled',
    d.tenant_id,
    jsonb_build_object('schedule_id', d.schedule_id, 'reason', d.reason),
    :now
from disabling as d
where d.schedule_id = :id

-- name: done
delete from disabling
where schedule_id = :id and decided_at = :decided_at
