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
-- What the bus took. Not waited for until it is on the disk: where a crash of the server brings an event back, it is published once
-- more under its own id.
delete from outbox where id = any(cast(:ids as uuid [])) and set_config('synchronous_commit', 'off', true) = 'off'
