alter table schedule
add jitter_seconds integer not null default 0 constraint schedule_jitter check (jitter_seconds between 0 and 3600),
-- How many runs may still be made; null for no limit. Lowered by what is made, raised by what a change takes back; below zero
-- where the tenant lowered the limit below what was made.
add runs_left bigint,
-- A pause with an end leaves the schedule active: its window begins again here, and runs of before are held until then.
add held_until instant,
add pause_reason text constraint schedule_pause_reason_length check (length(pause_reason) between 1 and 500);

create index schedule_with_limit on schedule (calendar_id) where status = 'active' and runs_left is not null;

alter table schedule_version
add runs_left bigint,
add held_until instant,
add pause_reason text;

create table exclusion_list (
    id uuid primary key,
    tenant_id uuid not null references tenant,
    name text not null constraint exclusion_list_name_length check (length(name) between 1 and 100),
    dates date [] not null constraint exclusion_list_size check (cardinality(dates) <= 1000),
    created_at instant not null,
    updated_at instant not null,
    constraint exclusion_list_name_once unique (tenant_id, name)
);

alter table calendar
-- Names the excluded dates, the lists and the policy for unique keys: a digest, since dates outgrow an index row. Empty
-- where nothing is excluded.
add exclusion_key text not null default '',
add own_dates date [] not null default '{}',
add exclusion_lists uuid [] not null default '{}',
-- own_dates and the dates of all exclusion_lists together, sorted: what the planner reads.
add excluded_dates date [] not null default '{}',
add on_excluded text not null default 'skip' constraint calendar_on_excluded check (on_excluded in ('skip', 'next_day')),
-- The zone's wall clock minus UTC at planned_through, in seconds, by the data that the row is stamped with: tells newer
-- data which wall times are done. Null where no cursor has moved since.
add utc_offset integer,
-- Since when its occurrences are those that it has now.
add revised_at instant,
drop constraint calendar_once,
add constraint calendar_once unique (kind, expression, timezone, gap, overlap, anchor, exclusion_key);

create index calendar_stamp on calendar (tzdata_version) where set_aside_at is null;
create index calendar_with_list on calendar using gin (exclusion_lists);

drop index skipped_range_of_schedule;
create index skipped_range_of_schedule on skipped_range (schedule_id, last_scheduled_for, id);
