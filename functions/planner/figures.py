"""A tick's figures as CloudWatch metrics, in the embedded metric format: one line of the log, and no call."""

from collections.abc import Mapping

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit
from scheduler.watch import Watch

# What a tick tells of itself -> the metric's name.
_COUNTS = {
    "runs": "RunsMaterialised",
    "sent": "RunsSent",
    "swept": "RunsSwept",
    "refused": "SendsRefused",
    "published": "EventsPublished",
}


def show(facts: Mapping[str, int], seen: Watch) -> None:
    """Writes one line: what the tick did, and how far behind the system was after it. A tick that failed writes none."""
    metrics = Metrics(namespace="Carillon")
    metrics.add_metric("Ticks", MetricUnit.Count, 1)
    for fact, name in _COUNTS.items():
        metrics.add_metric(name, MetricUnit.Count, facts[fact])
    metrics.add_metric("CalendarsSetAside", MetricUnit.Count, seen.set_aside)
    metrics.add_metric("EndpointsOpen", MetricUnit.Count, seen.endpoints_open)
    metrics.add_metric("PartitionDaysAhead", MetricUnit.Count, seen.partition_days_ahead)
    metrics.add_metric("OldestDueRun", MetricUnit.Seconds, seen.oldest_due.total_seconds())
    metrics.add_metric("PlannerLag", MetricUnit.Seconds, seen.planner_lag.total_seconds())
    metrics.flush_metrics()
