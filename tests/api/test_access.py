"""Who may do what: another tenant's things are not there, and a key does what its scopes say."""

from types import ModuleType
from typing import Any

import pytest

from tests.api.client import Answer, Client
from tests.api.contract import Contract
from tests.world import World

_BODIES = {"POST": {"cron": "0 0 * * *", "url": "https://hook.example/"}, "PATCH": {"name": "mine now"}}


def call(client: Client, route: Any, ids: dict[str, str]) -> Answer:
    """A good request to the route."""
    path = route.path.format(**ids)
    match route.method:
        case "GET":
            return client.get(path)
        case "DELETE":
            return client.delete(path)
        case "PATCH":
            return client.patch(path, _BODIES["PATCH"])
        case "PUT":
            return client.put(path, {"dates": []})
        case _:
            return client.post(path, None if "{" in route.path else _BODIES["POST"])


@pytest.fixture
def ids(client: Client) -> dict[str, str]:
    """A schedule and a run of the world's tenant."""
    made = client.create()
    run = client.get(f"/v1/schedules/{made['id']}/runs").document["runs"][0]
    client.put("/v1/exclusion-lists/holidays", {"dates": []})
    return {"schedule_id": made["id"], "run_id": run["id"], "name": "holidays"}


def test_every_route_with_another_tenants_ids_answers_that_there_is_no_such_thing(
    client: Client, ids: dict[str, str], modules: dict[str, ModuleType]
) -> None:
    before = client.get(f"/v1/schedules/{ids['schedule_id']}").document
    for route in modules["routes"].ROUTES:
        # A PUT makes what is not there.
        if "{" in route.path and route.method != "PUT":
            answer = call(client.stranger(), route, ids)
            assert answer.status == 404, route
    assert client.get(f"/v1/schedules/{ids['schedule_id']}").document == before


def test_another_tenants_schedules_are_in_no_list(client: Client, ids: dict[str, str]) -> None:
    assert client.stranger().get("/v1/schedules").document == {"schedules": [], "next_cursor": None}


def test_a_name_may_be_used_by_every_tenant(client: Client, world: World) -> None:
    other = client.stranger()
    world.sql(
        "insert into tenant (id, name, status, created_at) values (:id, 'Other', 'active', :now)",
        id=other.tenant_id,
        now=world.clock.now,
    )
    client.create(name="report")
    other.create(name="report")


def test_a_key_may_read_with_the_scope_read_and_change_with_the_scope_write(
    client: Client, ids: dict[str, str], modules: dict[str, ModuleType]
) -> None:
    for route in modules["routes"].ROUTES:
        reads = route.method == "GET" or route.path == "/v1/schedules/preview"
        needed, other = ("read", "write") if reads else ("write", "read")
        refused = call(client.may(f"{other} admin"), route, ids)
        assert refused.status == 403, route
        assert needed in refused.document["detail"]
        # What it comes to is another test's: a run that succeeded can't be cancelled.
        assert call(client.may(needed), route, ids).status != 403, route


def test_what_is_refused_changes_nothing(client: Client, ids: dict[str, str], contract: Contract) -> None:
    path = f"/v1/schedules/{ids['schedule_id']}"
    before = client.get(path).document
    for answer in (client.may("read").delete(path), client.may("").post(f"{path}/pause"), client.may("").get(path)):
        assert answer.status == 403
    assert client.get(path).document == before
