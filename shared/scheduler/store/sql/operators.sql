-- name: note
insert into admin_action (at, operator, action, tenant_id, detail)
values (:now, :operator, :action, :tenant_id, cast(:detail as jsonb))

-- name: find
select id, name, status
from tenant
where id = :tenant_id
for no key update

-- name: was_deleted
select id
from admin_action
where tenant_id = :tenant_id and action = 'delete_tenant'
limit 1

-- name: set_status
update tenant
set status = :status
where id = :tenant_id

-- name: delete_runs
-- Some of the tenant's runs with their attempts, oldest first; the ones that a worker holds wait for the next call.
with doomed as materialized (
    select r.id, r.scheduled_for
    from job_run as r
    where r.tenant_id = :tenant_id
    order by r.scheduled_for, r.id
    limit :most
    for update of r skip locked
),

attempts as (
    delete from attempt as a
    using doomed
    where a.run_id = doomed.id and a.scheduled_for = doomed.scheduled_for
)

delete from job_run as r
using doomed
where r.id = doomed.id and r.scheduled_for = doomed.scheduled_for

-- name: has_runs
select exists (select from job_run as r where r.tenant_id = :tenant_id) as some

-- name: delete_skipped_ranges
delete from skipped_range as k
using (select id from skipped_range where tenant_id = :tenant_id limit :most) as doomed
where k.id = doomed.id

-- name: delete_versions
delete from schedule_version as v
using (
    select w.schedule_id, w.version
    from schedule_version as w
    inner join schedule as s on w.schedule_id = s.id
    where s.tenant_id = :tenant_id
    limit :most
) as doomed
where v.schedule_id = doomed.schedule_id and v.version = doomed.version

-- name: delete_turns
delete from overlap_turn as o
using schedule as s
where o.schedule_id = s.id and s.tenant_id = :tenant_id

-- name: delete_schedules
delete from schedule as s
using (select id from schedule where tenant_id = :tenant_id limit :most) as doomed
where s.id = doomed.id

-- name: delete_orders
delete from disabling where tenant_id = :tenant_id

-- name: delete_endpoints
delete from endpoint where tenant_id = :tenant_id

-- name: delete_load
delete from tenant_load where tenant_id = :tenant_id

-- name: delete_lists
delete from exclusion_list where tenant_id = :tenant_id

-- name: delete_events
delete from outbox where tenant_id = :tenant_id

-- name: delete_keys
delete from api_key where tenant_id = :tenant_id

-- name: delete_secrets
delete from signing_secret where tenant_id = :tenant_id

-- name: delete_tenant
delete from tenant where id = :tenant_id
