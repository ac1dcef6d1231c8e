"""The dead-letter queue: unfinished runs go back to planned, and their messages are done with."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws.logins import login_of
from scheduler.dead_letters import put_all_back
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database

logger = Logger()


@cache
def parts() -> Database:
    return Database(login_of(Settings.from_environment()))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[Any]]:
    """Raises where the database is away: then every message stays."""
    put_all_back(parts(), database_clock, [record["body"] for record in event["Records"]], logger.info)
    return {"batchItemFailures": []}
