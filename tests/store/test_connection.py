"""A connection is used again only while it is in step with the server."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from scheduler.errors import DatabaseUnavailable, NotFound
from scheduler.store import connection, sql
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database, StatementInterrupted, StatementRefused

from local.postgres import Server
from tests.conftest import login_to


def backend(database: Database) -> int:
    """The process at the other end."""
    with database.transaction() as transaction:
        return int(transaction.run("testing.backend")[0]["pid"])


@pytest.fixture(autouse=True)
def _testing_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {
        "testing.backend": "select pg_backend_pid() as pid",
        "testing.echo": "select cast(:text as text) as text",
        "testing.tenants": "select count(*) as tenants from tenant",
        "testing.refused": "select 1 / 0",
        "testing.cancelled": "select pg_cancel_backend(pg_backend_pid()), pg_sleep(10)",
        "testing.end": "select pg_terminate_backend(:pid)",
    }
    monkeypatch.setattr(connection, "block", lambda name: blocks.get(name) or sql.block(name))
    connection._statement.cache_clear()


def test_the_database_clock_is_aware_utc_and_moves_inside_a_transaction(database: Database) -> None:
    with database.transaction() as transaction:
        first, second = database_clock(transaction), database_clock(transaction)
    assert first.utcoffset() is not None
    assert first < second


def test_a_parameter_that_fails_to_encode_never_leaves_the_next_query_with_other_rows(database: Database) -> None:
    before = backend(database)
    with pytest.raises(UnicodeEncodeError), database.transaction() as transaction:
        transaction.run("testing.echo", text="\ud800")
    with database.transaction() as transaction:
        assert transaction.run("testing.echo", text="mine") == [{"text": "mine"}]
    assert backend(database) != before


def test_the_servers_own_error_keeps_the_connection(database: Database) -> None:
    before = backend(database)
    with pytest.raises(StatementRefused) as refused, database.transaction() as transaction:
        transaction.run("testing.refused")
    assert refused.value.code == "22012"
    assert backend(database) == before


def test_a_statement_that_the_server_gave_up_on_is_worth_another_try(database: Database) -> None:
    before = backend(database)
    with pytest.raises(StatementInterrupted) as refused, database.transaction() as transaction:
        transaction.run("testing.cancelled")
    assert isinstance(refused.value, DatabaseUnavailable)
    assert backend(database) == before


def test_an_error_of_ours_between_statements_rolls_back_and_keeps_the_connection(database: Database) -> None:
    before = backend(database)
    with pytest.raises(NotFound), database.transaction():
        raise NotFound
    assert backend(database) == before


def test_what_begins_inside_a_whole_is_stored_with_it_or_not_at_all(database: Database) -> None:
    def make_one() -> None:
        with database.transaction() as part:
            part.run("tenants.insert", id=uuid4(), name="Acme", now=database_clock(part))

    def count() -> int:
        with database.transaction() as transaction:
            return int(transaction.run("testing.tenants")[0]["tenants"])

    def make_three(then: Callable[[], None]) -> None:
        with database.joined():
            make_one()
            with database.joined():
                make_one()
            make_one()
            then()

    def fail() -> None:
        raise NotFound

    with pytest.raises(NotFound):
        make_three(then=fail)
    assert count() == 0
    make_three(then=lambda: None)
    assert count() == 3


def test_a_connection_that_the_server_closed_is_replaced_at_begin(
    database: Database, connect: Callable[[], Database]
) -> None:
    """pg-02: as after a sandbox was frozen, or the server restarted; nobody sees an error."""
    before = backend(database)
    other = connect()
    with other.transaction() as transaction:
        transaction.run("testing.end", pid=before)
    assert backend(database) != before


def test_a_connection_that_breaks_inside_a_transaction_is_an_error_and_then_replaced(
    database: Database, connect: Callable[[], Database]
) -> None:
    def cut_off() -> None:
        with database.transaction() as transaction:
            pid = transaction.run("testing.backend")[0]["pid"]
            with other.transaction() as killer:
                killer.run("testing.end", pid=pid)
            transaction.run("testing.echo", text="x")

    other = connect()
    before = backend(database)
    with pytest.raises(DatabaseUnavailable):
        cut_off()
    assert backend(database) != before


def test_a_server_that_is_not_there_is_database_unavailable(server: Server) -> None:
    nowhere = login_to(server, "no_such_database")
    with pytest.raises(DatabaseUnavailable), Database(lambda: nowhere).transaction():
        pass
