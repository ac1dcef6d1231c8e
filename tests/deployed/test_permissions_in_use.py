"""Each function calls what it is said to need, and all of that: recorded while it is made to do everything that it does.

The endpoint refuses what a role does not allow, and records what it did not refuse. tests/template/test_permissions.py holds
the roles to the same table: an action that a role lacks fails here, and one that it has in vain there.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests
from pg8000.native import Connection

from local import postgres, tenant
from local.children import wait_until
from local.project import PROJECT
from local.receiver import Receiver
from local.stack import Stack
from local.tenant import Tenant
from tests.deployed import recording
from tests.template.needed import LOG_IN, NEEDED

pytestmark = pytest.mark.deployed

_WITHIN_SECONDS = 90
_LETTER = PROJECT / "events" / "dead_letter.json"


def _send(client: Tenant, path: str, **headers: str) -> dict[str, Any]:
    words = {"Authorization": f"Bearer {client.credentials.api_key}", **headers}
    answer = requests.post(f"{client.api_url}/v1/{path}", headers=words, timeout=30)
    assert answer.ok, answer.text
    return dict(answer.json())


def _operators_act(deployed: Stack, tenant_id: str) -> None:
    """Encrypts a new secret, and decrypts the answer that it repeats."""
    event = {"action": "rotate_secret", "tenant_id": tenant_id, "request_id": str(uuid4())}
    assert deployed.invoke("AdminFunctionName", event) == deployed.invoke("AdminFunctionName", event)


def _a_tenant_asks(client: Tenant) -> None:
    """The same over the API."""
    key = str(uuid4())
    first, second = (_send(client, "signing-secrets", **{"Idempotency-Key": key}) for _ in range(2))
    assert first == second


def _runs_wait_for_each_other(client: Tenant, receiver: Receiver) -> None:
    """The API sends two runs; the second waits while the first is open, and the delivery that ends the first sends it."""
    answering = threading.Event()
    receiver.on_received = lambda _: (answering.wait(_WITHIN_SECONDS), None)[1]
    schedule = client.create(name="queued", rate="1 day", url=receiver.url("/queued"), overlap="queue")
    first = _send(client, f"schedules/{schedule['id']}/trigger")
    _wait_for(lambda: bool(receiver.received), "the first run's POST")
    second = _send(client, f"schedules/{schedule['id']}/trigger")
    _wait_for(lambda: client.run(second["id"])["state"] == "planned", "the second run to wait")
    answering.set()
    for run in (first, second):
        _wait_for(lambda run=run: client.run(run["id"])["state"] == "succeeded", f"run {run['id']}")


def _a_receiver_is_away(client: Tenant) -> None:
    """Delivery puts the message off."""
    port = postgres.free_port()
    schedule = client.create(name="away", rate="1 day", url=f"http://127.0.0.1:{port}/")
    run = _send(client, f"schedules/{schedule['id']}/trigger")
    _wait_for(lambda: client.run(run["id"])["failures"] > 0, "an attempt to fail")
    _send(client, f"runs/{run['id']}/cancel")


def _the_planner_catches_up(deployed: Stack, client: Tenant, receiver: Receiver) -> None:
    """What a crash leaves behind: a run whose message never was, and an event that nobody published."""
    soon = datetime.now(UTC) + timedelta(seconds=60)
    schedule = client.create(name="soon", at=f"{soon:%Y-%m-%dT%H:%M:%S}", url=receiver.url("/soon"))

    def published() -> bool:
        with _database(deployed) as database:
            database.run("update job_run set state = 'planned' where schedule_id = :id", id=schedule["id"])
            database.run(
                "insert into outbox (id, type, tenant_id, detail, created_at)"
                " values (:id, 'schedule.run.missed', :tenant_id, '{}', now())",
                id=uuid4(),
                tenant_id=client.credentials.tenant_id,
            )
        deployed.invoke("PlannerFunctionName", {})
        return ("events", "PutEvents") in recording.calls(deployed)["Planner"]

    # A delivery that ends in between publishes it first.
    _wait_for(published, "the planner to publish")


@contextmanager
def _database(deployed: Stack) -> Iterator[Connection]:
    server = deployed.database
    with closing(
        Connection(server.user, host=server.host, port=server.port, password=server.password, database="carillon")
    ) as connection:
        yield connection


def _the_others_run(deployed: Stack) -> None:
    """At the deploy they ran before the endpoint recorded."""
    functions = deployed.endpoint.client("lambda")
    pages = functions.get_paginator("list_functions").paginate()
    names = {each["FunctionName"].split("-")[1]: each["FunctionName"] for page in pages for each in page["Functions"]}
    for function, event in [("Migrate", "{}"), ("Maintenance", "{}"), ("DeadLetter", _LETTER.read_text())]:
        answer = functions.invoke(FunctionName=names[f"{function}Function"], Payload=event)
        assert "FunctionError" not in answer, answer["Payload"].read()


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what, seconds=_WITHIN_SECONDS)


def test_the_functions_call_all_that_they_need_and_nothing_else(deployed: Stack, receiver: Receiver) -> None:
    credentials = tenant.create(deployed, "permissions")
    receiver.secret = credentials.signing_secret
    client = Tenant(api_url=deployed.api_url, credentials=credentials)
    _runs_wait_for_each_other(client, receiver)
    _a_receiver_is_away(client)
    _the_planner_catches_up(deployed, client, receiver)
    _operators_act(deployed, credentials.tenant_id)
    _a_tenant_asks(client)
    _the_others_run(deployed)

    needed = {name: {action for action, _ in LOG_IN | needs} for name, needs in NEEDED.items()}

    def made() -> dict[str, set[str]]:
        calls = recording.calls(deployed)
        return {name: {recording.action(*call) for call in calls[name]} for name in needed}

    with suppress(TimeoutError):
        wait_until(lambda: made() == needed, "all calls that are needed", seconds=20)
    assert made() == needed
