"""Catching up after a sleep, a restart, a pause or an edit: the cases from the field, each with its id."""

from datetime import UTC, date, datetime, timedelta

import pytest
from scheduler.history import History
from scheduler.schedules import Schedule
from scheduler.timing import Late, Misfire

from tests.depot import Depot
from tests.world import World, utc

FIRST = datetime(2026, 11, 29, 15, 43, tzinfo=UTC)


def day(text: str) -> datetime:
    """An instant of 29 November 2026."""
    return datetime.fromisoformat(f"2026-11-29T{text}+00:00")


def runs(world: World, schedule: Schedule, *, before: datetime) -> list[str]:
    rows = world.sql(
        "select scheduled_for from job_run where schedule_id = :id and scheduled_for < :before order by 1",
        id=schedule.id,
        before=before,
    )
    return [row[0].astimezone(UTC).isoformat().removesuffix("+00:00") for row in rows]


def next_run(world: World, schedule: Schedule) -> datetime | None:
    return History(database=world.database, clock=world.clock).outlooks([schedule])[schedule.id].next_run_at


@pytest.mark.parametrize(
    ("policy", "run_now"),
    [(Late.SKIP, []), (Late.LATEST, ["15:47"]), (Late.ALL, ["15:44", "15:45", "15:46", "15:47"])],
    ids=lambda value: f"cu-02-{value}" if isinstance(value, Late) else "",
)
def test_after_a_sleep_the_policy_decides_and_not_the_backlog(world: World, policy: Late, run_now: list[str]) -> None:
    world.clock.set(day("15:41:00"))
    schedule = world.create(cron="* * * * *", misfire=Misfire(policy=policy, grace_seconds=0))
    assert runs(world, schedule, before=day("16:00:00"))[-1] == "2026-11-29T15:43:00"
    world.clock.set(day("15:47:33"))
    world.tick()
    caught_up = runs(world, schedule, before=day("15:47:33"))[2:]
    assert caught_up == [f"2026-11-29T{time}:00" for time in run_now]
    assert sum(count for _, _, _, count in world.skipped(schedule)) == 4 - len(run_now)
    assert next_run(world, schedule) == day("15:48:00")


def test_a_restart_across_the_instant_fires_it_within_the_grace(world: World) -> None:
    """cu-04"""
    world.clock.set(day("14:50:00"))
    schedule = world.create(cron="0 16 * * *", timezone="Europe/Berlin", misfire=Misfire(policy=Late.SKIP))
    world.clock.set(day("15:00:16"))
    world.tick()
    assert runs(world, schedule, before=day("23:00:00")) == ["2026-11-29T15:00:00"]
    assert next_run(world, schedule) == datetime(2026, 11, 30, 15, tzinfo=UTC)


def test_a_run_that_is_due_when_the_zone_changes_runs_once_and_the_next_is_in_the_new_zone(world: World) -> None:
    """cu-06, three months later, when the clocks of Brussels say 04:00 at 03:00Z."""
    world.clock.set("2026-12-02T03:50:00+00:00")
    schedule = world.create(cron="0 4 * * *")
    world.clock.set("2026-12-02T04:00:20+00:00")
    edited = world.edit(schedule, cron="0 4 * * *", timezone="Europe/Brussels")
    world.tick()
    assert world.planned(schedule) == ["04:00:00"]
    assert next_run(world, edited) == utc("2026-12-03T03:00:00+00:00")


def test_an_edit_of_something_else_fires_nothing_that_is_not_due(world: World) -> None:
    """cu-07, in December."""
    world.clock.set("2026-12-01T00:59:00+00:00")
    schedule = world.create(cron="0 9 * * *", timezone="Asia/Shanghai")
    world.clock.set("2026-12-01T17:24:00+00:00")
    world.tick()
    edited = world.edit(schedule, cron="0 9 * * *", timezone="Asia/Shanghai")
    world.tick()
    assert world.planned(schedule) == ["01:00:00"]
    assert next_run(world, edited) == utc("2026-12-02T01:00:00+00:00")


def test_catching_up_is_capped_to_the_newest_in_their_order(world: World) -> None:
    """cu-09: thirty days of minutes, 43,200 of them late."""
    with world.database.transaction() as transaction:
        transaction.run("maintenance.make_partitions", first_day=date(2026, 12, 31), last_day=date(2026, 12, 31))
    schedule = world.create(cron="* * * * *")
    # Two were planned ahead at the creation.
    world.clock.set("2026-12-31T09:02:33+00:00")
    world.tick(retention=timedelta(days=40))
    caught_up = runs(world, schedule, before=world.clock.now)[2:]
    assert len(caught_up) == 100
    assert (caught_up[0], caught_up[-1]) == ("2026-12-31T07:23:00", "2026-12-31T09:02:00")
    assert caught_up == sorted(caught_up)
    [(reason, _, _, count)] = world.skipped(schedule)
    assert (reason, count + len(caught_up)) == ("missed", 43_200)


# Minutes that are due at the tick, with 09:01 and 09:02 planned long ago; the window ends with 09:08.
ON_TIME = [
    # All those later than the grace, and the two within it.
    (Late.ALL, 90, 100, ["09:03", "09:04", "09:05", "09:06", "09:07"]),
    # The cap counts those within the grace, since they go out at the same moment.
    (Late.ALL, 90, 3, ["09:05", "09:06", "09:07"]),
    # Yet it never takes one of them.
    (Late.ALL, 90, 1, ["09:06", "09:07"]),
    (Late.LATEST, 90, 100, ["09:06", "09:07"]),
    (Late.LATEST, 0, 100, ["09:07"]),
    (Late.SKIP, 90, 100, ["09:06", "09:07"]),
    (Late.SKIP, 30, 100, ["09:07"]),
    (Late.SKIP, 29, 100, []),
]


@pytest.mark.parametrize(("policy", "grace", "cap", "expected"), ON_TIME)
def test_what_is_within_the_grace_runs_and_is_among_the_newest(
    world: World, policy: Late, grace: int, cap: int, expected: list[str]
) -> None:
    misfire = Misfire(policy=policy, grace_seconds=grace, cap=cap)
    schedule = world.create(cron="* * * * *", misfire=misfire, end_at=utc("09:08:00"))
    world.clock.set("09:07:30")
    world.tick()
    assert world.planned(schedule)[2:] == [f"{time}:00" for time in expected]
    assert sum(count for _, _, _, count in world.skipped(schedule)) == 5 - len(expected)


def test_the_latest_of_a_window_that_is_over_runs_too(world: World) -> None:
    misfire = Misfire(policy=Late.LATEST, grace_seconds=0)
    schedule = world.create(cron="* * * * *", misfire=misfire, end_at=utc("09:05:00"))
    world.clock.set("09:07:30")
    world.tick()
    assert world.planned(schedule) == ["09:01:00", "09:02:00", "09:04:00"]
    assert world.skipped(schedule) == [("missed", "09:03:00", "09:03:00", 1)]


def test_what_lay_inside_a_pause_is_not_caught_up(world: World) -> None:
    """cu-10"""
    world.clock.set(day("06:00:00"))
    schedule = world.create(cron="*/10 * * * *", misfire=Misfire(policy=Late.LATEST))
    world.clock.set(day("18:00:30"))
    world.tick()
    world.pause(schedule)
    made = runs(world, schedule, before=utc("2026-12-04T00:00:00+00:00"))
    world.clock.set("2026-12-01T06:05:00+00:00")
    resumed = world.resume(schedule)
    world.tick()
    assert runs(world, schedule, before=utc("2026-12-04T00:00:00+00:00")) == made
    assert next_run(world, resumed) == utc("2026-12-01T06:10:00+00:00")
    assert world.skipped(schedule)[-1][0] == "paused"


def test_reading_never_moves_a_run_that_is_due(depot: Depot) -> None:
    """cu-11"""
    world = depot.world
    schedule = depot.schedule("https://127.0.0.1:9/", cron="1 9 * * *")
    world.clock.set("09:30:05")
    for _ in range(2):
        world.scheduling.list(world.tenant_id, after=(utc("00:00:00"), schedule.id), most=10)
        world.scheduling.get(world.tenant_id, schedule.id)
        next_run(world, schedule)
    world.tick()
    assert world.planned(schedule) == ["09:01:00"]
    assert depot.dispatch().taken == 1
