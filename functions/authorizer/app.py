"""From an API key to its tenant: a policy for the whole stage, or API Gateway's 401."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws.logins import login_of
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.tenants import Key, find_key

logger = Logger()
# Longer than any key; what is longer is not looked up.
_LONGEST = 200


@cache
def parts() -> Database:
    return Database(login_of(Settings.from_environment()))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """A key that is unknown, revoked or expired is a 401; a database that can't be asked is a 500, never an allow."""
    scheme, _, text = event["authorizationToken"].partition(" ")
    known = scheme.lower() == "bearer" and 0 < len(text) <= _LONGEST
    key = find_key(parts(), database_clock, text) if known else None
    if key is None:
        logger.info("key.refused")
        # The one text that API Gateway answers with its 401; any other exception is a 500.
        raise Exception("Unauthorized")
    logger.info("key.accepted", tenant_id=str(key.tenant_id), key_id=str(key.id))
    return _policy(key, event["methodArn"])


def _policy(key: Key, method_arn: str) -> dict[str, Any]:
    # For every route of the stage: the answer is cached by the key alone, and the next request has another path.
    api, stage, *_ = method_arn.split("/")
    statement = {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": f"{api}/{stage}/*"}
    return {
        "principalId": str(key.id),
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": {"tenant_id": str(key.tenant_id), "key_id": str(key.id), "scopes": " ".join(key.scopes)},
    }
