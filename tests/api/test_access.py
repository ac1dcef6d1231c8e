"""Who may do what: another tenant's things are not there, and a key does what its scopes say."""

from types import ModuleType
from typing import Any

import pytest

from tests.api.client import Answer, Client
from tests.api.contract import Contract
from tests.world import World

_BODIES: dict[str, Any] = {
    "/v1/schedules": {"cron": "0 0 * * *", "url": "https://hook.example/"},
    "/v1/schedules/by-name/{name}": {"cron": "0 0 * * *", "url": "https://hook.example/"},
    "/v1/schedules/preview": {"cron": "0 0 * * *"},
    "/v1/schedules/pause": {"labels": {"a": "b"}},
    "/v1/schedules/resume": {"labels": {"a": "b"}},
    "/v1/schedules/{schedule_id}/backfill": {"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T08:30:00Z"},
    "/v1/exclusion-lists/{name}": {"dates": []},
    "/v1/redeliveries": {"filter": {"state": "failed"}},
    "/v1/keys": {"scopes": ["read"]},
}


def call(client: Client, route: Any, ids: dict[str, str]) -> Answer:
    """A good request to the route."""
    path = route.path.format(**ids)
    match route.method:
        case "GET":
            return client.get(path)
        case "DELETE":
            return client.delete(path)
        case "PATCH":
            return client.patch(path, {"name": "mine now"})
        case "PUT":
            return client.put(path, _BODIES[route.path])
        case _:
            return client.post(path, _BODIES.get(route.path))


@pytest.fixture
def ids(client: Client) -> dict[str, str]:
    """A schedule and a run of the world's tenant."""
    made = client.create()
    run = client.get(f"/v1/schedules/{made['id']}/runs").document["runs"][0]
    # One name for both, since their paths call it alike.
    client.put("/v1/exclusion-lists/holidays", {"dates": []})
    client.create(name="holidays")
    admin = client.may("admin")
    secrets = [admin.post("/v1/signing-secrets").document["id"] for _ in range(2)]
    return {
        "schedule_id": made["id"],
        "run_id": run["id"],
        "name": "holidays",
        "key_id": admin.post("/v1/keys", {"scopes": ["read"]}).document["id"],
        "secret_id": secrets[0],
    }


def test_every_route_with_another_tenants_ids_answers_that_there_is_no_such_thing(
    client: Client, ids: dict[str, str], modules: dict[str, ModuleType]
) -> None:
    before = client.get(f"/v1/schedules/{ids['schedule_id']}").document
    stranger = client.stranger().may("read write admin")
    for route in modules["routes"].ROUTES:
        # A PUT makes what is not there.
        if "{" in route.path and route.method != "PUT":
            answer = call(stranger, route, ids)
            assert answer.status == 404, route
    assert client.get(f"/v1/schedules/{ids['schedule_id']}").document == before


def test_another_tenants_schedules_are_in_no_list(client: Client, ids: dict[str, str]) -> None:
    assert client.stranger().get("/v1/schedules").document == {"schedules": [], "next_cursor": None}


def test_a_name_may_be_used_by_every_tenant(client: Client) -> None:
    other = client.stranger()
    client.create(name="report")
    other.create(name="report")


def test_a_key_may_do_what_its_scopes_say(client: Client, ids: dict[str, str], modules: dict[str, ModuleType]) -> None:
    for route in modules["routes"].ROUTES:
        needed = {"read", "write", "admin"} & {route.scope}
        refused = call(client.may(" ".join({"read", "write", "admin"} - needed)), route, ids)
        assert refused.status == 403, route
        assert route.scope in refused.document["detail"]
        # What it comes to is another test's: a run that succeeded can't be cancelled.
        assert call(client.may(route.scope), route, ids).status != 403, route
        reads = route.method == "GET" or route.path == "/v1/schedules/preview"
        assert (route.scope == "read") is (reads and "/keys" not in route.path and "secrets" not in route.path)


def test_what_is_refused_changes_nothing(client: Client, ids: dict[str, str], contract: Contract) -> None:
    path = f"/v1/schedules/{ids['schedule_id']}"
    before = client.get(path).document
    for answer in (client.may("read").delete(path), client.may("").post(f"{path}/pause"), client.may("").get(path)):
        assert answer.status == 403
    assert client.get(path).document == before


def test_a_tenant_that_is_being_deleted_makes_nothing_more(client: Client, world: World) -> None:
    admin = client.may("admin")
    # What a sandbox took for it is good for a second yet.
    assert client.get("/v1/schedules").status == 200
    world.sql("update tenant set status = 'deleted'")
    assert client.post("/v1/schedules", _BODIES["/v1/schedules"]).status == 403
    assert client.put("/v1/schedules/by-name/new", _BODIES["/v1/schedules"]).status == 403
    assert admin.post("/v1/keys", _BODIES["/v1/keys"]).status == 403
    assert admin.post("/v1/signing-secrets").status == 403


# API Gateway keeps what the authorizer said of a key for 30 seconds.
@pytest.mark.parametrize(
    "end", ["update tenant set status = 'deleted' where id = :id", "delete from tenant where id = :id"]
)
def test_a_tenant_that_is_gone_is_refused_while_its_key_is_still_known(
    client: Client, world: World, ids: dict[str, str], modules: dict[str, ModuleType], end: str
) -> None:
    gone = client.stranger().may("read write admin")
    world.sql(end, id=gone.tenant_id)
    for route in modules["routes"].ROUTES:
        assert call(gone, route, ids).status == 403, route
    assert gone.post("/v1/keys", _BODIES["/v1/keys"], Idempotency_Key="one").status == 403
