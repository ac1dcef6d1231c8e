-- name: active
-- Those that fire, oldest first, and how many there are.
select s.id, count(*) over () as matched
from schedule as s
where s.tenant_id = :tenant_id
    and s.status = 'active'
    and (s.held_until is null or s.held_until <= :now)
    and s.labels @> cast(:labels as jsonb)
order by s.created_at, s.id
limit :most

-- name: at_rest
-- Those that do not fire, and could.
select s.id, count(*) over () as matched
from schedule as s
where s.tenant_id = :tenant_id
    and (s.status in ('paused', 'disabled') or (s.status = 'active' and s.held_until > :now))
    and s.labels @> cast(:labels as jsonb)
order by s.created_at, s.id
limit :most
