"""The API's things in their states, and a good request to each route that changes one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.api.client import Answer, Client
from tests.world import World

HOURLY = {"rate": "1 hour", "url": "https://hook.example/path"}
LIST = "/v1/exclusion-lists/holidays"
NAMED = "/v1/schedules/by-name/one"


@dataclass(frozen=True, kw_only=True, slots=True)
class Thing:
    """Where it is read, and another change that it may undergo meanwhile."""

    path: str
    meanwhile: Callable[[], Answer]


def a_schedule(client: Client, world: World) -> Thing:
    path = f"/v1/schedules/{client.create()['id']}"
    return Thing(path=path, meanwhile=lambda: client.patch(path, {"name": "theirs"}))


def a_named_schedule(client: Client, world: World) -> Thing:
    client.put(NAMED, HOURLY)
    return Thing(path=NAMED, meanwhile=lambda: client.put(NAMED, HOURLY | {"description": "theirs"}))


def a_list(client: Client, world: World) -> Thing:
    client.put(LIST, {"dates": ["2026-12-25"]})
    return Thing(path=LIST, meanwhile=lambda: client.put(LIST, {"dates": []}))


def a_run(client: Client, world: World) -> Thing:
    path = f"/v1/runs/{client.post(f'/v1/schedules/{client.create()["id"]}/trigger').document['id']}"

    def end() -> Answer:
        # As a delivery does.
        world.sql(
            "update job_run set state = 'failed', reason = 'exhausted', attempt = attempt + 1, ended_at = :now where id = :id",
            id=path.rpartition("/")[2],
            now=datetime(2026, 12, 1, 9, 0, 1, tzinfo=UTC),
        )
        return client.get(path)

    return Thing(path=path, meanwhile=end)


def a_run_that_failed(client: Client, world: World) -> Thing:
    thing = a_run(client, world)
    thing.meanwhile()
    return thing


def a_key(client: Client, world: World) -> Thing:
    path = f"/v1/keys/{client.post('/v1/keys', {'scopes': ['read']}).document['id']}"
    return Thing(path=path, meanwhile=lambda: client.delete(path))


def the_secrets(client: Client, world: World) -> Thing:
    path = "/v1/signing-secrets"
    client.post(path)
    return Thing(path=path, meanwhile=lambda: client.post(path))


def an_old_secret(client: Client, world: World) -> Thing:
    first, _ = (client.post("/v1/signing-secrets").document["id"] for _ in range(2))
    # It ends earlier than it did.
    return Thing(
        path=f"/v1/signing-secrets/{first}",
        meanwhile=lambda: client.post("/v1/signing-secrets", {"overlap_seconds": 60}),
    )


# Every route that changes one thing that is there: what there is before, what its path ends in, and its body.
CHANGES: dict[tuple[str, str], tuple[Callable[[Client, World], Thing], str, Any]] = {
    ("PATCH", "/v1/schedules/{schedule_id}"): (a_schedule, "", {"name": "mine"}),
    ("DELETE", "/v1/schedules/{schedule_id}"): (a_schedule, "", None),
    ("POST", "/v1/schedules/{schedule_id}/pause"): (a_schedule, "/pause", None),
    ("POST", "/v1/schedules/{schedule_id}/resume"): (a_schedule, "/resume", None),
    ("POST", "/v1/schedules/{schedule_id}/trigger"): (a_schedule, "/trigger", None),
    ("POST", "/v1/schedules/{schedule_id}/backfill"): (
        a_schedule,
        "/backfill",
        {"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T08:30:00Z"},
    ),
    ("PUT", "/v1/schedules/by-name/{name}"): (a_named_schedule, "", HOURLY | {"description": "mine"}),
    ("PUT", "/v1/exclusion-lists/{name}"): (a_list, "", {"dates": ["2026-12-24"]}),
    ("DELETE", "/v1/exclusion-lists/{name}"): (a_list, "", None),
    ("POST", "/v1/runs/{run_id}/redeliver"): (a_run_that_failed, "/redeliver", None),
    ("POST", "/v1/runs/{run_id}/cancel"): (a_run, "/cancel", None),
    ("DELETE", "/v1/keys/{key_id}"): (a_key, "", None),
    ("POST", "/v1/signing-secrets"): (the_secrets, "", None),
    ("DELETE", "/v1/signing-secrets/{secret_id}"): (an_old_secret, "", None),
}
