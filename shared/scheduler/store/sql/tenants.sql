-- name: insert
insert into tenant (id, name, status, created_at)
values (:id, :name, 'active', :now)

-- name: hold
select max_schedules
from tenant
where id = :tenant_id and status <> 'deleted'
for no key update

-- name: insert_key
insert into api_key (id, tenant_id, prefix, hash, scopes, created_at)
values (:id, :tenant_id, :prefix, :hash, :scopes, :now)

-- name: find_key
select k.id, k.tenant_id, k.scopes
from api_key as k
inner join tenant as t on k.tenant_id = t.id
where k.hash = :hash
    and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > :now)
    and t.status = 'active'

-- name: touch_key
-- Right to the minute: a write at each request would be worth more than what it says.
update api_key
set last_used_at = :now
where id = :id and (last_used_at is null or last_used_at <= cast(:now as timestamptz) - interval '1 minute')
