"""Once a minute: materialises what is due, lets go what nothing holds, sends, sweeps, publishes events that are left."""

import time
from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from figures import show
from scheduler.aws import bus, queue
from scheduler.aws.logins import login_of
from scheduler.disabling import carry_out
from scheduler.dispatch import Dispatcher, sweep
from scheduler.holding import expire_held
from scheduler.outbox import publish
from scheduler.planning import plan
from scheduler.releasing import recount, release
from scheduler.scheduling import Scheduling
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database
from scheduler.watch import watch

logger = Logger()
# What a tick keeps for its last transaction; the next tick goes on from there.
_RESERVE_MS = 12_000
# Between two looks at a backlog that its tenants' limits hold back.
_REFILL_SECONDS = 0.5


@cache
def parts() -> tuple[Settings, Database, queue.Queue, bus.Bus]:
    settings = Settings.from_environment()
    database = Database(login_of(settings))
    return settings, database, queue.connect(settings.queue_url), bus.connect(settings.event_bus_name)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Ignores the event: what is due is the database's to say, not the timer's."""
    settings, database, runs, events = parts()

    def more_time() -> bool:
        return context.get_remaining_time_in_millis() > _RESERVE_MS

    retention = timedelta(days=settings.retention_days)
    planned = plan(database, database_clock, retention=retention, more_time=more_time)
    for calendar_id, fault in (planned.set_aside | planned.refused).items():
        logger.error("calendar.failed", calendar_id=calendar_id, fault=fault)
    released = release(database, database_clock)
    recounted = recount(database)
    dispatcher = Dispatcher(
        database=database,
        queue=runs,
        clock=database_clock,
        tenant_queued=settings.tenant_queued,
        tenant_concurrency=settings.tenant_concurrency,
    )
    sent = dispatcher.dispatch(more_time=more_time)
    swept = sweep(database, runs, database_clock, more_time=more_time)
    expired = expire_held(database, database_clock, more_time=more_time)
    scheduling = Scheduling(database=database, clock=database_clock, retention=retention)
    disabled = carry_out(scheduling, more_time=more_time)
    published = publish(database, database_clock, events, more_time=more_time)
    sent = dispatcher.refill(sent, more_time=more_time, pause=lambda: time.sleep(_REFILL_SECONDS))
    facts = {
        "calendars": planned.calendars,
        "runs": planned.runs,
        "busy": planned.busy,
        "released": released.turns + released.probes + released.drained,
        "dropped": released.dropped,
        "recounted": recounted,
        "sent": sent.taken,
        "swept": swept.taken,
        "expired": expired,
        "refused": sent.refused + swept.refused,
        "disabled": disabled,
        "published": published,
    }
    logger.info("tick.done", **facts)
    seen = watch(
        database,
        database_clock,
        tenant_queued=settings.tenant_queued,
        tenant_concurrency=settings.tenant_concurrency,
    )
    show(facts, seen)
    return facts
