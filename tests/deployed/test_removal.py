"""A deleted stack leaves nothing behind but what the template retains on purpose."""

import tempfile
from pathlib import Path

import pytest

from local import release, stack
from local.smoke import LEASE

pytestmark = pytest.mark.deployed


def _left(running: stack.Stack) -> dict[str, list[str]]:
    """What of the kinds that a stack makes is on the endpoint, but for what the endpoint has by itself."""
    client = running.endpoint.client
    buses = [each["Name"] for each in client("events").list_event_buses()["EventBuses"]]
    found = {
        "functions": [each["FunctionName"] for each in client("lambda").list_functions()["Functions"]],
        "mappings": [each["UUID"] for each in client("lambda").list_event_source_mappings()["EventSourceMappings"]],
        "queues": client("sqs").list_queues().get("QueueUrls", []),
        "topics": [each["TopicArn"] for each in client("sns").list_topics()["Topics"]],
        "schedules": [each["Name"] for each in client("scheduler").list_schedules()["Schedules"]],
        "buses": [name for name in buses if name != "default"],
        "alarms": [each["AlarmName"] for each in client("cloudwatch").describe_alarms()["MetricAlarms"]],
        "dashboards": [each["DashboardName"] for each in client("cloudwatch").list_dashboards()["DashboardEntries"]],
        "logs": [each["logGroupName"] for each in client("logs").describe_log_groups()["logGroups"]],
        "apis": [each["id"] for each in client("apigateway").get_rest_apis()["items"]],
        "roles": [each["RoleName"] for each in client("iam").list_roles()["Roles"]],
    }
    return {kind: names for kind, names in found.items() if names}


def test_a_deleted_stack_leaves_its_key_and_the_accounts_log_role() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="carillon-removed-") as folder,
        stack.running(Path(folder), say=print, parameters=LEASE) as running,
    ):
        cloudformation = running.endpoint.client("cloudformation")
        assert {"functions", "mappings", "queues", "topics", "schedules", "buses", "alarms", "apis"} <= set(
            _left(running)
        )
        cloudformation.delete_stack(StackName=release.STACK)
        cloudformation.get_waiter("stack_delete_complete").wait(
            StackName=release.STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )
        left = _left(running)
        assert [name.split("-")[1] for name in left.pop("roles")] == ["ApiLogRole"]
        assert left == {}
        assert len(running.endpoint.client("kms").list_keys()["Keys"]) == 1
