"""API keys and signing secrets, as their tenant manages them."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from scheduler.credentials import MOST_KEYS, Credentials, Scope
from scheduler.store.connection import Database
from scheduler.tenants import find_key

from tests.api.client import Client
from tests.world import World, wait_until_blocked


@pytest.fixture
def admin(client: Client) -> Client:
    return client.may("admin")


def test_a_key_is_shown_once_and_works(admin: Client, world: World) -> None:
    made = admin.post("/v1/keys", {"name": "deploys", "scopes": ["read", "write"]})
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    text = made.document.pop("api_key")
    assert text.startswith(made.document["prefix"])
    key = find_key(world.database, world.clock, text)
    assert key is not None
    assert (str(key.id), key.scopes) == (made.document["id"], ("read", "write"))
    listed = admin.get("/v1/keys").document["keys"]
    assert [each["id"] for each in listed] == [made.document["id"]]
    assert text not in str(listed)
    assert text not in str(world.sql("select * from api_key"))


def test_the_last_use_is_known_to_the_minute(admin: Client, world: World) -> None:
    made = admin.post("/v1/keys", {"scopes": ["read"]}).document
    path = f"/v1/keys/{made['id']}"
    assert admin.get(path).document["last_used_at"] is None
    find_key(world.database, world.clock, made["api_key"])
    assert admin.get(path).document["last_used_at"] == "2026-12-01T09:00:00.500000Z"
    world.clock.move(seconds=59)
    find_key(world.database, world.clock, made["api_key"])
    assert admin.get(path).document["last_used_at"] == "2026-12-01T09:00:00.500000Z"
    world.clock.move(seconds=2)
    find_key(world.database, world.clock, made["api_key"])
    assert admin.get(path).document["last_used_at"] == "2026-12-01T09:01:01.500000Z"


def test_a_revoked_key_is_good_no_more(admin: Client, world: World) -> None:
    made = admin.post("/v1/keys", {"scopes": ["read"]}).document
    path = f"/v1/keys/{made['id']}"
    assert [admin.delete(path).status for _ in range(2)] == [204, 204]
    assert find_key(world.database, world.clock, made["api_key"]) is None
    assert admin.get(path).document["revoked_at"] == "2026-12-01T09:00:00.500000Z"


def test_a_key_ends_when_it_expires(admin: Client, world: World) -> None:
    made = admin.post("/v1/keys", {"scopes": ["read"], "expires_at": "2026-12-01T10:00:00Z"}).document
    world.clock.set("09:59:59")
    assert find_key(world.database, world.clock, made["api_key"])
    world.clock.set("10:00:00")
    assert find_key(world.database, world.clock, made["api_key"]) is None


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({}, ["/scopes"]),
        ({"scopes": []}, ["/scopes"]),
        ({"scopes": ["read", "read"]}, ["/scopes"]),
        ({"scopes": ["root", "read", 5]}, ["/scopes/0", "/scopes/2"]),
        ({"scopes": ["read"], "expires_at": "2026-12-01T09:00:00Z"}, ["/expires_at"]),
        ({"scopes": ["read"], "expires_at": "2036-12-01T09:00:00Z"}, ["/expires_at"]),
        ({"scopes": ["read"], "name": "", "more": 1}, ["/more", "/name"]),
    ],
)
def test_a_key_that_can_not_be_is_not_made(
    admin: Client, world: World, fields: dict[str, Any], pointers: list[str]
) -> None:
    answer = admin.post("/v1/keys", fields)
    assert (answer.status, answer.pointers) == (400, pointers)
    assert world.sql("select count(*) from api_key") == [[0]]


def insert_keys(world: World, count: int) -> None:
    world.sql(
        """insert into api_key (id, tenant_id, prefix, hash, scopes, created_at)
        select gen_random_uuid(), :id, 'ck_', sha256(convert_to(cast(n as text), 'UTF8')), '{read}', '2026-01-01Z'
        from generate_series(1, cast(:count as integer)) as n""",
        id=world.tenant_id,
        count=count,
    )


def test_there_is_an_end_of_keys(admin: Client, world: World) -> None:
    insert_keys(world, MOST_KEYS)
    assert admin.post("/v1/keys", {"scopes": ["read"]}).status == 429
    world.sql("update api_key set revoked_at = created_at where hash = sha256('7')")
    assert admin.post("/v1/keys", {"scopes": ["read"]}).status == 201


def test_of_two_issues_at_once_the_second_counts_the_first(
    admin: Client, world: World, connect: Callable[[], Database]
) -> None:
    insert_keys(world, MOST_KEYS - 1)
    database = connect()
    credentials = Credentials(database=database, clock=world.clock)
    words: dict[str, Any] = {"name": None, "scopes": (Scope.READ,), "expires_at": None, "entropy": os.urandom}
    with ThreadPoolExecutor(max_workers=1) as issuers:
        with database.joined():
            credentials.issue(world.tenant_id, uuid4(), **words)
            second = issuers.submit(admin.post, "/v1/keys", {"scopes": ["read"]})
            wait_until_blocked(world)
        assert second.result(timeout=30).status == 429
    assert world.sql("select count(*) from api_key") == [[MOST_KEYS]]


def test_an_issue_that_is_repeated_shows_the_same_key_which_is_nowhere_in_clear(admin: Client, world: World) -> None:
    made = [admin.post("/v1/keys", {"scopes": ["read"]}, Idempotency_Key="k").document for _ in range(2)]
    assert made[0] == made[1]
    [[sealed, body]] = world.sql("select sealed, body from idempotent_request")
    assert sealed
    assert made[0]["api_key"].encode() not in body


def test_a_secret_is_rotated_with_an_overlap_and_the_old_one_can_be_ended(admin: Client, world: World) -> None:
    first = admin.post("/v1/signing-secrets")
    assert (first.status, first.headers["Cache-Control"]) == (201, "no-store")
    world.clock.move(seconds=1)
    second = admin.post("/v1/signing-secrets", {"overlap_seconds": 3600}).document
    listed = admin.get("/v1/signing-secrets").document["signing_secrets"]
    assert [each["id"] for each in listed] == [second["id"], first.document["id"]]
    assert [each["expires_at"] for each in listed] == [None, "2026-12-01T10:00:01.500000Z"]
    assert "whsec_" not in str(listed)
    assert admin.delete(f"/v1/signing-secrets/{second['id']}").status == 409
    assert admin.delete(f"/v1/signing-secrets/{first.document['id']}").status == 204
    assert admin.delete(f"/v1/signing-secrets/{first.document['id']}").status == 404
    assert len(admin.get("/v1/signing-secrets").document["signing_secrets"]) == 1


@pytest.mark.parametrize("seconds", [-1, 604_801, "1 day", True])
def test_an_overlap_has_its_bounds(admin: Client, seconds: Any) -> None:
    answer = admin.post("/v1/signing-secrets", {"overlap_seconds": seconds})
    assert (answer.status, answer.pointers) == (400, ["/overlap_seconds"])


def test_usage_stands_beside_the_limits(client: Client) -> None:
    client.create()
    assert client.get("/v1/usage").document == {
        "schedules": {"used": 1, "limit": 10_000},
        "smallest_interval_seconds": 10,
        "payload_bytes": 262_144,
        "requests_per_second": 1_000_000,
        "runs_of_the_last_24_hours": {},
    }
