"""The authorizer: a good key opens the whole stage for its tenant, anything else is a 401."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import pytest
from scheduler.errors import DatabaseUnavailable
from scheduler.tenants import hash_key

from tests.api.client import Context
from tests.world import World

_PROJECT = Path(__file__).parents[2]
_EVENT = json.loads((_PROJECT / "events" / "authorizer.json").read_text())
_STAGE = "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5/live"


@pytest.fixture(scope="module")
def app() -> ModuleType:
    spec = importlib.util.spec_from_file_location("authorizer_app", _PROJECT / "functions" / "authorizer" / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ask(
    app: ModuleType, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Sends the authorizer an Authorization header."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def ask(header: str) -> dict[str, Any]:
        policy: dict[str, Any] = app.handler(_EVENT | {"authorizationToken": header}, Context())
        return policy

    yield ask
    app.parts().close()
    app.parts.cache_clear()


def add_key(world: World, text: str, scopes: list[str]) -> UUID:
    key_id = uuid4()
    with world.database.transaction() as transaction:
        transaction.run(
            "tenants.insert_key",
            id=key_id,
            tenant_id=world.tenant_id,
            prefix=text[:3],
            hash=hash_key(text),
            scopes=scopes,
            now=world.clock.now,
        )
    return key_id


def test_a_good_key_opens_every_route_of_the_stage_for_its_tenant(
    ask: Callable[[str], dict[str, Any]], world: World
) -> None:
    key_id = add_key(world, "ck_good", ["read", "write"])
    policy = ask("Bearer ck_good")
    assert policy["principalId"] == str(key_id)
    assert policy["policyDocument"]["Statement"] == [
        {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": f"{_STAGE}/*"}
    ]
    assert policy["context"] == {
        "tenant_id": str(world.tenant_id),
        "key_id": str(key_id),
        "scopes": "read write",
    }


def test_the_scheme_is_read_in_any_case(ask: Callable[[str], dict[str, Any]], world: World) -> None:
    add_key(world, "ck_good", ["read"])
    assert ask("bearer ck_good")["context"]["scopes"] == "read"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer ck_other", "ck_good", "Basic ck_good", "Bearer  ck_good", "Bearer ck_good ",
     "Bearer CK_GOOD", "Bearer \ud800", "Bearer ck_good\x00", "Bearer " + "x" * 100_000],
)  # fmt: skip
def test_any_other_header_is_unauthorized(ask: Callable[[str], dict[str, Any]], world: World, header: str) -> None:
    add_key(world, "ck_good", ["read"])
    with pytest.raises(Exception, match=r"^Unauthorized$"):
        ask(header)


@pytest.mark.parametrize(
    "end",
    [
        "update api_key set revoked_at = created_at",
        "update api_key set expires_at = '2001-01-01T00:00:00Z'",
        "update tenant set status = 'suspended'",
        "update tenant set status = 'deleted'",
    ],
)
def test_a_key_that_has_ended_is_unauthorized(ask: Callable[[str], dict[str, Any]], world: World, end: str) -> None:
    add_key(world, "ck_good", ["read"])
    ask("Bearer ck_good")
    world.sql(end)
    with pytest.raises(Exception, match=r"^Unauthorized$"):
        ask("Bearer ck_good")


def test_a_database_that_can_not_be_asked_is_no_verdict(
    ask: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_HOST", "127.0.0.1")
    monkeypatch.setenv("DATABASE_PORT", "1")
    with pytest.raises(DatabaseUnavailable):
        ask("Bearer ck_good")
