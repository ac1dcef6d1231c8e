"""Mistakes with PostgreSQL that others have made, each under its case's id: what we store, ask for and never say."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from scheduler.aws import logins
from scheduler.calendar.occurrences import occurrences
from scheduler.calendar.spec import cron
from scheduler.calendar.zones import validate
from scheduler.errors import InvalidExpression
from scheduler.planning import plan
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database

from tests.test_settings import GOOD
from tests.world import RETENTION, World, utc

_SQL = Path(__file__).parents[2] / "shared" / "scheduler" / "store"
STATEMENTS = [path for path in sorted(_SQL.rglob("*.sql")) if "versions" not in path.parts]


def code(path: Path) -> str:
    """The statements of a file, comments left out, in lower case."""
    return "\n".join(line.partition("--")[0] for line in path.read_text().lower().splitlines())


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.name)
def test_the_database_does_no_arithmetic_with_zones(path: Path) -> None:
    """pg-05: its zone data is not ours. The one zone that a statement may name is UTC."""
    assert set(re.findall(r"at time zone (\S+)", code(path))) <= {"'utc'"}


def test_vancouver_is_what_the_pinned_data_says() -> None:
    """pg-05: Python's answer, whatever the server's own data would make of it."""
    [instant] = occurrences(cron("0 9 1 12 *", "America/Vancouver"), utc("00:00:00"), utc("23:00:00"))
    assert instant == datetime(2026, 12, 1, 16, 0, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["FOO5", "UTC+2", "europe/paris", "CST"], ids=lambda zone: f"pg-06: {zone}")
def test_a_zone_that_postgres_would_take_is_refused(zone: str) -> None:
    with pytest.raises(InvalidExpression):
        validate(zone)


@pytest.mark.parametrize(
    "value",
    ["infinity", "-infinity", "10000-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC", "1969-12-31 23:59:59+00"],
    ids=lambda value: f"pg-08: {value}",
)
def test_a_time_that_no_calendar_holds_is_never_stored(world: World, value: str) -> None:
    schedule = world.create()
    for table, column in (("schedule", "updated_at"), ("schedule", "active_from"), ("job_run", "next_attempt_at")):
        with pytest.raises(Exception, match=r"instant_is_bounded|job_run_never_early"):
            world.sql(f"update {table} set {column} = cast(:value as timestamptz)", value=value)
    assert world.sql("select count(*) from schedule where updated_at = :at", at=schedule.updated_at) == [[1]]


def test_every_stored_time_is_such_a_time(world: World) -> None:
    """pg-08: of all columns of all tables."""
    plain = world.sql(
        "select table_name, column_name from information_schema.columns where table_schema = 'public'"
        " and data_type like 'timestamp%' and domain_name is distinct from 'instant'"
    )
    assert plain == []


def test_the_clock_moves_inside_a_transaction(database: Database) -> None:
    """pg-09: now() would stand still, and a lease counted from it would be spent before it began."""
    with database.transaction() as transaction:
        first = database_clock(transaction)
        transaction.run("clock.read")
        assert database_clock(transaction) > first


def test_a_day_is_24_hours_in_our_sessions(world: World, database: Database) -> None:
    """pg-11: a session in New York would make 23 of it when its clocks go forward."""
    with database.transaction() as transaction:
        [row] = transaction._connection.run("show timezone")
        [[day, hours]] = transaction._connection.run(
            "select at + interval '1 day', at + interval '24 hours'"
            " from (values (timestamptz '2027-03-13 12:00-05')) as t (at)"
        )
    assert row == ["UTC"]
    assert day == hours == datetime(2027, 3, 14, 17, 0, tzinfo=UTC)


def test_an_iam_token_is_made_at_each_connect_and_at_no_other_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """pg-12: it lives for a quarter of an hour, and only a connect asks for it."""
    made: list[str] = []

    class Rds:
        def generate_db_auth_token(self, **words: Any) -> str:
            made.append(words["DBUsername"])
            return f"token {len(made)}"

    monkeypatch.setattr(logins, "_client", lambda service: Rds())
    login = logins.login_of(Settings.from_environment({**GOOD, "DATABASE_TLS": "off"}))
    assert made == []
    assert [login().password, login().password] == ["token 1", "token 2"]


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.name)
def test_no_statement_pins_a_pooled_session(path: Path) -> None:
    """pg-13: SET that outlives its transaction, session locks, named statements and temporary tables each would."""
    text = code(path)
    assert not re.search(r"^\s*set (?!local )\S+ (=|to) ", text.split("update")[0], re.MULTILINE)
    for pin in ("pg_advisory_lock(", "prepare ", "create temp", "listen ", "declare "):
        assert pin not in text


def test_two_wall_times_of_one_name_are_two_instants() -> None:
    """le-09: compared, hashed and subtracted in their own zone they would be one; occurrences are in UTC."""
    zone = ZoneInfo("America/New_York")
    first, second = (datetime(2026, 11, 1, 1, 30, tzinfo=zone, fold=fold) for fold in (0, 1))
    assert first == second
    day = datetime(2026, 11, 1, tzinfo=UTC)
    found = list(occurrences(cron("*/30 1 1 11 *", "America/New_York"), day, day + timedelta(days=1)))
    assert {first.astimezone(UTC), second.astimezone(UTC)} <= set(found)
    assert len(set(found)) == len(found)
    assert second.astimezone(UTC) - first.astimezone(UTC) == timedelta(hours=1)


def test_two_ticks_at_once_make_one_run(world: World, connect: Callable[[], Database]) -> None:
    """le-06: being the leader excludes nobody; the unique key does."""
    schedule = world.create(cron="0 9 * * *", start_at=utc("00:00:00"))
    world.clock.set("2026-12-02T09:00:00+00:00")
    for database in (connect(), connect()):
        plan(database, world.clock, retention=RETENTION, more_time=lambda: True)
    assert world.planned(schedule) == ["09:00:00"]
