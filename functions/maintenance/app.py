"""Daily and at each deploy: partitions ahead, retention."""

from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws.logins import login_of
from scheduler.http.custom_resource import carry_out
from scheduler.maintenance import maintain
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database

logger = Logger()
_RESERVE_MS = 15_000


@cache
def parts() -> tuple[Settings, Database]:
    settings = Settings.from_environment()
    return settings, Database(login_of(settings))


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """For the timer, or as a custom resource for CloudFormation."""
    settings, database = parts()

    def work() -> dict[str, Any]:
        done = maintain(
            database,
            database_clock,
            retention=timedelta(days=settings.retention_days),
            more_time=lambda: context.get_remaining_time_in_millis() > _RESERVE_MS,
        )
        facts = {"made": done.made, "dropped": done.dropped, "expired": done.expired, "kept": len(done.kept)}
        logger.info("maintenance.done", **facts)
        return facts

    return carry_out(event, work) if "ResponseURL" in event else work()
