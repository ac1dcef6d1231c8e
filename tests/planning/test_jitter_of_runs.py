"""Jitter puts a run off, never past the next occurrence, and never touches what the tenant dedupes on."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from scheduler.calendar.jitter import jitter_limit, jitter_seconds
from scheduler.calendar.spec import cron, rate
from scheduler.leases import claim
from scheduler.schedules import Schedule
from scheduler.webhook.request import idempotency_key

from tests.depot import Depot
from tests.world import World, utc


def due(world: World, schedule: Schedule) -> list[tuple[datetime, datetime]]:
    rows = world.sql("select scheduled_for, due_at from job_run where schedule_id = :id order by 1", id=schedule.id)
    return [(row[0].astimezone(UTC), row[1].astimezone(UTC)) for row in rows]


def test_sql_and_python_agree_on_every_jitter(world: World) -> None:
    specs = {
        "minutely": (cron("* * * * *", "UTC"), {"cron": "* * * * *"}),
        "uneven": (cron("0,3,4 * * * *", "Europe/Paris"), {"cron": "0,3,4 * * * *", "timezone": "Europe/Paris"}),
        "rate": (rate("25 seconds", utc("09:00:00")), {"rate": "25 seconds", "start_at": utc("09:00:00")}),
    }
    seen: list[tuple[UUID, datetime]] = []
    for spec, words in specs.values():
        for wanted in (1, 7, 300, 3_600):
            schedule = world.create(**words, jitter_seconds=wanted)
            world.clock.move(seconds=1)
            for _ in range(3):
                world.clock.move(minutes=4)
                world.tick()
            for scheduled_for, due_at in due(world, schedule):
                limit = jitter_limit(spec, scheduled_for, wanted)
                assert due_at - scheduled_for == timedelta(seconds=jitter_seconds(schedule.id, scheduled_for, limit))
                seen.append((schedule.id, scheduled_for))
    assert len(seen) > 100


def test_a_run_is_due_before_the_next_occurrence_however_much_jitter_is_asked_for(world: World) -> None:
    schedule = world.create(rate="10 seconds", jitter_seconds=3_600)
    moments = due(world, schedule)
    assert len(moments) == 12
    assert all(at <= due_at < at + timedelta(seconds=10) for at, due_at in moments)
    assert len({due_at - at for at, due_at in moments}) > 3


def test_the_key_and_the_id_know_the_nominal_time_alone_and_the_queue_the_effective_one(depot: Depot) -> None:
    made = [depot.schedule("https://127.0.0.1:9/", cron="* * * * *", jitter_seconds=59) for _ in range(9)]
    # By its id one in sixty has no jitter at an instant, and so have nine at once never.
    schedule = max(made, key=lambda each: due(depot.world, each)[0][1])
    scheduled_for, due_at = due(depot.world, schedule)[0]
    [[run_id]] = depot.world.sql(
        "select id from job_run where schedule_id = :id and scheduled_for = :at", id=schedule.id, at=scheduled_for
    )
    depot.world.clock.set(due_at - timedelta(seconds=2))
    message_may_wait = {run_id: timedelta(minutes=2)}
    early = claim(
        depot.world.database, depot.world.clock, message_may_wait, lease=timedelta(seconds=30), alone=False
    ).early
    assert early == {run_id: due_at}
    depot.world.clock.set(due_at)
    [lease] = depot.claim(run_id).leases
    assert lease.scheduled_for == scheduled_for == utc("09:01:00")
    assert idempotency_key(lease.schedule_id, lease.scheduled_for) == idempotency_key(schedule.id, utc("09:01:00"))


def test_an_edit_of_the_jitter_alone_moves_the_future_runs(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    assert all(at == due_at for at, due_at in due(world, schedule))
    world.edit(schedule, cron="* * * * *", jitter_seconds=50)
    assert any(at != due_at for at, due_at in due(world, schedule))
