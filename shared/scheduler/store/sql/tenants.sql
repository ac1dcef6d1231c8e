-- name: insert
insert into tenant (id, name, status, created_at)
values (:id, :name, 'active', :now)

-- name: insert_key
insert into api_key (id, tenant_id, prefix, hash, scopes, created_at)
values (:id, :tenant_id, :prefix, :hash, :scopes, :now)

-- name: insert_secret
insert into signing_secret (id, tenant_id, ciphertext, created_at)
values (:id, :tenant_id, :ciphertext, :now)

-- name: lock
-- One rotation at a time, so that each sees the secrets of those before.
select id
from tenant
where id = :id and status <> 'deleted'
for no key update

-- name: retire_secrets
-- The secrets in force sign beside their successor until :until, those before the newest :kept no longer.
with aged as (
    select k.id, row_number() over (order by k.created_at desc, k.id desc) as age
    from signing_secret as k
    where k.tenant_id = :tenant_id and (k.expires_at is null or k.expires_at > :now)
)

update signing_secret as k
set expires_at = least(
    k.expires_at, case when aged.age > :kept then cast(:now as timestamptz) else cast(:until as timestamptz) end
)
from aged
where k.id = aged.id

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
