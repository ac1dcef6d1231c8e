"""What the functions write for CloudWatch: lines in its embedded metric format, read back."""

import importlib.util
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any

from scheduler.audit import Audit
from scheduler.watch import Watch

from local.project import PROJECT

NOTHING_BEHIND = Watch(
    oldest_due=timedelta(0), planner_lag=timedelta(0), set_aside=0, partition_days_ahead=62, endpoints_open=0
)
TICK = {"runs": 7, "sent": 5, "swept": 1, "refused": 0, "published": 9}


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One metric as CloudWatch keeps it, without its values."""

    namespace: str
    name: str
    dimensions: frozenset[str]
    unit: str


def load(function: str) -> ModuleType:
    """The module `figures` of a function."""
    path = PROJECT / "functions" / function / "figures.py"
    spec = importlib.util.spec_from_file_location(f"figures_of_{function}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attempt(event: str, *, stage: str | None = None, lateness_ms: int = 100) -> tuple[str, dict[str, object]]:
    """What a delivery reports of an attempt."""
    return event, {"tenant_id": "6f1c1f0e", "run_id": "019ad2f3", "stage": stage, "lateness_ms": lateness_ms}


def metrics(lines: Iterable[dict[str, Any]]) -> Iterator[Metric]:
    """The metrics that lines declare."""
    for line in lines:
        for each in line["_aws"]["CloudWatchMetrics"]:
            [dimensions] = each["Dimensions"]
            for metric in each["Metrics"]:
                yield Metric(
                    namespace=each["Namespace"],
                    name=metric["Name"],
                    dimensions=frozenset(dimensions),
                    unit=metric["Unit"],
                )


def all_written() -> set[Metric]:
    """What a tick, a batch with an attempt answered and one not, and an audit write."""
    with redirect_stdout(io.StringIO()) as output:
        load("planner").show(TICK, NOTHING_BEHIND)
        delivery = load("delivery").Figures(lambda event, **facts: None)
        for event, facts in (attempt("run.succeeded"), attempt("run.retrying", stage="dns")):
            delivery(event, **facts)
        delivery.show()
        load("maintenance").show(Audit(looked_at=1_000, missing=0, first=(), complete=True))
    return set(metrics(json.loads(line) for line in output.getvalue().splitlines()))
