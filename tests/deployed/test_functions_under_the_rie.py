"""Every function from its `sam build` output, with its event, under AWS's own runtime interface emulator."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from local import tenant
from local.project import PROJECT
from local.stack import Stack
from tests.deployed import rie

pytestmark = pytest.mark.deployed

type Invoke = Callable[..., Any]


def _event(name: str, **changes: Any) -> dict[str, Any]:
    return {**json.loads((PROJECT / "events" / f"{name}.json").read_text()), **changes}


@pytest.fixture(scope="module")
def invoke(deployed: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Invoke]:
    """Invokes a built function in a sandbox with the variables that the deployed one has."""
    folder = tmp_path_factory.mktemp("rie")
    client = rie.client_packages(folder / "client")
    with ExitStack() as stops:

        def once(function: str, event: dict[str, Any]) -> Any:
            environment = {**_variables(deployed, function), **deployed.endpoint.client_environment()}
            sandbox = rie.start(function, environment=environment, client=client, log=folder / f"{function}.log")
            stops.callback(sandbox.child.stop)
            return sandbox.invoke(event)

        yield once


def _variables(deployed: Stack, function: str) -> dict[str, str]:
    lambdas = deployed.endpoint.client("lambda")
    found = [each for page in lambdas.get_paginator("list_functions").paginate() for each in page["Functions"]]
    config = next(each for each in found if each["FunctionName"].startswith(f"carillon-{function}-"))
    return dict(config["Environment"]["Variables"])


@pytest.fixture(scope="module")
def credentials(deployed: Stack) -> tenant.Credentials:
    return tenant.create(deployed, "rie")


def test_admin_creates_a_tenant(invoke: Invoke) -> None:
    made = invoke("AdminFunction", _event("admin"))
    assert made["signing_secret"].startswith("whsec_")
    assert made["api_key"]


def test_authorizer_admits_a_key(invoke: Invoke, credentials: tenant.Credentials) -> None:
    event = _event("authorizer", authorizationToken=f"Bearer {credentials.api_key}")
    answer = invoke("AuthorizerFunction", event)
    statement = answer["policyDocument"]["Statement"][0]
    assert statement["Effect"] == "Allow"
    assert answer["context"]["tenant_id"] == credentials.tenant_id


def test_api_lists_a_tenants_schedules(invoke: Invoke, credentials: tenant.Credentials) -> None:
    event = _event("api")
    event["requestContext"]["authorizer"].update(tenant_id=credentials.tenant_id, principalId=credentials.tenant_id)
    answer = invoke("ApiFunction", event)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["schedules"] == []


def test_planner_ticks(invoke: Invoke) -> None:
    invoke("PlannerFunction", _event("planner"))


def test_delivery_acknowledges_a_run_that_is_gone(invoke: Invoke) -> None:
    assert invoke("DeliveryFunction", _event("delivery")) == {"batchItemFailures": []}


def test_dead_letter_acknowledges_a_run_that_is_gone(invoke: Invoke) -> None:
    assert invoke("DeadLetterFunction", _event("dead_letter")) == {"batchItemFailures": []}


def test_maintenance_keeps_partitions_ahead(invoke: Invoke) -> None:
    invoke("MaintenanceFunction", _event("maintenance"))


def test_migrate_answers_cloudformation(invoke: Invoke) -> None:
    with _CloudFormation() as cloudformation:
        invoke("MigrateFunction", _event("migrate", ResponseURL=cloudformation.url))
    answer = cloudformation.answers[0]
    assert answer["Status"] == "SUCCESS", answer
    assert answer["LogicalResourceId"] == "Migrations"
    assert answer["PhysicalResourceId"]


class _CloudFormation:
    """Takes what a custom resource PUTs to its ResponseURL."""

    def __init__(self) -> None:
        answers: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                answers.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing to say."""

        self.answers = answers
        self._server = HTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/response"

    def __enter__(self) -> "_CloudFormation":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
