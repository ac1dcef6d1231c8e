"""Migrations: run again they change nothing, two at once wait for each other, and an old server is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pg8000.native
import pytest
from scheduler.errors import MisconfiguredError
from scheduler.store import migrations
from scheduler.store.connection import Database, Login
from scheduler.store.migrations import upgrade

from local.postgres import Server
from tests.conftest import login_to


@pytest.fixture
def empty(server: Server) -> Iterator[Login]:
    server.create_database("empty")
    yield login_to(server, "empty")
    server.drop_database("empty")


def run(login: Login, statement: str) -> list[list[Any]]:
    words = {"host": login.host, "port": login.port, "database": login.database, "password": login.password}
    with closing(pg8000.native.Connection(login.user, **words)) as connection:
        return list(connection.run(statement) or [])


def count_tables(login: Login) -> int:
    [[count]] = run(login, "select count(*) from pg_tables where schemaname = 'public'")
    return int(count)


def test_two_migrations_at_once_and_a_third_later_make_one_schema(empty: Login) -> None:
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(upgrade, empty) for _ in range(2)]:
            done.result(timeout=60)
    tables = count_tables(empty)
    upgrade(empty)
    assert count_tables(empty) == tables > 0


def test_an_older_release_leaves_the_schema_of_a_newer_one(empty: Login) -> None:
    """What a roll-back deploys: it knows no such revision."""
    upgrade(empty)
    run(empty, "update alembic_version set version_num = '9999'")
    upgrade(empty)
    assert run(empty, "select version_num from alembic_version") == [["9999"]]


def test_a_server_older_than_18_is_refused_by_name(empty: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "_LEAST_VERSION", 190_000)
    with pytest.raises(MisconfiguredError, match="PostgreSQL 18 or newer"):
        upgrade(empty)
    assert count_tables(empty) == 0


@pytest.mark.parametrize("right", ["superuser", "bypassrls"])
def test_a_user_that_no_policy_binds_is_refused(empty: Login, server: Server, right: str) -> None:
    master = replace(empty, user=server.user)
    run(master, f"create role unbound login {right} password '{server.password}'")
    try:
        with pytest.raises(MisconfiguredError, match="keep tenants apart"):
            upgrade(replace(empty, user="unbound"))
        assert count_tables(empty) == 0
    finally:
        run(master, "drop role unbound")


def test_functions_sessions_have_limits_and_are_in_utc(database: Database) -> None:
    limits = {}
    with database.transaction() as transaction:
        for name in ("statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout", "TimeZone"):
            limits[name] = transaction._connection.run(f"show {name}")[0][0]
    assert limits == {
        "statement_timeout": "20s",
        "idle_in_transaction_session_timeout": "10s",
        "transaction_timeout": "1min",
        "TimeZone": "UTC",
    }
