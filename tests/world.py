"""A small world for tests of the use cases: one database, a clock that tests move, tenants and schedules."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pg8000.native
from scheduler.planning import Plan, plan
from scheduler.schedules import Definition, Pause, Schedule
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database, Login, Transaction
from scheduler.timing import Timing

# Tuesday, 1 December 2026, 09:00:00.5 UTC; a fraction, since real clocks have one.
T0 = datetime(2026, 12, 1, 9, 0, 0, 500_000, tzinfo=UTC)
RETENTION = timedelta(days=30)


def utc(text: str) -> datetime:
    """`09:15:30` on the first test day, or a whole ISO text."""
    return datetime.fromisoformat(text if "T" in text else f"2026-12-01T{text}+00:00")


def so_often(count: int) -> Callable[[], bool]:
    """Time for so many looks at it. A tick looks before each step: for calendars of older zone data, then for due ones."""
    looks = iter(range(count))
    return lambda: next(looks, None) is not None


@dataclass
class Hands:
    """A clock set by hand; an instance is what use cases take as their clock."""

    now: datetime = T0

    def __call__(self, transaction: Transaction) -> datetime:
        return self.now

    def set(self, moment: str | datetime) -> None:
        self.now = utc(moment) if isinstance(moment, str) else moment

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class World:
    """Use cases over one connection and one clock, and plain SQL to look at what they did."""

    login: Login
    database: Database
    clock: Hands = field(default_factory=Hands)
    tenant_id: UUID = field(default_factory=uuid4)

    def __post_init__(self) -> None:
        with self.database.transaction() as transaction:
            transaction.run("tenants.insert", id=self.tenant_id, name="Acme", now=self.clock.now)

    @property
    def scheduling(self) -> Scheduling:
        return Scheduling(database=self.database, clock=self.clock, retention=RETENTION)

    def create(self, timing: Timing | None = None, **words: Any) -> Schedule:
        """A schedule; by default every minute."""
        definition = Definition(
            name=words.pop("name", None),
            timing=timing or Timing(**(words or {"cron": "* * * * *"})),
            url="https://hook.example/",
            headers=(),
            payload=None,
        )
        return self.scheduling.create(self.tenant_id, uuid4(), definition, changed_by="test")

    def edit(self, schedule: Schedule, **words: Any) -> Schedule:
        """Gives it another timing."""
        return self.retime(schedule, Timing(**words))

    def retime(self, schedule: Schedule, timing: Timing) -> Schedule:
        def apply(old: Definition) -> Definition:
            return replace(old, timing=timing)

        return self.scheduling.edit(self.tenant_id, schedule.id, apply, changed_by="test")

    def pause(self, schedule: Schedule, *, until: datetime | None = None, reason: str | None = None) -> Schedule:
        pause = Pause(until=until, reason=reason)
        return self.scheduling.pause(self.tenant_id, schedule.id, changed_by="test", pause=pause)

    def resume(self, schedule: Schedule) -> Schedule:
        return self.scheduling.resume(self.tenant_id, schedule.id, changed_by="test")

    def delete(self, schedule: Schedule) -> None:
        self.scheduling.delete(self.tenant_id, schedule.id, changed_by="test")

    def tick(self, *, retention: timedelta = RETENTION, more_time: Callable[[], bool] | None = None) -> Plan:
        """One tick's planning; one that gets nowhere ends after far more transactions than any here takes."""
        return plan(self.database, self.clock, retention=retention, more_time=more_time or so_often(500))

    def sql(self, text: str, **parameters: object) -> list[list[Any]]:
        """Plain SQL on a connection of its own: tests look with other eyes than the product's."""
        connection = pg8000.native.Connection(
            self.login.user,
            host=self.login.host,
            port=self.login.port,
            database=self.login.database,
            password=self.login.password,
        )
        try:
            return connection.run(text, **parameters) or []
        finally:
            connection.close()

    def planned(self, schedule: Schedule) -> list[str]:
        """Its runs' times as `HH:MM:SS`, sorted; the date is left out."""
        rows = self.sql(
            "select scheduled_for from job_run where schedule_id = :id and state <> 'cancelled' order by 1",
            id=schedule.id,
        )
        return [f"{row[0].astimezone(UTC):%H:%M:%S}" for row in rows]

    def skipped(self, schedule: Schedule) -> list[tuple[str, str, str, int]]:
        """Its skipped ranges, oldest first: reason, first and last as `HH:MM:SS`, count."""
        rows = self.sql(
            "select reason, first_scheduled_for, last_scheduled_for, occurrences from skipped_range"
            " where schedule_id = :id order by first_scheduled_for",
            id=schedule.id,
        )
        return [(row[0], *(f"{each.astimezone(UTC):%H:%M:%S}" for each in row[1:3]), row[3]) for row in rows]


def wait_until_blocked(world: World) -> None:
    """Until somebody waits for another's lock."""
    deadline = time.monotonic() + 30
    while not world.sql("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"):
        assert time.monotonic() < deadline, "nobody waits"
