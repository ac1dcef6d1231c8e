-- name: take
-- The oldest events that nobody is publishing, and that are not left to who recorded them. Row by row, never by a high-water
-- mark: ids and times commit out of order.
select id, type, tenant_id, detail, created_at
from outbox
where held_until is null or held_until <= :now
order by created_at
limit :most
for update skip locked

-- name: forget
delete from outbox where id = any(cast(:ids as uuid []))
