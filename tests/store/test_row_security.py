"""The second wall: a transaction bound to a tenant sees and changes that tenant's rows alone, whatever its statements say."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from scheduler.store.connection import Database, StatementRefused

from tests.world import World

# Tables that a tenant's transaction does not read: no route leads there, or their rows are everyone's.
_OPEN = {"calendar", "admin_action", "overlap_turn", "alembic_version"}
_SEEN = ("schedule", "schedule_version", "job_run", "tenant")


@pytest.fixture
def other(world: World) -> World:
    """Another tenant over the same database, with a schedule of its own, as the first one has."""
    made = replace(world, tenant_id=uuid4())
    world.create()
    made.create()
    return made


def counts(world: World, database: Database) -> dict[str, int]:
    """How many rows each table shows to plain statements that name no tenant."""
    found = {}
    for table in _SEEN:
        with database.transaction() as transaction:
            [[count]] = transaction._connection.run(f"select count(*) from {table}")
        found[table] = count
    return found


def test_a_bound_transaction_sees_its_tenants_rows_alone(world: World, other: World, database: Database) -> None:
    everything = counts(world, database)
    with database.acting_for(world.tenant_id):
        bound = counts(world, database)
    assert bound == {table: count / 2 for table, count in everything.items()}
    assert all(bound.values())


def test_the_binding_ends_with_the_request(world: World, other: World, database: Database) -> None:
    with database.acting_for(uuid4()):
        assert not any(counts(world, database).values())
    assert all(counts(world, database).values())


def test_a_bound_transaction_can_not_write_for_another_tenant(world: World, other: World, database: Database) -> None:
    def key(tenant_id: UUID) -> dict[str, object]:
        return {
            "id": uuid4(),
            "tenant_id": tenant_id,
            "prefix": "ck_",
            "hash": uuid4().bytes * 2,
            "scopes": ["read"],
            "now": datetime(2026, 1, 1, tzinfo=UTC),
        }

    with database.acting_for(world.tenant_id):
        with database.transaction() as transaction:
            transaction.run("tenants.insert_key", **key(world.tenant_id))
        with pytest.raises(StatementRefused, match="row-level security"), database.transaction() as transaction:
            transaction.run("tenants.insert_key", **key(other.tenant_id))


def test_a_schedule_of_another_tenant_is_not_changed_by_a_statement_that_forgets_whose_it_is(
    world: World, other: World, connect: Callable[[], Database]
) -> None:
    database = connect()
    with database.acting_for(world.tenant_id), database.transaction() as transaction:
        changed = transaction._connection.run("update schedule set url = 'https://evil.example/' returning id")
    assert len(changed) == 1
    assert world.sql("select count(*) from schedule where url = 'https://evil.example/'") == [[1]]


def test_every_table_that_names_a_tenant_is_behind_the_wall(world: World) -> None:
    rows = world.sql(
        """select c.relname, c.relrowsecurity and c.relforcerowsecurity
        from pg_class as c
        where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = cast('public' as regnamespace)"""
    )
    unguarded = {name for name, guarded in rows if not guarded}
    assert unguarded == _OPEN
