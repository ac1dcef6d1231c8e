"""Planners racing each other and the API on connections of their own: one row an occurrence, none missing, none invented.

The judge is a simple one of its own: it walks the versions that the changes left, and for each stretch between two changes
lists what an active schedule owed. It knows neither cursors nor horizons.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from scheduler.calendar.occurrences import occurrences
from scheduler.calendar.zones import tzdata_version
from scheduler.calendars import calendar_spec
from scheduler.errors import InvalidInput, NotFound
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.planning import plan
from scheduler.schedules import Definition, Pause
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database, Row, Transaction
from scheduler.timing import Timing

from tests.world import RETENTION, T0, Hands, World, so_often

TIMINGS = (
    Timing(cron="* * * * *"),
    Timing(cron="*/2 * * * *"),
    Timing(cron="*/5 * * * *"),
    Timing(rate="20 seconds", start_at=T0.replace(microsecond=0)),
    Timing(rate="30 seconds", start_at=T0.replace(microsecond=0)),
    Timing(cron="30 9 * * *", timezone="Europe/London"),
    Timing(cron="* * * * *", jitter_seconds=45),
)


def owed(world: World) -> Iterator[tuple[UUID, datetime]]:
    """Every occurrence that the recorded versions of the schedules owe, up to the cursors they stood at."""
    calendars = {
        row[0]: row
        for row in world.sql(
            "select id, kind, expression, timezone, gap, overlap, anchor, excluded_dates, on_excluded, planned_through"
            " from calendar"
        )
    }
    names = (
        *("id", "kind", "expression", "timezone", "gap", "overlap", "anchor"),
        *("excluded_dates", "on_excluded", "planned_through"),
    )
    versions = world.sql(
        "select schedule_id, changed_at, status, calendar_id, active_from from schedule_version order by schedule_id, version"
    )
    for (schedule_id, _, status, calendar_id, active_from), following in pairwise([*versions, [None] * 5]):
        if status != "active":
            continue
        calendar = dict(zip(names, calendars[calendar_id], strict=True))
        until = following[1] if following[0] == schedule_id else calendar["planned_through"]
        after = active_from - timedelta(microseconds=1)
        for instant in occurrences(calendar_spec(calendar), after, max(after, until)):
            yield schedule_id, instant


def skipped(world: World, occurrence: tuple[UUID, datetime]) -> bool:
    """Whether a skipped range accounts for it: to a clock an hour ahead a minute's work is late, and there is a cap."""
    [[count]] = world.sql(
        "select count(*) from skipped_range where schedule_id = :id and reason = 'missed'"
        " and :at between first_scheduled_for and last_scheduled_for",
        id=occurrence[0],
        at=occurrence[1],
    )
    return bool(count)


def judge(world: World) -> None:
    """The runs are what was owed and not recorded as skipped: no more, no less."""
    rows = [(row[0], row[1].astimezone(UTC)) for row in world.sql("select schedule_id, scheduled_for from job_run")]
    assert len(rows) == len(set(rows))
    expected = set(owed(world))
    missing = {each for each in expected - set(rows) if not skipped(world, each)}
    assert missing == set(), "owed and not planned"
    assert set(rows) - expected == set(), "planned and not owed"


class Tenant:
    """Changes schedules at random, on a connection of its own."""

    def __init__(self, world: World, database: Database, clock: Hands, seed: int) -> None:
        self.random = random.Random(seed)
        self.scheduling = Scheduling(database=database, clock=clock, retention=RETENTION)
        self.tenant_id = world.tenant_id
        self.mine: list[UUID] = []

    def act(self) -> None:
        """One change."""
        actions = (self.create, self.edit, self.edit, self.pause, self.pause_for_a_while, self.resume, self.delete)
        action = self.random.choice(actions)
        if not self.mine or action == self.create:
            self.create()
        else:
            action(self.random.choice(self.mine))

    def create(self, _: UUID | None = None) -> None:
        made = self.scheduling.create(self.tenant_id, uuid4(), self._definition(), changed_by="test")
        self.mine.append(made.id)

    def edit(self, schedule_id: UUID) -> None:
        self.scheduling.edit(self.tenant_id, schedule_id, lambda _: self._definition(), changed_by="test")

    def pause(self, schedule_id: UUID) -> None:
        self.scheduling.pause(self.tenant_id, schedule_id, changed_by="test")

    def pause_for_a_while(self, schedule_id: UUID) -> None:
        until = self.scheduling.clock.now + timedelta(seconds=self.random.choice((20, 61, 600)))  # type: ignore[attr-defined]
        # To a schedule that another clock changed, which is ahead of ours, that may be past.
        with contextlib.suppress(InvalidInput):
            self.scheduling.pause(self.tenant_id, schedule_id, changed_by="test", pause=Pause(until=until))

    def resume(self, schedule_id: UUID) -> None:
        self.scheduling.resume(self.tenant_id, schedule_id, changed_by="test")

    def delete(self, schedule_id: UUID) -> None:
        self.scheduling.delete(self.tenant_id, schedule_id, changed_by="test")
        self.mine.remove(schedule_id)

    def _definition(self) -> Definition:
        timing = self.random.choice(TIMINGS)
        return Definition(name=None, timing=timing, url="https://hook.example/", headers=(), payload=None)


def tick(database: Database, clock: Hands) -> None:
    plan(database, clock, retention=RETENTION, more_time=so_often(500))


def settle_clock(world: World, clocks: list[Hands]) -> None:
    """A last tick by the furthest clock, so that every cursor has passed every change."""
    world.clock.set(max(clock.now for clock in clocks))
    world.tick()


@pytest.mark.parametrize("seed", range(10))
def test_two_planners_race_while_schedules_change(world: World, connect: Callable[[], Database], seed: int) -> None:
    tenant = Tenant(world, connect(), world.clock, seed)
    for _ in range(20):
        tenant.create()
    planners = [connect(), connect()]
    for _ in range(4):
        world.clock.move(minutes=1)
        start = threading.Barrier(3)

        def race(work: Callable[[], None], start: threading.Barrier = start) -> None:
            start.wait()
            work()

        with ThreadPoolExecutor(3) as threads:
            jobs: list[Callable[[], None]] = [lambda p=p: tick(p, world.clock) for p in planners]  # type: ignore[misc]
            jobs.append(lambda: [tenant.act() for _ in range(6)] and None)
            for done in [threads.submit(race, job) for job in jobs]:
                done.result(timeout=60)
    settle_clock(world, [world.clock])
    judge(world)


@pytest.mark.parametrize("seed", range(20))
def test_random_interleavings_of_ticks_changes_and_clock_jumps(
    world: World, connect: Callable[[], Database], seed: int
) -> None:
    """Ticks that are late, early or an hour apart, between changes, in a random order that the seed repeats."""
    chance = random.Random(seed)
    clocks = [world.clock, Hands(), Hands()]
    databases = [connect(), connect()]
    tenant = Tenant(world, world.database, world.clock, seed)
    for _ in range(60):
        match chance.randrange(8):
            case 0 | 1:
                tick(databases[0], clocks[1])
            case 2:
                tick(databases[1], clocks[2])
            case 3:
                world.clock.move(seconds=chance.choice((1, 10, 45, 600)))
                clocks[1].set(world.clock.now)
                clocks[2].set(world.clock.now + timedelta(minutes=chance.choice((-60, 0, 0, 60))))
            case _:
                tenant.act()
    settle_clock(world, clocks)
    judge(world)


@pytest.mark.parametrize("seed", range(5))
def test_several_editors_of_the_same_schedules_and_planners_at_once_never_deadlock(
    world: World, connect: Callable[[], Database], seed: int
) -> None:
    clocks = [Hands() for _ in range(5)]
    tenants = [Tenant(world, connect(), clock, seed * 10 + i) for i, clock in enumerate(clocks[:3])]
    shared: list[UUID] = []
    for tenant in tenants:
        tenant.mine = shared
        tenant.create()

    def change(tenant: Tenant, clock: Hands) -> None:
        for _ in range(15):
            # Two may choose the same schedule, and one of them may have deleted it.
            with contextlib.suppress(NotFound, ValueError):
                tenant.act()
            clock.move(seconds=7)

    def keep_ticking(database: Database, clock: Hands) -> None:
        for _ in range(10):
            tick(database, clock)
            clock.move(seconds=11)

    with ThreadPoolExecutor(5) as threads:
        jobs = [threads.submit(change, tenant, clock) for tenant, clock in zip(tenants, clocks[:3], strict=True)]
        jobs += [threads.submit(keep_ticking, connect(), clock) for clock in clocks[3:]]
        for done in jobs:
            done.result(timeout=60)
    settle_clock(world, clocks)
    judge(world)


def test_an_edit_while_the_ticks_transaction_is_open_waits_for_it(
    world: World, connect: Callable[[], Database]
) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:01:30")
    ticking, editing = connect(), World(login=world.login, database=connect(), clock=world.clock)
    editing.tenant_id = world.tenant_id
    with ThreadPoolExecutor(1) as threads:
        with ticking.transaction() as transaction:
            [row] = transaction.run(
                "planning.claim_calendars",
                horizon=world.clock.now + LOOK_AHEAD,
                tzdata_version=tzdata_version(),
                left_alone=[],
                most=10,
            )
            edited = threads.submit(editing.edit, schedule, cron="0 12 * * *")
            wait_until(lambda: waiting_for_a_lock(world) == 1)
            transaction.run(
                "planning.advance",
                ids=[row["id"]],
                next_fire_ats=[world.clock.now + timedelta(minutes=3)],
                utc_offsets=[0],
                ends=[world.clock.now + LOOK_AHEAD],
                tzdata_version="2026a",
            )
        edited.result(timeout=30)
    assert world.planned(schedule) == ["09:01:00"]


def test_a_calendar_that_a_change_holds_is_passed_over_twice_and_then_waited_for(
    world: World, connect: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:05:30")
    holder = connect()
    asked: list[str] = []
    run = Transaction.run

    def note(transaction: Transaction, block: str, **parameters: object) -> list[Row]:
        asked.append(block)
        return run(transaction, block, **parameters)

    with ThreadPoolExecutor(1) as threads:
        with holder.transaction() as transaction:
            transaction.run("schedules.lock_calendars", ids=[schedule.calendar_id])
            monkeypatch.setattr(Transaction, "run", note)
            ticked = threads.submit(world.tick)
            wait_until(lambda: waiting_for_a_lock(world) == 1)
            seen = [block.removeprefix("planning.") for block in asked if block.startswith("planning.")]
            assert seen == [*("claim_calendars", "count_due") * 2, "bound_wait", "wait_for_calendars"]
        assert ticked.result(timeout=30).runs == 5
    assert world.planned(schedule)[-1] == "09:07:00"


def waiting_for_a_lock(world: World) -> int:
    """How many sessions of this database wait for a lock."""
    [[count]] = world.sql(
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    return int(count)


def wait_until(condition: Callable[[], bool]) -> None:
    """Looks until it holds, for ten seconds at most."""
    deadline = datetime.now(UTC) + timedelta(seconds=10)
    while not condition():
        assert datetime.now(UTC) < deadline, "it never came to that"
