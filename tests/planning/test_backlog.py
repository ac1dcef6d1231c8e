"""After an outage, or for very many schedules, a calendar is planned in pieces: with the same result as at once."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from scheduler import backlog, planning
from scheduler.audit import audit
from scheduler.schedules import Schedule
from scheduler.timing import Late, Misfire, Timing

from tests.world import World, so_often, utc

BEGUN = utc("09:00:00")
# The first after the two that are planned at the creation.
FIRST = utc("09:03:00")


@dataclass(frozen=True, kw_only=True)
class Owed:
    """A schedule of each minute, and what a tick at `now` is to make of it by the contract's words."""

    misfire: Misfire
    start_at: datetime
    end_at: datetime

    @classmethod
    def at_random(cls, chance: random.Random) -> "Owed":
        start = chance.randrange(40)
        return cls(
            misfire=Misfire(
                policy=chance.choice(list(Late)),
                grace_seconds=chance.choice((0, 60, 150, 900)),
                cap=chance.choice((1, 2, 5, 12)),
            ),
            start_at=BEGUN + timedelta(minutes=start),
            end_at=BEGUN + timedelta(minutes=start + chance.randrange(1, 40)),
        )

    @property
    def timing(self) -> Timing:
        return Timing(cron="* * * * *", misfire=self.misfire, start_at=self.start_at, end_at=self.end_at)

    def runs(self, now: datetime, ahead: datetime) -> list[datetime]:
        minutes = [FIRST + timedelta(minutes=number) for number in range(80)]
        mine = [each for each in minutes if self.start_at <= each < self.end_at and each <= ahead]
        due = [each for each in mine if each <= now]
        newest = {Late.ALL: self.misfire.cap, Late.LATEST: 1, Late.SKIP: 0}[self.misfire.policy]
        grace = timedelta(seconds=self.misfire.grace_seconds)
        return [each for place, each in enumerate(mine) if place >= len(due) - newest or now - each <= grace]

    def skipped(self, now: datetime) -> int:
        due = min(self.end_at, now + timedelta(seconds=1)) - max(self.start_at, FIRST)
        return max(-(-due // timedelta(minutes=1)), 0) - sum(each <= now for each in self.runs(now, now))


def later_runs(world: World, schedule: Schedule) -> list[datetime]:
    rows = world.sql(
        "select scheduled_for from job_run where schedule_id = :id and scheduled_for >= :first order by 1",
        id=schedule.id,
        first=FIRST,
    )
    return [row[0] for row in rows]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("runs_at_once", "occurrences"), [(100_000, 99), (100, 99), (30, 99), (1, 99), (60, 7)])
def test_in_pieces_of_whatever_size_each_schedule_gets_what_its_policy_says(
    world: World, monkeypatch: pytest.MonkeyPatch, runs_at_once: int, occurrences: int, seed: int
) -> None:
    monkeypatch.setattr(backlog, "_RUNS", runs_at_once)
    monkeypatch.setattr(planning, "MOST_OCCURRENCES", occurrences)
    chance = random.Random(seed)
    made = [(each, world.create(each.timing)) for each in (Owed.at_random(chance) for _ in range(12))]
    now = BEGUN + timedelta(minutes=chance.randrange(30, 60), seconds=chance.choice((0, 30)))
    world.clock.set(now)
    assert world.tick().refused == {}
    for each, schedule in made:
        assert later_runs(world, schedule) == each.runs(now, now + timedelta(minutes=2)), each
        assert sum(count for _, _, _, count in world.skipped(schedule)) == each.skipped(now), each
    assert audit(world.database, world.clock, more_time=lambda: True).missing == 0


def test_what_nobody_runs_any_more_is_one_skipped_range_and_the_rest_comes_in_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "_RUNS", 10)
    schedules = [world.create(cron="* * * * *", misfire=Misfire(cap=20)) for _ in range(2)]
    world.clock.set("11:00:00")
    assert world.tick().calendars == 1 + 5
    for schedule in schedules:
        assert world.skipped(schedule) == [("missed", "09:03:00", "10:40:00", 98)]


@pytest.mark.parametrize("misfire", [Misfire(), Misfire(policy=Late.SKIP, grace_seconds=3_600)])
def test_a_piece_makes_no_more_runs_than_a_transaction_may(
    world: World, monkeypatch: pytest.MonkeyPatch, misfire: Misfire
) -> None:
    monkeypatch.setattr(backlog, "_RUNS", 10)
    schedules = [world.create(cron="* * * * *", misfire=misfire) for _ in range(3)]
    world.clock.set("09:30:00")
    made: list[int] = []
    before = len(schedules) * 2
    while world.tick(more_time=so_often(2)).calendars:
        [[count]] = world.sql("select count(*) from job_run")
        made.append(count - before - sum(made))
    assert sum(made) == 3 * 30
    assert max(made) == 9


def test_others_are_planned_before_a_late_calendar_is_through(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "_RUNS", 1)
    late, other = world.create(cron="* * * * *"), world.create(cron="*/20 * * * *")
    world.clock.set("09:50:00")
    world.tick(more_time=so_often(2))
    assert world.planned(other) == ["09:20:00", "09:40:00"]
    assert world.planned(late)[-1] == "09:03:00"


def test_a_limited_schedule_makes_its_first_runs_whatever_the_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "_RUNS", 2)
    schedule = world.create(cron="* * * * *", max_runs=9)
    world.clock.set("09:30:00")
    world.tick()
    assert world.planned(schedule) == [f"09:0{minute}:00" for minute in range(1, 10)]
    assert world.sql("select runs_left from schedule") == [[0]]
