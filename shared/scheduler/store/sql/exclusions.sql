-- name: hold
-- The tenant's lists of these names, held as they are until a change that uses them is through. Before any calendar.
select id, name, dates
from exclusion_list
where tenant_id = :tenant_id and name = any(cast(:names as text []))
order by id
for share
