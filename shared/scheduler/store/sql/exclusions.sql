-- name: hold
-- The tenant's lists of these names, held as they are until a change that uses them is through. Before any calendar.
select id, name, dates
from exclusion_list
where tenant_id = :tenant_id and name = any(cast(:names as text []))
order by id
for share

-- name: make
insert into exclusion_list (id, tenant_id, name, dates, created_at, updated_at)
values (:id, :tenant_id, :name, cast(:dates as date []), :now, :now)
on conflict (tenant_id, name) do nothing
returning id, name, dates, created_at, updated_at

-- name: lock
select id, name, dates, created_at, updated_at
from exclusion_list
where tenant_id = :tenant_id and name = :name
for update

-- name: lock_calendars
-- The calendars that leave out a list's dates, held against planners and changes, in id order as all who wait for calendars.
select id, kind, expression, timezone, gap, overlap, anchor, excluded_dates, on_excluded, planned_through, set_aside_at
from calendar
where exclusion_lists @> array[cast(:list_id as uuid)] and retired_at is null
order by id
for no key update

-- name: change
update exclusion_list
set dates = cast(:dates as date []), updated_at = :now
where id = :id
returning id, name, dates, created_at, updated_at

-- name: dates_of
-- All the dates that a calendar leaves out: its own and those of its lists.
select
    array(
        select e.day from unnest(c.own_dates) as e (day)
        union
        select e.day
        from exclusion_list as x
        cross join unnest(x.dates) as e (day)
        where x.id = any(c.exclusion_lists)
        order by 1
    ) as dates
from calendar as c
where c.id = :calendar_id

-- name: get
select id, name, dates, created_at, updated_at
from exclusion_list
where tenant_id = :tenant_id and name = :name

-- name: list
select id, name, dates, created_at, updated_at
from exclusion_list
where tenant_id = :tenant_id and (created_at, id) > (:after_at, cast(:after_id as uuid))
order by created_at, id
limit :most

-- name: users
select s.id
from calendar as c
inner join schedule as s on c.id = s.calendar_id
where c.exclusion_lists @> array[cast(:list_id as uuid)] and s.status <> 'deleted'
limit 1

-- name: delete
delete from exclusion_list where id = :id
