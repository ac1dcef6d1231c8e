-- A batch of deliveries is claimed, recorded and published in a statement each. What its statements say of runs of other days
-- is said by functions: the session keeps their plans, where a statement would plan for each partition every time.

-- The time that a caller states, or else this moment's: a statement then needs no other one to read the clock for it.
create function database_time(stated timestamptz) returns timestamptz volatile language sql
return coalesce(stated, clock_timestamp());

-- Until then an event is published by whoever recorded it; after that by anybody.
alter table outbox add column held_until instant;

-- Whether the run of an overlap_turn is in flight: not ended, or claimed anew since it ended, which a snapshot may not show yet but
-- the turn's attempt does.
create function holds_turn(run uuid, at timestamptz, claimed_as integer) returns boolean stable language plpgsql as $$
begin
    return exists (
        select from job_run as r
        where r.id = run
            and r.scheduled_for = at
            and (r.state in ('planned', 'queued', 'delivering') or r.attempt < claimed_as)
    );
end
$$;

-- How many runs of a schedule wait for their turn, but for those that are judged at the moment. Whoever asks keeps all others who ask
-- waiting until its transaction ends; and as the function is volatile, what it counts is what they have committed.
create function runs_that_wait(schedule uuid, but_for uuid []) returns bigint volatile language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(cast(schedule as text), 0));
    return (
        select count(*) from job_run as r
        where r.schedule_id = schedule and r.state = 'planned' and r.held_by = 'overlap' and r.id <> all(but_for)
    );
end
$$;

-- Lets the oldest run go that waits for its turn, if nobody is just looking at it: to be sent as any planned run.
create function wake_next_run(schedule uuid) returns setof job_run volatile language plpgsql as $$
begin
    return query
    update job_run as r
    set held_by = null
    from (
        select w.id, w.scheduled_for
        from job_run as w
        where w.schedule_id = schedule and w.state = 'planned' and w.held_by = 'overlap'
        order by w.scheduled_for, w.id
        limit 1
        for no key update of w skip locked
    ) as next
    where r.id = next.id and r.scheduled_for = next.scheduled_for
    returning r.*;
end
$$;

-- An attempt is as visible as its run. Asked by a function, or else each record of an attempt would plan for all partitions of
-- runs, bound to a tenant or not.
create function run_is_visible(run uuid, at timestamptz) returns boolean stable language plpgsql as $$
begin
    return exists (select from job_run as r where r.id = run and r.scheduled_for = at);
end
$$;

alter policy own_rows on attempt using ((select bound_tenant()) is null or run_is_visible(run_id, scheduled_for));
