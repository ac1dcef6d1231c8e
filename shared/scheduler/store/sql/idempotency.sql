-- name: claim
-- Waits for a request under the same key that is just being carried out: its row is there, or gone with its transaction.
insert into idempotent_request as i (tenant_id, key, fingerprint, created_at)
values (:tenant_id, :key, :fingerprint, :now)
on conflict (tenant_id, key) do update
set fingerprint = excluded.fingerprint, status = null, headers = null, body = null, sealed = false, created_at = excluded.created_at
where i.created_at <= :forgotten
returning i.key

-- name: find
select i.fingerprint, i.status, i.headers, i.body, i.sealed
from idempotent_request as i
where i.tenant_id = :tenant_id and i.key = :key and i.created_at > :forgotten

-- name: store
update idempotent_request as i
set status = :status, headers = cast(:headers as jsonb), body = :body, sealed = :sealed
where i.tenant_id = :tenant_id and i.key = :key

-- name: forget
delete from idempotent_request where created_at <= :forgotten
