"""What template.yaml and samconfig.toml promise that neither cfn-lint nor SAM checks."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scheduler.lease_times import DATABASE_SECONDS, LeaseTimes
from scheduler.settings import Settings

from tests.template.reading import Resolved, environments

_PROJECT = Path(__file__).parents[2]
_FUNCTIONS = ("admin", "api", "authorizer", "dead_letter", "delivery", "maintenance", "migrate", "planner")
_LEASE_TIMES = {
    "LEASE_SECONDS": "LeaseSeconds",
    "DELIVERY_TIMEOUT_SECONDS": "DeliveryTimeoutSeconds",
    "HTTP_DEADLINE_SECONDS": "HttpDeadlineSeconds",
}
# What the template sets besides what Settings reads, and who reads it.
_NOT_SETTINGS = {"PYTHONTZPATH": "zoneinfo", "POWERTOOLS_SERVICE_NAME": "powertools"}


def _default(template: dict[str, Any], name: str) -> Any:
    return template["Parameters"][name]["Default"]


def test_every_function_of_the_design_is_there_with_its_code_and_its_event(functions: dict[str, Any]) -> None:
    assert sorted(functions) == list(_FUNCTIONS)
    for name in _FUNCTIONS:
        assert (_PROJECT / "functions" / name / "app.py").exists()
        assert json.loads((_PROJECT / "events" / f"{name}.json").read_text())


def test_functions_set_every_variable_that_settings_reads_and_no_other(template: dict[str, Any]) -> None:
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    read = {field.name.upper() for field in dataclasses.fields(Settings)} - {"LEASE_TIMES"}
    assert set(variables) == read | set(_LEASE_TIMES) | set(_NOT_SETTINGS)


def test_no_time_zone_file_of_the_image_is_read(template: dict[str, Any]) -> None:
    assert template["Globals"]["Function"]["Environment"]["Variables"]["PYTHONTZPATH"] == ""


def test_the_lease_outlives_the_function_and_the_function_outlives_its_posts(template: dict[str, Any]) -> None:
    lease, timeout, deadline = (_default(template, name) for name in _LEASE_TIMES.values())
    assert lease > timeout > deadline + DATABASE_SECONDS
    LeaseTimes(lease=lease, function_timeout=timeout, deadline=deadline)


def test_the_lease_timeout_and_deadline_are_those_parameters(
    template: dict[str, Any], functions: dict[str, Any]
) -> None:
    assert template["Resources"]["RunQueue"]["Properties"]["VisibilityTimeout"] == {"Ref": "LeaseSeconds"}
    assert functions["delivery"]["Properties"]["Timeout"] == {"Ref": "DeliveryTimeoutSeconds"}
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert {name: variables[name] for name in _LEASE_TIMES} == {
        name: {"Ref": parameter} for name, parameter in _LEASE_TIMES.items()
    }


def test_delivery_reports_the_items_that_failed_and_is_bounded_by_its_mapping(functions: dict[str, Any]) -> None:
    mapping = functions["delivery"]["Properties"]["Events"]["Runs"]["Properties"]
    assert mapping["Queue"] == {"Fn::GetAtt": ["RunQueue", "Arn"]}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BatchSize"] == 10
    assert mapping["ScalingConfig"]["MaximumConcurrency"] == {"Fn::FindInMap": ["Connections", "Of", "Delivery"]}


def test_what_five_receives_do_not_settle_goes_to_a_queue_that_keeps_it_longer(template: dict[str, Any]) -> None:
    queue = template["Resources"]["RunQueue"]["Properties"]
    letters = template["Resources"]["DeadLetterQueue"]["Properties"]
    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
        "maxReceiveCount": 5,
    }
    assert letters["MessageRetentionPeriod"] > queue["MessageRetentionPeriod"]


def test_the_dead_letter_function_reads_that_queue(template: dict[str, Any], functions: dict[str, Any]) -> None:
    mapping = functions["dead_letter"]["Properties"]["Events"]["Letters"]["Properties"]
    assert mapping["Queue"] == {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert template["Resources"]["DeadLetterQueue"]["Properties"]["VisibilityTimeout"] > 30


def test_the_planner_ticks_each_minute_and_a_lost_tick_is_not_repeated(functions: dict[str, Any]) -> None:
    planner = functions["planner"]["Properties"]
    tick = planner["Events"]["Tick"]["Properties"]
    assert tick["ScheduleExpression"] == "rate(1 minute)"
    assert tick["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    invoked = planner["EventInvokeConfig"]
    assert (invoked["MaximumRetryAttempts"], invoked["MaximumEventAgeInSeconds"]) == (0, 60)
    assert planner["Timeout"] < 60


def test_every_route_invokes_the_api_function(template: dict[str, Any]) -> None:
    paths = template["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"]
    for methods in paths.values():
        for method in methods.values():
            integration = method["x-amazon-apigateway-integration"]
            assert (integration["type"], integration["httpMethod"]) == ("aws_proxy", "POST")
            assert "functions/${ApiFunction.Arn}/invocations" in integration["uri"]["Fn::Sub"]
    # Which they are is told by the contract, and held equal by its test.
    assert all(path.startswith("/v1/") and "+" not in path for path in paths)


def test_no_route_is_open(template: dict[str, Any], fresh: Resolved) -> None:
    auth = template["Resources"]["Api"]["Properties"]["Auth"]
    assert auth["DefaultAuthorizer"] in auth["Authorizers"]
    [api] = fresh.of_type("AWS::ApiGateway::RestApi").values()
    for methods in api["Body"]["paths"].values():
        assert all(method["security"] == [{"TenantAuthorizer": []}] for method in methods.values())


def test_the_admin_function_has_no_event(functions: dict[str, Any]) -> None:
    assert "Events" not in functions["admin"]["Properties"]


@pytest.mark.parametrize("name", sorted(set(_FUNCTIONS) - {"migrate", "maintenance"}))
def test_new_code_waits_for_its_schema(functions: dict[str, Any], name: str) -> None:
    assert functions[name]["DependsOn"] == "Partitions"


def test_schema_and_partitions_are_brought_up_to_date_whenever_their_code_or_the_release_changes(
    template: dict[str, Any],
) -> None:
    migrations, partitions = (template["Resources"][name] for name in ("Migrations", "Partitions"))
    assert partitions["DependsOn"] == "Migrations"
    for resource in (migrations, partitions):
        assert resource["Properties"]["Release"] == {"Ref": "Release"}
        assert resource["Properties"]["Code"] == {"Ref": "SchedulerLayer"}


def test_nothing_is_relaxed_unless_a_deployment_asks_for_it(template: dict[str, Any]) -> None:
    assert _default(template, "LocalTargets") == "off"
    assert _default(template, "DatabaseTls") == "verify"


def test_only_the_local_environment_asks_for_it() -> None:
    asked = environments()
    assert asked.pop("local") == {
        "Network": "none",
        "Database": "existing",
        "Alarms": "plain",
        "LocalTargets": "on",
        "DatabaseTls": "off",
    }
    for parameters in asked.values():
        assert not set(parameters) & {"Network", "Database", "Alarms", "LocalTargets", "DatabaseTls"}


def test_all_functions_run_on_the_python_that_the_tests_run_on(template: dict[str, Any]) -> None:
    common = template["Globals"]["Function"]
    assert common["Runtime"] == "python3.13"
    assert common["Architectures"] == ["x86_64"]
    assert common["Layers"] == [{"Ref": "DependenciesLayer"}, {"Ref": "SchedulerLayer"}]
    assert template["Resources"]["SchedulerLayer"]["Metadata"]["BuildMethod"] == common["Runtime"]
    assert "--python-version 3.13" in (_PROJECT / "layers/dependencies/Makefile").read_text()


def test_the_layer_keeps_the_description_of_every_service_that_the_code_calls() -> None:
    kept = re.search(r"^SERVICES := (.+)$", (_PROJECT / "layers/dependencies/Makefile").read_text(), re.MULTILINE)
    sources = "".join(path.read_text() for path in (_PROJECT / "shared/scheduler/aws").glob("*.py"))
    called = set(re.findall(r"client\(\s*\"([a-z]+)\"", sources))
    assert kept
    assert {"sqs", "kms", "events", "secretsmanager"} <= called <= set(kept[1].split())


def test_every_parameter_stands_in_one_group_and_says_what_it_is(template: dict[str, Any]) -> None:
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    assert sorted(grouped) == sorted(template["Parameters"])
    assert all(each.get("Description") for each in template["Parameters"].values())
