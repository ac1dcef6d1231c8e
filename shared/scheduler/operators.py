"""What operators do to tenants. Each action may be repeated, and is written down: who, when, what."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from scheduler.errors import Conflict, InvalidInput, NotFound, Problem
from scheduler.limits import Limits, limits_of
from scheduler.scheduling import Scheduling
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Transaction

_BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))
# Rows of one transaction.
_ROWS = 5_000
_SCHEDULES = 100
_LIMITS = {
    "max_schedules": (0, 10_000_000),
    "min_interval_seconds": (1, 86_400),
    "max_payload_bytes": (0, 262_144),
    "requests_per_second": (1, 1_000_000),
}
# In the order that references allow; the first three have no bound, the rest are few.
_MANY = ("operators.delete_skipped_ranges", "operators.delete_versions", "operators.delete_schedules")
_FEW = (
    "operators.delete_orders",
    "operators.delete_endpoints",
    "operators.delete_load",
    "operators.delete_lists",
    "operators.delete_events",
    "operators.delete_keys",
    "operators.delete_secrets",
    "operators.delete_tenant",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operators:
    """The actions, over one database and clock. `operator` is who asked, as the audit names them."""

    database: Database
    clock: Clock
    operator: str

    def suspend(self, tenant_id: UUID) -> bool:
        """Its keys are refused (30 seconds later at most) and its runs held; False where that was so. NotFound."""
        return self._set_status(tenant_id, "suspend_tenant", "suspended")

    def resume(self, tenant_id: UUID) -> bool:
        """Its keys are good again, and its held runs go out; False where nothing was held. NotFound."""
        return self._set_status(tenant_id, "resume_tenant", "active")

    def set_limits(self, tenant_id: UUID, limits: dict[str, object]) -> Limits:
        """Sets those that are given and returns all. NotFound; InvalidInput for an unknown one or one out of its range."""
        problems = [
            Problem(pointer=f"/limits/{name}", detail=_refusal(name))
            for name in limits
            if not _fits(name, limits[name])
        ]
        if problems:
            raise InvalidInput(*problems)
        with self.database.transaction() as transaction:
            _found(transaction, tenant_id)
            transaction.run("limits.set", tenant_id=tenant_id, **(dict.fromkeys(_LIMITS) | limits))
            self.note(transaction, "set_limits", tenant_id, **limits)
            return limits_of(transaction, tenant_id)

    def delete(self, tenant_id: UUID, scheduling: Scheduling, more_time: Callable[[], bool]) -> bool:
        """Deletes the tenant and all that it has, while `more_time()`; False where a further call has to go on.

        From the first call on its keys are refused. Each schedule is deleted as its tenant would, so that no planner makes
        another run of it. Done again for a tenant that is gone already. NotFound for one that never was.
        """
        with self.database.transaction() as transaction:
            rows = transaction.run("operators.find", tenant_id=tenant_id)
            if not rows:
                if transaction.run("operators.was_deleted", tenant_id=tenant_id):
                    return True
                raise NotFound(f"no tenant {tenant_id}")
            transaction.run("operators.set_status", tenant_id=tenant_id, status="deleted")
            self.note(transaction, "delete_tenant", tenant_id, name=rows[0]["name"])
        return (
            self._delete_schedules(tenant_id, scheduling, more_time)
            and self._delete_runs(tenant_id, more_time)
            and self._delete_rest(tenant_id, more_time)
        )

    def note(self, transaction: Transaction, action: str, tenant_id: UUID, **detail: object) -> None:
        """Writes an action down, in the transaction that carries it out."""
        transaction.run(
            "operators.note",
            now=self.clock(transaction),
            operator=self.operator,
            action=action,
            tenant_id=tenant_id,
            detail=json.dumps(detail),
        )

    def _set_status(self, tenant_id: UUID, action: str, status: str) -> bool:
        with self.database.transaction() as transaction:
            changed = _found(transaction, tenant_id) != status
            if changed:
                transaction.run("operators.set_status", tenant_id=tenant_id, status=status)
            self.note(transaction, action, tenant_id, changed=changed)
            return changed

    def _delete_schedules(self, tenant_id: UUID, scheduling: Scheduling, more_time: Callable[[], bool]) -> bool:
        while found := scheduling.list(tenant_id, after=_BEGINNING, most=_SCHEDULES):
            for schedule in found:
                try:
                    scheduling.delete(tenant_id, schedule.id, changed_by=f"operator: {self.operator}")
                except Conflict:
                    return False
                if not more_time():
                    return False
        return True

    def _delete_runs(self, tenant_id: UUID, more_time: Callable[[], bool]) -> bool:
        while True:
            with self.database.transaction() as transaction:
                if not transaction.change("operators.delete_runs", tenant_id=tenant_id, most=_ROWS):
                    return not transaction.run("operators.has_runs", tenant_id=tenant_id)[0]["some"]
            if not more_time():
                return False

    def _delete_rest(self, tenant_id: UUID, more_time: Callable[[], bool]) -> bool:
        with self.database.transaction() as transaction:
            transaction.run("operators.delete_turns", tenant_id=tenant_id)
        for block in _MANY:
            while self._delete_some(block, tenant_id):
                if not more_time():
                    return False
        with self.database.transaction() as transaction:
            for block in _FEW:
                transaction.run(block, tenant_id=tenant_id)
        return True

    def _delete_some(self, block: str, tenant_id: UUID) -> int:
        with self.database.transaction() as transaction:
            return transaction.change(block, tenant_id=tenant_id, most=_ROWS)


def _found(transaction: Transaction, tenant_id: UUID) -> str:
    """The tenant's status, the row held; NotFound, also for one that is being deleted."""
    rows = transaction.run("operators.find", tenant_id=tenant_id)
    if not rows or rows[0]["status"] == "deleted":
        raise NotFound(f"no tenant {tenant_id}")
    return str(rows[0]["status"])


def _fits(name: str, value: object) -> bool:
    least, most = _LIMITS.get(name, (0, -1))
    return type(value) is int and least <= value <= most


def _refusal(name: str) -> str:
    if name not in _LIMITS:
        return f"is no limit; the limits are {', '.join(_LIMITS)}"
    return "must be a whole number from {} to {}".format(*_LIMITS[name])
