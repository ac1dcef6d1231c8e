"""The tenants' API: one REST event in, one answer out. contracts/openapi/scheduler.yaml says what each means."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext
from parts import connect
from resolver import Api
from scheduler.settings import Settings
from scheduler.store.clock import database_clock

logger = Logger()


@cache
def api() -> Api:
    return Api(connect(Settings.from_environment(), database_clock, logger))


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return api().respond(event, context)
