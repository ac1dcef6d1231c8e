"""Alarms and the dashboard stand on figures that exist, tell someone, and have a runbook each."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from benchmarks import cost
from benchmarks.handlers import Invocation, Measured
from local.project import PROJECT
from tests.emf import Metric, all_written
from tests.template.reading import Resolved

# Under what each service publishes the figures that alarms look at.
_DIMENSION = {
    "AWS/SQS": "QueueName",
    "AWS/Lambda": "FunctionName",
    "AWS/ApiGateway": "ApiName",
    "AWS/RDS": "DBInstanceIdentifier",
}
_OPERATIONS = PROJECT / "docs" / "operations.md"


@pytest.fixture(scope="module")
def alarms(fresh: Resolved) -> dict[str, dict[str, Any]]:
    return fresh.of_type("AWS::CloudWatch::Alarm")


@pytest.fixture(scope="module")
def written() -> set[Metric]:
    """What the functions write, each of them having worked once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_SERVICE_NAME", "carillon")
        return all_written()


@pytest.fixture(scope="module")
def board(fresh: Resolved) -> list[dict[str, Any]]:
    [dashboard] = fresh.of_type("AWS::CloudWatch::Dashboard").values()
    widgets: list[dict[str, Any]] = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    return widgets


def _looked_at(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Namespace, name and dimensions of what an alarm looks at."""
    if "MetricName" in alarm:
        return [alarm]
    return [each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each]


def _figures(alarm: dict[str, Any]) -> set[tuple[str, str]]:
    return {(each["Namespace"], each["MetricName"]) for each in _looked_at(alarm)}


def _named(metrics: set[Metric], *dimensions: str) -> set[str]:
    return {each.name for each in metrics if each.dimensions == set(dimensions)}


def test_every_alarm_tells_the_topic_when_it_begins_and_when_it_ends(alarms: dict[str, dict[str, Any]]) -> None:
    for alarm in alarms.values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}]


def test_alarms_on_our_own_figures_look_at_what_is_written_under_the_same_dimensions(
    alarms: dict[str, dict[str, Any]], written: set[Metric], fresh: Resolved
) -> None:
    """CloudWatch takes a figure with other dimensions, or another case, for another metric: such an alarm hears nothing."""
    ours = [each for alarm in alarms.values() for each in _looked_at(alarm) if each["Namespace"] == "Carillon"]
    assert ours
    [service] = {json.dumps(each) for each in _service_names(fresh)}
    for each in ours:
        names = {dimension["Name"] for dimension in each["Dimensions"]}
        assert (each["MetricName"], names) in [(metric.name, metric.dimensions) for metric in written]
        assert [json.dumps(dimension["Value"]) for dimension in each["Dimensions"]] == [service]
    assert {metric.namespace for metric in written} == {"Carillon"}


def _service_names(stack: Resolved) -> list[Any]:
    """What powertools calls the service, which is the metrics' common dimension."""
    functions = stack.of_type("AWS::Lambda::Function").values()
    return [each["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] for each in functions]


def test_no_alarm_names_a_unit_and_its_threshold_is_in_the_one_that_is_written(
    alarms: dict[str, dict[str, Any]], written: set[Metric]
) -> None:
    units = {each.name: each.unit for each in written}
    assert not any("Unit" in alarm for alarm in alarms.values())
    assert (units["Lateness"], alarms["LatenessAlarm"]["Threshold"]) == ("Milliseconds", 60_000)
    assert (units["OldestDueRun"], alarms["OldestDueRunAlarm"]["Threshold"]) == ("Seconds", 300)
    assert (units["PlannerLag"], alarms["PlannerLagAlarm"]["Threshold"]) == ("Seconds", 180)


def test_alarms_on_figures_of_aws_name_what_they_belong_to(alarms: dict[str, dict[str, Any]], fresh: Resolved) -> None:
    """The dimensions are those that each service publishes under; the values are resources of this stack."""
    for alarm in alarms.values():
        for each in _looked_at(alarm):
            if each["Namespace"] == "Carillon":
                continue
            [dimension] = each["Dimensions"]
            assert dimension["Name"] == _DIMENSION[each["Namespace"]]
            value = dimension["Value"]
            named = value.get("Ref") or value["Fn::GetAtt"][0]
            assert named == "AWS::StackName" or named in fresh.resources


def test_what_must_not_stop_has_its_alarm(alarms: dict[str, dict[str, Any]]) -> None:
    looked_at = {figure for alarm in alarms.values() for figure in _figures(alarm)}
    assert {
        ("Carillon", "Ticks"),
        ("Carillon", "PlannerLag"),
        ("Carillon", "OldestDueRun"),
        ("Carillon", "Lateness"),
        ("Carillon", "CalendarsSetAside"),
        ("Carillon", "PartitionDaysAhead"),
        ("Carillon", "AuditMissing"),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
        ("AWS/Lambda", "Errors"),
        ("AWS/Lambda", "Throttles"),
        ("AWS/ApiGateway", "5XXError"),
        ("AWS/RDS", "DatabaseConnections"),
    } <= looked_at


def test_a_planner_that_says_nothing_for_three_minutes_is_an_alarm(alarms: dict[str, dict[str, Any]]) -> None:
    alarm = alarms["PlannerStoppedAlarm"]
    assert alarm["TreatMissingData"] == "breaching"
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 180


def test_partitions_are_missed_two_weeks_before_they_are_needed(alarms: dict[str, dict[str, Any]]) -> None:
    alarm = alarms["PartitionsAlarm"]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 14)


def test_the_connections_alarm_comes_before_the_budget_is_spent(
    alarms: dict[str, dict[str, Any]], template: dict[str, Any]
) -> None:
    budget = template["Mappings"]["Connections"]["Budget"]
    assert alarms["ConnectionsAlarm"]["Threshold"] == budget["Alarm"] < budget["Sum"]


def test_errors_of_every_function_count(alarms: dict[str, dict[str, Any]], fresh: Resolved) -> None:
    metrics = [each for each in alarms["FunctionErrorsAlarm"]["Metrics"] if "MetricStat" in each]
    counted = {each["MetricStat"]["Metric"]["Dimensions"][0]["Value"]["Ref"] for each in metrics}
    assert counted == set(fresh.of_type("AWS::Lambda::Function"))


def test_no_id_is_a_dimension(
    alarms: dict[str, dict[str, Any]], board: list[dict[str, Any]], written: set[Metric]
) -> None:
    assert {name for metric in written for name in metric.dimensions} == {"service", "outcome", "stage"}
    assert "tenant" not in json.dumps([alarms, board])


def test_the_dashboard_shows_figures_that_are_written_side_by_side(
    board: list[dict[str, Any]], written: set[Metric]
) -> None:
    ours = {
        metric[1]
        for widget in board
        for metric in widget["properties"]["metrics"]
        if isinstance(metric[0], str) and metric[0] == "Carillon"
    }
    assert ours <= _named(written, "service")
    squares = [
        (x, y)
        for widget in board
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(squares) == len(set(squares))
    assert max(x for x, _ in squares) < 24


def test_every_alarm_has_a_runbook_and_every_runbook_an_alarm(alarms: dict[str, dict[str, Any]]) -> None:
    headings = set(re.findall(r"^### (\w+Alarm)$", _OPERATIONS.read_text(), re.MULTILINE))
    assert headings == set(alarms)


def test_alarms_of_this_account_may_publish_and_nobody_in_plain_text(fresh: Resolved) -> None:
    [policy] = fresh.of_type("AWS::SNS::TopicPolicy").values()
    allow, deny = policy["PolicyDocument"]["Statement"]
    assert allow["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allow["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_costs_count_every_alarm(alarms: dict[str, dict[str, Any]]) -> None:
    assert len(alarms) == cost.ALARMS


def test_runs_cost_less_in_full_batches_and_more_where_receivers_or_cores_are_slow() -> None:
    invocation = Invocation(cpu_ms=7, log_bytes=1_250, database=19, calls=1, events=1)
    tenfold = replace(invocation, cpu_ms=14, log_bytes=6_200, events=10)

    def total(delivery: Invocation = invocation, *, core: float = 1, **load: int) -> Decimal:
        done = Measured(delivery=delivery, tick=invocation)
        there = cost.There(core=core)
        return sum(cost.per_million_runs(cost.Load(**load), done, there).values(), Decimal(0))

    one = total(answer_ms=200, batch=1)
    assert total(tenfold, answer_ms=200, batch=10) < one < total(answer_ms=2_000, batch=1)
    assert one < total(answer_ms=200, batch=1, core=0.5)


def test_an_invocation_is_billed_for_its_share_of_a_core_and_for_its_waits() -> None:
    invocation = Invocation(cpu_ms=10, log_bytes=0, database=4, calls=2, events=0)
    there = cost.There(core=2, database_ms=3, call_ms=5)
    assert round(there.billed_ms(invocation), 2) == round(Decimal(5 * 1769 / 512 + 12 + 10), 2)
