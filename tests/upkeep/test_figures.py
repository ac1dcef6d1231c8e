"""The figures that alarms and the dashboard stand on, as the functions write them: CloudWatch's embedded metric format."""

import importlib.util
import json
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from scheduler.audit import Audit
from scheduler.watch import Watch

from local.project import PROJECT

_NOTHING_BEHIND = Watch(
    oldest_due=timedelta(0), planner_lag=timedelta(0), set_aside=0, partition_days_ahead=62, endpoints_open=0
)
_TICK = {"runs": 7, "sent": 5, "swept": 1, "refused": 0, "published": 9}


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "carillon-test")


def _load(function: str) -> ModuleType:
    path = PROJECT / "functions" / function / "figures.py"
    spec = importlib.util.spec_from_file_location(f"figures_of_{function}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = capsys.readouterr().out.splitlines()
    return [json.loads(line) for line in lines]


def _dimensions(line: dict[str, Any]) -> set[str]:
    [metrics] = line["_aws"]["CloudWatchMetrics"]
    assert metrics["Namespace"] == "Carillon"
    [names] = metrics["Dimensions"]
    return set(names)


def _attempt(event: str, *, stage: str | None = None, lateness_ms: int = 100) -> tuple[str, dict[str, object]]:
    return event, {"tenant_id": "6f1c1f0e", "run_id": "019ad2f3", "stage": stage, "lateness_ms": lateness_ms}


def test_a_tick_says_what_it_did_and_how_far_behind_the_system_is(capsys: pytest.CaptureFixture[str]) -> None:
    behind = Watch(
        oldest_due=timedelta(seconds=90),
        planner_lag=timedelta(seconds=61),
        set_aside=2,
        partition_days_ahead=13,
        endpoints_open=3,
    )
    _load("planner").show(_TICK, behind)
    [line] = _written(capsys)
    assert _dimensions(line) == {"service"}
    assert line["service"] == "carillon-test"
    assert (line["Ticks"], line["RunsMaterialised"], line["RunsSent"]) == ([1], [7], [5])
    assert (line["OldestDueRun"], line["PlannerLag"]) == ([90], [61])
    assert (line["CalendarsSetAside"], line["PartitionDaysAhead"]) == ([2], [13])
    assert line["EndpointsOpen"] == [3]


def test_a_warm_planner_counts_each_tick_anew(capsys: pytest.CaptureFixture[str]) -> None:
    planner = _load("planner")
    for _ in range(2):
        planner.show(_TICK, _NOTHING_BEHIND)
    assert [line["RunsMaterialised"] for line in _written(capsys)] == [[7], [7]]


def test_a_batch_says_how_late_each_attempt_began(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _load("delivery").Figures(lambda event, **facts: None)
    for late in (120, 340):
        event, facts = _attempt("run.succeeded", lateness_ms=late)
        figures(event, **facts)
    figures.show()
    batch, *_ = _written(capsys)
    assert batch["Lateness"] == [120, 340]
    assert batch["Attempts"] == [2]
    assert _dimensions(batch) == {"service"}


def test_attempts_are_counted_by_outcome_and_stage(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _load("delivery").Figures(lambda event, **facts: None)
    told = [_attempt("run.succeeded"), _attempt("run.retrying", stage="dns"), _attempt("run.retrying", stage="dns")]
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


def test_a_run_that_was_not_tried_is_no_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _load("delivery").Figures(lambda event, **facts: None)
    event, facts = _attempt("run.untried")
    figures(event, **facts)
    figures("run.poisoned", run_id="019ad2f3")
    figures.show()
    [batch] = _written(capsys)
    assert (batch["Attempts"], batch["RunsUntried"], batch["RunsPoisoned"]) == ([0], [1], [1])
    assert "Lateness" not in batch


def test_reports_are_passed_on_and_no_id_becomes_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[tuple[str, dict[str, object]]] = []
    figures = _load("delivery").Figures(lambda event, **facts: heard.append((event, facts)))
    event, facts = _attempt("run.succeeded")
    figures(event, **facts)
    figures.show()
    assert heard == [(event, facts)]
    assert "6f1c1f0e" not in capsys.readouterr().out


def test_an_audit_says_what_is_missing_and_whether_it_came_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    _load("maintenance").show(Audit(looked_at=1_000, missing=2, first=(), complete=False))
    [line] = _written(capsys)
    assert (line["AuditMissing"], line["OccurrencesAudited"], line["AuditsCutShort"]) == ([2], [1_000], [1])
