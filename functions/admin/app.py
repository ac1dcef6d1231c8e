"""For operators, invoked with IAM alone: `{"action": "create_tenant", "name": "…"}`."""

import os
from functools import cache
from typing import Any
from uuid import uuid4

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws import keys
from scheduler.aws.logins import login_of
from scheduler.errors import InvalidInput
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.tenants import create_tenant

logger = Logger()


@cache
def parts() -> tuple[Database, keys.Keys]:
    settings = Settings.from_environment()
    return Database(login_of(settings)), keys.connect(settings.signing_key_id)


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The answer holds the key and the secret, this once; bad input is answered with `errors`, and nothing is stored."""
    if event.get("action") != "create_tenant":
        return {"errors": [{"pointer": "/action", "detail": "must be create_tenant"}]}
    database, signing_keys = parts()
    try:
        made = create_tenant(
            database, database_clock, signing_keys, event.get("name"), new_id=uuid4, entropy=os.urandom
        )
    except InvalidInput as error:
        return {"errors": [{"pointer": problem.pointer, "detail": problem.detail} for problem in error.problems]}
    logger.info("tenant.created", tenant_id=str(made.tenant_id))
    return {"tenant_id": str(made.tenant_id), "api_key": made.api_key, "signing_secret": made.signing_secret}
