-- name: hold
-- Calendars without a schedule, but for those that a planner or a change is just at. It waits for nobody, so that nobody
-- deadlocks with it.
select c.id
from calendar as c
where c.retired_at is null
    and not exists (select from schedule as s where s.calendar_id = c.id and s.status <> 'deleted')
order by c.id
limit :most
for update of c skip locked

-- name: retire
-- Looked at again under the locks: a schedule may have come between the look and them, and none can come any more. Who waits for
-- the row finds it retired.
update calendar as c
set retired_at = :now, next_fire_at = null, exclusion_key = 'retired ' || c.id
where c.id = any(cast(:ids as bigint []))
    and not exists (select from schedule as s where s.calendar_id = c.id and s.status <> 'deleted')
