"""A batch's figures as CloudWatch metrics, in the embedded metric format: lines of the log, and no call.

No id is a dimension: each value of one would be a metric of its own, paid for each month. Ids are in the log's other lines.
"""

from collections import Counter
from collections.abc import Callable

from aws_lambda_powertools import Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

_NAMESPACE = "Carillon"
# The stage of an attempt that got an answer, whatever its status.
_ANSWERED = "answered"


class Figures:
    """Passes on what a delivery reports, and counts it on the way."""

    def __init__(self, log: Callable[..., None]) -> None:
        self._log = log
        self._attempts: Counter[tuple[str, str]] = Counter()
        self._lateness: list[int] = []
        self._events: Counter[str] = Counter()

    def __call__(self, event: str, /, **facts: object) -> None:
        self._log(event, **facts)
        self._events[event] += 1
        lateness = facts.get("lateness_ms")
        if isinstance(lateness, int) and event != "run.untried":
            self._lateness.append(lateness)
            self._attempts[event.removeprefix("run."), str(facts["stage"] or _ANSWERED)] += 1

    def show(self) -> None:
        """Writes a line for the batch, and one for each outcome and stage that its attempts came to."""
        metrics = Metrics(namespace=_NAMESPACE)
        metrics.add_metric("Attempts", MetricUnit.Count, self._attempts.total())
        unanswered = sum(count for (_, stage), count in self._attempts.items() if stage != _ANSWERED)
        metrics.add_metric("AttemptsUnanswered", MetricUnit.Count, unanswered)
        metrics.add_metric("RunsUntried", MetricUnit.Count, self._events["run.untried"])
        metrics.add_metric("RunsPoisoned", MetricUnit.Count, self._events["run.poisoned"])
        for late in self._lateness:
            metrics.add_metric("Lateness", MetricUnit.Milliseconds, late)
        metrics.flush_metrics()
        for (outcome, stage), count in self._attempts.items():
            with single_metric("AttemptsByOutcome", MetricUnit.Count, count, namespace=_NAMESPACE) as metric:
                metric.add_dimension("outcome", outcome)
                metric.add_dimension("stage", stage)
