-- name: try_alone
-- One at a time of a tenant: changes of many hold calendars, which all tenants share, for seconds, and those that overlap without
-- end would never let a planner in.
select pg_try_advisory_xact_lock(hashtextextended('labelled ' || cast(:tenant_id as text), 0)) as alone

-- name: active
-- Those that fire, oldest first, and how many there are.
select s.id, s.calendar_id, count(*) over () as matched
from schedule as s
where s.tenant_id = :tenant_id
    and s.status = 'active'
    and (s.held_until is null or s.held_until <= :now)
    and s.labels @> cast(:labels as jsonb)
order by s.created_at, s.id
limit :most

-- name: at_rest
-- Those that do not fire, and could.
select s.id, s.calendar_id, count(*) over () as matched
from schedule as s
where s.tenant_id = :tenant_id
    and (s.status in ('paused', 'disabled') or (s.status = 'active' and s.held_until > :now))
    and s.labels @> cast(:labels as jsonb)
order by s.created_at, s.id
limit :most

-- name: hold
-- In id order, as all who wait for several schedules; only those whose calendars are held already.
select s.id
from schedule as s
where s.id = any(cast(:ids as uuid []))
    and s.calendar_id = any(cast(:calendar_ids as bigint []))
    and s.status <> 'deleted'
order by s.id
for no key update
