"""The function as Lambda calls it: its environment, its log, and what it says when something else is broken."""

import copy
import io
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from scheduler.errors import MisconfiguredError

from tests.api.client import EVENT, Client, Context
from tests.api.conftest import Connect
from tests.world import World


@pytest.fixture
def handler(modules: dict[str, ModuleType]) -> Iterator[Any]:
    """The handler of a sandbox that has answered nothing yet."""
    app = modules["app"]
    app.api.cache_clear()
    yield app.handler
    app.api.cache_clear()


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port where nobody listens, held for the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_the_handler_answers_its_event_with_nothing_but_its_environment(
    handler: Any,
    modules: dict[str, ModuleType],
    environment: dict[str, str],
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    replace(world, tenant_id=UUID(EVENT["requestContext"]["authorizer"]["tenant_id"]))
    answer = handler(copy.deepcopy(EVENT), Context())
    modules["app"].api().close()
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == {"schedules": [], "next_cursor": None}
    assert answer["multiValueHeaders"]["X-Request-Id"] == [EVENT["requestContext"]["requestId"]]


def test_a_missing_variable_is_named(
    handler: Any, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("QUEUE_URL")
    with pytest.raises(MisconfiguredError, match="QUEUE_URL"):
        handler(copy.deepcopy(EVENT), Context())


def test_each_answer_is_one_log_line_without_what_was_sent(client: Client, log: io.StringIO) -> None:
    client.create(payload={"card": "4111111111111111"}, headers={"Authorization": "Bearer hush"})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["message"], line["status"], line["route"]) for line in lines] == [
        ("request.answered", 201, "/v1/schedules")
    ]
    assert lines[0]["tenant_id"] == str(client.tenant_id)
    assert not any(secret in log.getvalue() for secret in ("4111", "hush", "hook.example"))


def test_an_unknown_route_is_not_found(client: Client) -> None:
    answer = client.get("/v2/schedules")
    assert (answer.status, answer.document["type"]) == (404, "urn:problem-type:carillon:not-found")


def test_a_database_that_is_down_is_said_with_when_to_try_again(
    connect_api: Connect, environment: dict[str, str], unused_port: int
) -> None:
    client = connect_api(environment | {"DATABASE_PORT": str(unused_port)})
    answer = client.get("/v1/schedules")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert "127.0.0.1" not in json.dumps(answer.document)


def test_a_database_that_comes_back_is_used_again(client: Client, world: World) -> None:
    client.create()
    world.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    assert client.get("/v1/schedules").status == 200


def test_what_nobody_foresaw_is_logged_with_its_trace_and_told_without(
    client: Client, world: World, log: io.StringIO
) -> None:
    world.sql("alter table schedule rename to hidden")
    answer = client.get("/v1/schedules")
    assert (answer.status, answer.document["type"]) == (500, "urn:problem-type:carillon:internal")
    assert "schedule" not in answer.document["detail"]
    failed = next(line for line in map(json.loads, log.getvalue().splitlines()) if line["message"] == "request.failed")
    assert failed["level"] == "ERROR"
    assert failed["request_id"] == answer.headers["X-Request-Id"]
    assert "StatementRefused" in failed["exception"]
