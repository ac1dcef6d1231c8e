"""For operators, invoked with IAM alone.

`{"action": "create_tenant", "name": "…"}`
`{"action": "rotate_secret", "tenant_id": "…", "overlap_seconds": 86400}`
"""

import os
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws import keys
from scheduler.aws.logins import login_of
from scheduler.errors import InvalidInput, NotFound
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.tenants import DEFAULT_OVERLAP, MAX_OVERLAP, create_tenant, rotate_secret

logger = Logger()
_MOST_SECONDS = int(MAX_OVERLAP.total_seconds())


@cache
def parts() -> tuple[Database, keys.Keys]:
    settings = Settings.from_environment()
    return Database(login_of(settings)), keys.connect(settings.signing_key_id)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The answer holds the key and the secret, this once; bad input is answered with `errors`, and nothing is stored."""
    try:
        match event.get("action"):
            case "create_tenant":
                return _create(event)
            case "rotate_secret":
                return _rotate(event)
            case _:
                return _refused("/action", "must be create_tenant or rotate_secret")
    except InvalidInput as error:
        return {"errors": [{"pointer": problem.pointer, "detail": problem.detail} for problem in error.problems]}
    except NotFound as error:
        return _refused("/tenant_id", str(error))


def _create(event: dict[str, Any]) -> dict[str, Any]:
    database, signing_keys = parts()
    made = create_tenant(database, database_clock, signing_keys, event.get("name"), new_id=uuid4, entropy=os.urandom)
    logger.info("tenant.created", tenant_id=str(made.tenant_id))
    return {"tenant_id": str(made.tenant_id), "api_key": made.api_key, "signing_secret": made.signing_secret}


def _rotate(event: dict[str, Any]) -> dict[str, Any]:
    database, signing_keys = parts()
    seconds = event.get("overlap_seconds", int(DEFAULT_OVERLAP.total_seconds()))
    if type(seconds) is not int or abs(seconds) > _MOST_SECONDS:
        return _refused("/overlap_seconds", f"must be a whole number from 0 to {_MOST_SECONDS}")
    try:
        tenant_id = UUID(str(event.get("tenant_id")))
    except ValueError:
        return _refused("/tenant_id", "must be a tenant's id")
    secret = rotate_secret(
        database,
        database_clock,
        signing_keys,
        tenant_id,
        overlap=timedelta(seconds=seconds),
        new_id=uuid4,
        entropy=os.urandom,
    )
    logger.info("secret.rotated", tenant_id=str(tenant_id))
    return {"tenant_id": str(tenant_id), "signing_secret": secret}


def _refused(pointer: str, detail: str) -> dict[str, Any]:
    return {"errors": [{"pointer": pointer, "detail": detail}]}
