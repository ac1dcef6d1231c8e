"""Daily: partitions ahead, retention, unused calendars, the audit of what was owed. At each deploy: the first two."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from figures import show
from scheduler.audit import audit
from scheduler.aws.logins import login_of
from scheduler.http.custom_resource import carry_out
from scheduler.maintenance import maintain
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.unused_calendars import retire_unused

logger = Logger()
_RESERVE_MS = 15_000


@cache
def parts() -> tuple[Settings, Database]:
    settings = Settings.from_environment()
    return settings, Database(login_of(settings))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """For the timer, or as a custom resource for CloudFormation: a deploy does not wait for the audit."""

    def more_time() -> bool:
        return context.get_remaining_time_in_millis() > _RESERVE_MS

    if "ResponseURL" in event:
        return carry_out(event, lambda: keep_up(more_time))
    return keep_up(more_time) | clear_up(more_time) | look_back(more_time)


def keep_up(more_time: Callable[[], bool]) -> dict[str, Any]:
    settings, database = parts()
    done = maintain(database, database_clock, retention=timedelta(days=settings.retention_days), more_time=more_time)
    facts = {"made": done.made, "dropped": done.dropped, "expired": done.expired, "kept": len(done.kept)}
    logger.info("maintenance.done", **facts)
    return facts


def clear_up(more_time: Callable[[], bool]) -> dict[str, Any]:
    _, database = parts()
    facts = {"retired": retire_unused(database, database_clock, more_time=more_time)}
    logger.info("calendars.retired", **facts)
    return facts


def look_back(more_time: Callable[[], bool]) -> dict[str, Any]:
    _, database = parts()
    done = audit(database, database_clock, more_time=more_time)
    for each in done.first:
        logger.error("audit.missing", schedule_id=str(each.schedule_id), scheduled_for=each.scheduled_for.isoformat())
    facts = {"audited": done.looked_at, "missing": done.missing, "complete": done.complete}
    logger.info("audit.done", **facts)
    show(done)
    return facts
