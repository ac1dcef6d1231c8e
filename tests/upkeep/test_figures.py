"""The figures that alarms and the dashboard stand on, as the functions write them: CloudWatch's embedded metric format."""

import json
from datetime import timedelta
from typing import Any

import pytest
from scheduler.audit import Audit
from scheduler.watch import Watch

from tests.emf import NOTHING_BEHIND, TICK, attempt, load


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "carillon-test")


def _written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = capsys.readouterr().out.splitlines()
    return [json.loads(line) for line in lines]


def _dimensions(line: dict[str, Any]) -> set[str]:
    [metrics] = line["_aws"]["CloudWatchMetrics"]
    assert metrics["Namespace"] == "Carillon"
    [names] = metrics["Dimensions"]
    return set(names)


def test_a_tick_says_what_it_did_and_how_far_behind_the_system_is(capsys: pytest.CaptureFixture[str]) -> None:
    behind = Watch(
        oldest_due=timedelta(seconds=90),
        planner_lag=timedelta(seconds=61),
        set_aside=2,
        partition_days_ahead=13,
        endpoints_open=3,
    )
    load("planner").show(TICK, behind)
    [line] = _written(capsys)
    assert _dimensions(line) == {"service"}
    assert line["service"] == "carillon-test"
    assert (line["Ticks"], line["RunsMaterialised"], line["RunsSent"]) == ([1], [7], [5])
    assert (line["OldestDueRun"], line["PlannerLag"]) == ([90], [61])
    assert (line["CalendarsSetAside"], line["PartitionDaysAhead"]) == ([2], [13])
    assert line["EndpointsOpen"] == [3]


def test_a_warm_planner_counts_each_tick_anew(capsys: pytest.CaptureFixture[str]) -> None:
    planner = load("planner")
    for _ in range(2):
        planner.show(TICK, NOTHING_BEHIND)
    assert [line["RunsMaterialised"] for line in _written(capsys)] == [[7], [7]]


def test_a_batch_says_how_late_each_attempt_began(capsys: pytest.CaptureFixture[str]) -> None:
    figures = load("delivery").Figures(lambda event, **facts: None)
    for late in (120, 340):
        event, facts = attempt("run.succeeded", lateness_ms=late)
        figures(event, **facts)
    figures.show()
    batch, *_ = _written(capsys)
    assert batch["Lateness"] == [120, 340]
    assert batch["Attempts"] == [2]
    assert _dimensions(batch) == {"service"}


def test_attempts_are_counted_by_outcome_and_stage(capsys: pytest.CaptureFixture[str]) -> None:
    figures = load("delivery").Figures(lambda event, **facts: None)
    told = [attempt("run.succeeded"), attempt("run.retrying", stage="dns"), attempt("run.retrying", stage="dns")]
    for event, facts in told:
        figures(event, **facts)
    figures.show()
    batch, *outcomes = _written(capsys)
    assert batch["AttemptsUnanswered"] == [2]
    assert {(each["outcome"], each["stage"], *each["AttemptsByOutcome"]) for each in outcomes} == {
        ("succeeded", "answered", 1),
        ("retrying", "dns", 2),
    }
    assert all(_dimensions(each) == {"service", "outcome", "stage"} for each in outcomes)


def test_a_run_that_was_not_tried_is_noattempt(capsys: pytest.CaptureFixture[str]) -> None:
    figures = load("delivery").Figures(lambda event, **facts: None)
    event, facts = attempt("run.untried")
    figures(event, **facts)
    figures("run.poisoned", run_id="019ad2f3")
    figures.show()
    [batch] = _written(capsys)
    assert (batch["Attempts"], batch["RunsUntried"], batch["RunsPoisoned"]) == ([0], [1], [1])
    assert "Lateness" not in batch


def test_reports_are_passed_on_and_no_id_becomes_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[tuple[str, dict[str, object]]] = []
    figures = load("delivery").Figures(lambda event, **facts: heard.append((event, facts)))
    event, facts = attempt("run.succeeded")
    figures(event, **facts)
    figures.show()
    assert heard == [(event, facts)]
    assert "6f1c1f0e" not in capsys.readouterr().out


def test_an_audit_says_what_is_missing_and_whether_it_came_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    load("maintenance").show(Audit(looked_at=1_000, missing=2, first=(), complete=False))
    [line] = _written(capsys)
    assert (line["AuditMissing"], line["OccurrencesAudited"], line["AuditsCutShort"]) == ([2], [1_000], [1])
