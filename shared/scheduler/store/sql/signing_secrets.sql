-- name: in_force
-- Newest first; those that no longer sign are left out.
select s.id, s.created_at, s.expires_at
from signing_secret as s
where s.tenant_id = :tenant_id and (s.expires_at is null or s.expires_at > :now)
order by s.created_at desc, s.id desc

-- name: retire
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

-- name: insert
insert into signing_secret (id, tenant_id, ciphertext, created_at)
values (:id, :tenant_id, :ciphertext, :now)

-- name: end
update signing_secret
set expires_at = :now
where id = :id
