"""For operators, invoked with IAM alone: `{"action": "create_tenant", "name": "…"}`; docs/operators.md has all actions."""

from datetime import timedelta
from functools import cache
from typing import Any

import asked
from actions import ACTIONS, Actions
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from scheduler.aws import keys
from scheduler.aws.logins import login_of
from scheduler.errors import Conflict, InvalidInput, KeyReused, LimitExceeded, NotFound
from scheduler.scheduling import Scheduling
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database

logger = Logger()
# What is kept of the function's time for the answer.
_RESERVE_MS = 5_000


@cache
def parts() -> tuple[Database, keys.Keys, timedelta]:
    settings = Settings.from_environment()
    signing_keys = keys.connect(settings.signing_key_id)
    return Database(login_of(settings)), signing_keys, timedelta(days=settings.retention_days)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """What came of the action; keys and secrets are shown this once. What can't be done has `errors`, and did nothing."""
    action = event.get("action")
    if action not in ACTIONS:
        return _refused("/action", f"must be one of {', '.join(ACTIONS)}")
    database, signing_keys, retention = parts()
    actions = Actions(
        database=database,
        clock=database_clock,
        keys=signing_keys,
        scheduling=Scheduling(database=database, clock=database_clock, retention=retention),
        more_time=lambda: context.get_remaining_time_in_millis() > _RESERVE_MS,
    )
    try:
        asked.only(event, ACTIONS[action])
        answer: dict[str, Any] = getattr(actions, action)(event)
    except InvalidInput as error:
        return {"errors": [{"pointer": problem.pointer, "detail": problem.detail} for problem in error.problems]}
    except (NotFound, Conflict, LimitExceeded) as error:
        return _refused("/tenant_id", str(error))
    except KeyReused as error:
        return _refused("/request_id", str(error))
    logger.info("admin.done", action=action, tenant_id=answer["tenant_id"])
    return answer


def _refused(pointer: str, detail: str) -> dict[str, Any]:
    return {"errors": [{"pointer": pointer, "detail": detail}]}
