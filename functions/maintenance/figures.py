"""The audit's figures as CloudWatch metrics, in the embedded metric format: one line of the log, and no call."""

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit
from scheduler.audit import Audit


def show(done: Audit) -> None:
    """Writes one line: what an audit missed, and how much it looked at before its time was over."""
    metrics = Metrics(namespace="Carillon")
    metrics.add_metric("AuditMissing", MetricUnit.Count, done.missing)
    metrics.add_metric("OccurrencesAudited", MetricUnit.Count, done.looked_at)
    metrics.add_metric("AuditsCutShort", MetricUnit.Count, int(not done.complete))
    metrics.flush_metrics()
