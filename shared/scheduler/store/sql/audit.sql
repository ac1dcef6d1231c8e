-- name: calendars
-- Calendars that can be computed and whose cursors have passed anything since :since, a page at a time.
select c.id, c.kind, c.expression, c.timezone, c.gap, c.overlap, c.anchor, c.excluded_dates, c.on_excluded,
    c.planned_through, c.revised_at
from calendar as c
where c.id > :after and c.set_aside_at is null and c.planned_through > :since
order by c.id
limit :most

-- name: find_missing
-- Of these occurrences, those that a schedule owed by the version it had then, and that are neither a run of it nor inside a
-- skipped range. A version rules from its window's beginning to the next version's time. One with a limit owes the first
-- `runs_left`, and so nothing behind its last run once it has made as many.
with occurrence as materialized (
    select o.calendar_id, o.scheduled_for
    from unnest(cast(:calendar_ids as bigint []), cast(:instants as timestamptz [])) as o (calendar_id, scheduled_for)
),

version as materialized (
    select
        v.schedule_id,
        v.calendar_id,
        v.status,
        v.active_from,
        v.end_at,
        v.runs_left,
        coalesce(lead(v.changed_at) over (partition by v.schedule_id order by v.version), '9998-12-31') as ruled_until
    from schedule_version as v
    where v.schedule_id in (
        select w.schedule_id from schedule_version as w where w.calendar_id = any(cast(:calendar_ids as bigint []))
    )
)

select distinct version.schedule_id, occurrence.scheduled_for
from occurrence
inner join version on occurrence.calendar_id = version.calendar_id
where version.status = 'active'
    and occurrence.scheduled_for >= version.active_from
    and occurrence.scheduled_for <= version.ruled_until
    and (version.end_at is null or occurrence.scheduled_for < version.end_at)
    and not exists (
        select from job_run as r
        where r.schedule_id = version.schedule_id and r.scheduled_for = occurrence.scheduled_for
    )
    and not exists (
        select from skipped_range as k
        where k.schedule_id = version.schedule_id
            and k.last_scheduled_for >= occurrence.scheduled_for
            and k.first_scheduled_for <= occurrence.scheduled_for
    )
    and (
        version.runs_left is null
        or (
            select count(*) from job_run as r
            where r.schedule_id = version.schedule_id
                and r.scheduled_for >= version.active_from
                and r.scheduled_for <= version.ruled_until
                and r.trigger = 'schedule'
        ) < version.runs_left
        or exists (
            select from job_run as r
            where r.schedule_id = version.schedule_id
                and r.scheduled_for > occurrence.scheduled_for
                and r.scheduled_for <= version.ruled_until
                and r.trigger = 'schedule'
        )
    )
order by occurrence.scheduled_for, version.schedule_id
