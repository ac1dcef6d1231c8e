"""What operators do: each action may be repeated, and is written down."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from scheduler.aws.keys import Keys
from scheduler.errors import InvalidInput, KeyReused, NotFound
from scheduler.tenants import find_key

from tests.api.client import Context
from tests.depot import Depot
from tests.world import RETENTION, World

_FOLDER = Path(__file__).parents[2] / "functions" / "admin"

type Act = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    """The function's actions, imported as the runtime does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(_FOLDER)
        import actions  # noqa: PLC0415

        yield actions
    for name in ("actions", "asked", "app"):
        sys.modules.pop(name, None)


@pytest.fixture
def time_left() -> list[bool]:
    """Whether there is more time, asked again and again; the last answer stands."""
    return [True]


@pytest.fixture
def act(module: Any, world: World, keys: Keys, time_left: list[bool]) -> Act:
    actions = module.Actions(
        database=world.database,
        clock=world.clock,
        keys=keys,
        scheduling=world.scheduling,
        more_time=lambda: time_left.pop(0) if len(time_left) > 1 else time_left[0],
    )

    def act(action: str, **words: Any) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(actions, action)({"action": action, "operator": "ada", **words})
        return answer

    return act


def audit(world: World) -> list[list[Any]]:
    return world.sql("select operator, action, detail from admin_action order by id")


def test_a_tenant_is_made_once_under_the_id_that_the_operator_chose(act: Act, world: World) -> None:
    tenant_id = str(uuid4())
    made = act("create_tenant", name="Acme", tenant_id=tenant_id)
    assert (made["tenant_id"], made["created"]) == (tenant_id, True)
    assert find_key(world.database, world.clock, made["api_key"])
    assert act("create_tenant", name="Acme", tenant_id=tenant_id) == {"tenant_id": tenant_id, "created": False}
    assert audit(world) == [["ada", "create_tenant", {"name": "Acme"}]]
    assert act("create_tenant", name="Other")["created"]


def test_a_suspended_tenants_keys_are_refused_until_it_is_resumed(act: Act, world: World) -> None:
    made = act("create_tenant", name="Acme")
    for action, changed, good in (
        ("suspend_tenant", True, False),
        ("suspend_tenant", False, False),
        ("resume_tenant", True, True),
        ("resume_tenant", False, True),
    ):
        assert act(action, tenant_id=made["tenant_id"])["changed"] is changed
        assert (find_key(world.database, world.clock, made["api_key"]) is not None) is good
    assert [row[1:] for row in audit(world)[1:]] == [
        ["suspend_tenant", {"changed": True}],
        ["suspend_tenant", {"changed": False}],
        ["resume_tenant", {"changed": True}],
        ["resume_tenant", {"changed": False}],
    ]


def test_limits_are_set_one_by_one(act: Act, world: World) -> None:
    words = {"tenant_id": str(world.tenant_id)}
    act("set_limits", **words, limits={"max_schedules": 7})
    assert act("set_limits", **words, limits={"requests_per_second": 100})["limits"] == {
        "schedules": 7,
        "interval_seconds": 10,
        "payload_bytes": 262_144,
        "requests_per_second": 100,
    }


@pytest.mark.parametrize(
    "limits", [None, {}, {"max_schedules": -1}, {"max_schedules": True}, {"requests_per_second": "9"}, {"more": 1}]
)
def test_limits_that_can_not_be_are_refused(act: Act, world: World, limits: Any) -> None:
    with pytest.raises(InvalidInput, match="/limits"):
        act("set_limits", tenant_id=str(world.tenant_id), limits=limits)
    assert audit(world) == []


@pytest.mark.parametrize("action", ["rotate_secret", "issue_key"])
def test_a_credential_is_made_once_for_each_request_id(act: Act, world: World, action: str) -> None:
    words = {"tenant_id": str(world.tenant_id)}
    first = act(action, **words, request_id="r1")
    assert act(action, **words, request_id="r1") == first
    assert act(action, **words, request_id="r2") != first
    assert act(action, **words) != first
    assert [row[1] for row in audit(world)] == [action] * 3
    with pytest.raises(KeyReused):
        act(action, **words, request_id="r1", operator="bob")


def test_no_key_that_a_tenant_may_send_is_an_operators(act: Act, world: World) -> None:
    act("issue_key", tenant_id=str(world.tenant_id), request_id="r1")
    [[key]] = world.sql("select key from idempotent_request")
    assert "r1" in key
    assert not key.isprintable()


def test_a_deleted_tenant_leaves_nothing_but_the_audit(act: Act, world: World, depot: Depot) -> None:
    other = world.create()
    made = act("create_tenant", name="Gone")
    gone = World(login=world.login, database=world.database, clock=world.clock, tenant_id=uuid4())
    act("rotate_secret", tenant_id=str(gone.tenant_id))
    schedule = gone.create()
    gone.pause(gone.create(cron="0 0 * * *"))
    run_id = world.sql("select id from job_run where schedule_id = :id limit 1", id=schedule.id)[0][0]
    depot.dispatch()
    world.clock.move(minutes=2)
    depot.deliver(run_id)
    kept = rows_of(world, world.tenant_id)
    assert act("delete_tenant", tenant_id=str(gone.tenant_id)) == {"tenant_id": str(gone.tenant_id), "done": True}
    assert act("delete_tenant", tenant_id=made["tenant_id"])["done"]
    assert sum(rows_of(world, gone.tenant_id).values()) == 0
    assert rows_of(world, world.tenant_id) == kept
    assert world.sql("select count(*) from attempt where run_id = :id", id=run_id) == [[0]]
    assert act("delete_tenant", tenant_id=made["tenant_id"])["done"]
    assert world.planned(other)


def test_a_deletion_goes_on_where_its_time_ended(act: Act, world: World, time_left: list[bool]) -> None:
    for _ in range(3):
        world.create()
    words = {"tenant_id": str(world.tenant_id)}
    calls = 0
    while calls < 20:
        time_left[:] = [False]
        calls += 1
        if act("delete_tenant", **words)["done"]:
            break
    assert 3 < calls < 20
    assert sum(rows_of(world, world.tenant_id).values()) == 0


@pytest.mark.parametrize("action", ["suspend_tenant", "resume_tenant", "delete_tenant", "rotate_secret", "issue_key"])
def test_a_tenant_that_is_not_there_is_not_found(act: Act, action: str) -> None:
    with pytest.raises(NotFound):
        act(action, tenant_id=str(uuid4()))


def rows_of(world: World, tenant_id: object) -> dict[str, int]:
    """How many rows each table has of a tenant."""
    tables = world.sql(
        """select c.relname from pg_class as c inner join pg_attribute as a on c.oid = a.attrelid
        where a.attname = 'tenant_id' and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'admin_action'"""
    )
    counts = {
        name: world.sql(f"select count(*) from {name} where tenant_id = :id", id=tenant_id)[0][0] for [name] in tables
    }
    return counts | {"tenant": world.sql("select count(*) from tenant where id = :id", id=tenant_id)[0][0]}


def test_a_field_that_an_action_does_not_read_is_refused_before_anything_is_done(
    module: Any, world: World, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    import app  # noqa: PLC0415

    monkeypatch.setattr(app, "parts", lambda: (world.database, keys, RETENTION))
    event = {"action": "rotate_secret", "tenant_id": str(world.tenant_id), "overlap_second": 0, "scopes": ["read"]}
    answer = app.handler(event, Context())
    assert [each["pointer"] for each in answer["errors"]] == ["/overlap_second", "/scopes"]
    assert world.sql("select count(*) from signing_secret") == [[0]]


def test_every_action_is_in_the_operators_page_with_its_fields(module: Any) -> None:
    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE))
    assert set(rows) == set(module.ACTIONS)
    for action, fields in module.ACTIONS.items():
        assert set(fields) <= set(re.findall(r"`(\w+)`", rows[action])), action
