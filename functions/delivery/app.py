"""An SQS batch of run ids: each is delivered, and the messages that must come back are reported."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from figures import Figures
from scheduler.aws import bus, keys, queue
from scheduler.aws.logins import login_of
from scheduler.breaker import BreakerPolicy
from scheduler.delivery import Courier, Message
from scheduler.http.client import Client
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.webhook.addresses import TargetPolicy

logger = Logger()


@cache
def parts() -> tuple[Settings, Database, queue.Queue, keys.Keys, Client, bus.Bus]:
    settings = Settings.from_environment()
    return (
        settings,
        Database(login_of(settings)),
        queue.connect(settings.queue_url),
        keys.connect(settings.signing_key_id),
        Client(TargetPolicy(local_targets=settings.local_targets)),
        bus.connect(settings.event_bus_name),
    )


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Always answers with a list: an empty answer would delete the whole batch, an exception keep it."""
    settings, database, runs, signing_keys, client, events = parts()

    def remaining() -> float:
        return context.get_remaining_time_in_millis() / 1000

    figures = Figures(logger.info)
    courier = Courier(
        database=database,
        queue=runs,
        bus=events,
        keys=signing_keys,
        client=client,
        disable=lambda more_time: _disable(settings, database, more_time),
        deadline_seconds=settings.lease_times.deadline,
        remaining=remaining,
        report=figures,
        tenant_concurrency=settings.tenant_concurrency,
        breaker=BreakerPolicy(failing_for=timedelta(days=settings.endpoint_failing_days)),
    )
    kept = courier.deliver([_message(record) for record in event["Records"]])
    figures.show()
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in kept]}


def _disable(settings: Settings, database: Database, more_time: Callable[[], bool]) -> None:
    # Imported when an outcome orders it, which is seldom: the calendars behind it are half of what is ours at a cold start.
    from scheduler.disabling import carry_out  # noqa: PLC0415
    from scheduler.scheduling import Scheduling  # noqa: PLC0415

    retention = timedelta(days=settings.retention_days)
    carry_out(Scheduling(database=database, clock=database_clock, retention=retention), more_time=more_time)


def _message(record: dict[str, Any]) -> Message:
    return Message(
        message_id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"],
        receives=int(record["attributes"]["ApproximateReceiveCount"]),
    )
