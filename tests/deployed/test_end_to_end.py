"""The main job on the deployed stack: over HTTP in, through PostgreSQL and SQS, and out to a real receiver."""

from typing import Any

import pytest
import requests

from local import smoke, tenant
from local.receiver import Receiver
from local.stack import Stack
from local.tenant import Tenant

pytestmark = pytest.mark.deployed


@pytest.fixture(scope="module")
def client(deployed: Stack) -> Tenant:
    return Tenant(api_url=deployed.api_url, credentials=tenant.create(deployed, "one tenant"))


def _send(client: Tenant, method: str, path: str, body: Any = None) -> requests.Response:
    headers = {"Authorization": f"Bearer {client.credentials.api_key}"}
    return requests.request(method, client.api_url + path, json=body, headers=headers, timeout=30)


def test_each_occurrence_arrives_signed_and_on_time_and_again_with_the_same_key_when_its_worker_is_killed(
    deployed: Stack, receiver: Receiver
) -> None:
    verdict = smoke.observe(deployed, receiver, print)
    assert verdict.problems == []
    assert verdict.held, verdict.line


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/schedules", 401), ("GET", "/v1/other", 404), ("PUT", "/v1/schedules", 404)],
)
def test_what_the_gateway_refuses_is_a_problem_with_the_requests_id(
    deployed: Stack, client: Tenant, method: str, path: str, status: int
) -> None:
    keys = [client.credentials.api_key] if status == 404 else ["no-such-key", ""]
    for headers in ({"Authorization": f"Bearer {key}"} if key else {} for key in keys):
        answer = requests.request(method, deployed.api_url + path, headers=headers, timeout=30)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        problem = answer.json()
        assert (problem["type"], problem["status"]) == ("about:blank", status)
        assert problem["request_id"] == answer.headers["X-Request-Id"]


def test_bad_input_is_a_problem_that_names_the_field_and_stores_nothing(client: Tenant) -> None:
    before = client.schedules()
    answer = _send(
        client, "POST", "/v1/schedules", {"name": "bad", "cron": "61 * * * *", "url": "https://example.com/"}
    )
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert "/cron" in answer.text
    assert client.schedules() == before


def test_a_schedule_is_edited_paused_resumed_and_deleted(client: Tenant) -> None:
    made = client.create(name="nightly", cron="0 3 * * *", timezone="Europe/Berlin", url="https://example.com/hook")
    path = f"/v1/schedules/{made['id']}"
    assert client.edit(made["id"], cron="30 3 * * *")["cron"] == "30 3 * * *"
    assert _send(client, "POST", f"{path}/pause").json()["status"] == "paused"
    assert _send(client, "POST", f"{path}/resume").json()["status"] == "active"
    assert _send(client, "DELETE", path).ok
    assert _send(client, "GET", path).status_code == 404


def test_a_tenant_sees_nothing_of_another(deployed: Stack, client: Tenant) -> None:
    made = client.create(name="mine", rate="1 hour", url="https://example.com/hook")
    other = Tenant(api_url=deployed.api_url, credentials=tenant.create(deployed, "another tenant"))
    assert other.schedules() == []
    for method, path in [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/pause"), ("GET", "/runs")]:
        assert _send(other, method, f"/v1/schedules/{made['id']}{path}", {}).status_code == 404
    assert client.schedules() != []


def test_the_planner_is_invoked_by_its_timer(deployed: Stack) -> None:
    schedules = deployed.endpoint.client("scheduler")
    tick = next(each for each in schedules.list_schedules()["Schedules"] if "PlannerFunctionTick" in each["Name"])
    found = schedules.get_schedule(Name=tick["Name"])
    assert found["State"] == "ENABLED"
    assert found["ScheduleExpression"] == "rate(1 minute)"
    assert deployed.outputs["PlannerFunctionName"] in found["Target"]["Arn"]
