"""At each deploy, as a custom resource: brings the schema up to date. A failure fails the deploy."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws.logins import login_of
from scheduler.http.custom_resource import carry_out
from scheduler.settings import Settings
from scheduler.store.migrations import upgrade

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """For CloudFormation, or by hand with any other event."""

    def work() -> dict[str, Any]:
        upgrade(login_of(Settings.from_environment())())
        logger.info("schema.current")
        return {}

    return carry_out(event, work) if "ResponseURL" in event else work()
