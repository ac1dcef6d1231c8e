"""What the routes work with, and what they are asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import conditions
import queries
from aws_lambda_powertools import Logger
from scheduler.aws import keys, queue
from scheduler.aws.logins import login_of
from scheduler.dispatch import Dispatcher
from scheduler.history import History
from scheduler.idempotency import Idempotency
from scheduler.limits import Limits
from scheduler.preconditions import Precondition
from scheduler.schedules import Definition
from scheduler.scheduling import Scheduling
from scheduler.settings import Settings
from scheduler.store.clock import Clock
from scheduler.store.connection import Database
from scheduler.webhook.addresses import TargetPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What the routes work with."""

    database: Database
    clock: Clock
    dispatcher: Dispatcher
    scheduling: Scheduling
    history: History
    idempotency: Idempotency
    keys: keys.Keys
    policy: TargetPolicy
    logger: Logger


def connect(settings: Settings, clock: Clock, logger: Logger) -> Parts:
    """The parts of a deployment; nothing is dialled before the first request."""
    database = Database(login_of(settings))
    signing_keys = keys.connect(settings.signing_key_id)
    retention = timedelta(days=settings.retention_days)
    return Parts(
        database=database,
        clock=clock,
        dispatcher=Dispatcher(
            database=database,
            queue=queue.connect(settings.queue_url),
            clock=clock,
            tenant_queued=settings.tenant_queued,
            tenant_concurrency=settings.tenant_concurrency,
        ),
        scheduling=Scheduling(database=database, clock=clock, retention=retention),
        history=History(database=database, clock=clock),
        idempotency=Idempotency(database=database, clock=clock, seal=signing_keys),
        keys=signing_keys,
        policy=TargetPolicy(local_targets=settings.local_targets),
        logger=logger,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call, its API key already judged. `ids` are the path's, as texts; `path` begins with the stage.

    What is put into `later` is done once the change is stored for good, and before the answer.
    """

    tenant_id: UUID
    key_id: str
    ids: Mapping[str, str]
    path: str
    event: dict[str, Any]
    limits: Limits
    more_time: Callable[[], bool]
    later: list[Callable[[], None]] = field(default_factory=list)

    def check_limits(self, old: Definition | None, new: Definition) -> None:
        """InvalidInput for what the tenant may not have; what it had before a limit was lowered, it may keep."""
        if old is None or (new.timing, new.payload) != (old.timing, old.payload):
            self.limits.check(new.timing, new.payload)

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        return self.event.get("multiValueQueryStringParameters") or {}

    @property
    def only(self) -> Precondition:
        """The state that a change is meant for. BadHeader."""
        return conditions.precondition(self.event)

    @property
    def schedule_id(self) -> UUID:
        return queries.path_id(self.ids["schedule_id"])

    @property
    def run_id(self) -> UUID:
        return queries.path_id(self.ids["run_id"])
