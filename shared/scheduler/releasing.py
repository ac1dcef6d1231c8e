"""Releasing: runs that wait for an earlier one or for a breaker are let go once nothing holds them any more.

The record that ends a run lets the next one go, and a breaker is turned by outcomes; once a tick this finds the rest, and what
a worker did not live to do.
"""

from dataclasses import dataclass
from datetime import timedelta

from scheduler.store.clock import Clock
from scheduler.store.connection import Database

# Runs that an endpoint gets in a minute of those that were held while it failed.
DRAIN_PER_MINUTE = 120
# Until the next tick.
_TICK = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Released:
    """Runs that were let go: turns that are free, probes, drained ones; and those that their schedule wants dropped."""

    turns: int
    probes: int
    drained: int
    dropped: int


def release(database: Database, clock: Clock, *, drain_per_minute: int = DRAIN_PER_MINUTE) -> Released:
    """One tick's work, each part in a transaction of its own; dispatch then sends what is due."""
    with database.transaction() as transaction:
        turns = transaction.change("releasing.free_turns")
    with database.transaction() as transaction:
        now = clock(transaction)
        probes = transaction.change("releasing.send_probes", now=now, horizon=now + _TICK)
    with database.transaction() as transaction:
        drained = transaction.run("releasing.drain", now=clock(transaction), rate=drain_per_minute)[0]
    return Released(turns=turns, probes=probes, drained=drained["released"], dropped=drained["dropped"])


def recount(database: Database) -> int:
    """Puts the counts of the tenants' deliveries right that lost workers left wrong, and returns how many there were."""
    with database.transaction() as transaction:
        tenants = [row["tenant_id"] for row in transaction.run("releasing.miscounted")]
        if tenants:
            # A statement of its own: it must see what the ones before us committed while we waited for the rows.
            transaction.run("releasing.count_loads", tenant_ids=tenants)
    return len(tenants)
