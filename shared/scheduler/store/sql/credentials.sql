-- name: keys
select k.id, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
from api_key as k
where k.tenant_id = :tenant_id and (k.created_at, k.id) > (:after_at, cast(:after_id as uuid))
order by k.created_at, k.id
limit :most

-- name: key
select k.id, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
from api_key as k
where k.tenant_id = :tenant_id and k.id = :id

-- name: lock_key
-- The same row, held for a change.
select k.id, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
from api_key as k
where k.tenant_id = :tenant_id and k.id = :id
for no key update

-- name: count_keys
-- Those that are good.
select count(*) as keys
from api_key as k
where k.tenant_id = :tenant_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > :now)

-- name: insert_key
insert into api_key (id, tenant_id, name, prefix, hash, scopes, created_at, expires_at)
values (:id, :tenant_id, :name, :prefix, :hash, :scopes, :now, :expires_at)

-- name: revoke_key
update api_key
set revoked_at = coalesce(revoked_at, :now)
where tenant_id = :tenant_id and id = :id
