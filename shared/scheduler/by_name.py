"""Schedules by the name that their tenant chose: what is there is replaced, what is not is created."""

import contextlib
from collections.abc import Callable
from uuid import UUID

from scheduler.errors import Conflict, NotFound
from scheduler.preconditions import ANYHOW, Precondition
from scheduler.schedules import Definition, Schedule
from scheduler.scheduling import Scheduling

# Others that may create or delete a schedule of the same name meanwhile, before one gives up.
_TRIES = 5


def find(scheduling: Scheduling, tenant_id: UUID, name: str) -> Schedule:
    """The schedule of this name; NotFound."""
    found = _id_of(scheduling, tenant_id, name)
    if found is None:
        raise NotFound(f"no schedule is called {name!r}")
    return scheduling.get(tenant_id, found)


def put(
    scheduling: Scheduling,
    tenant_id: UUID,
    new_id: UUID,
    name: str,
    put_over: Callable[[Definition | None], Definition],
    *,
    changed_by: str,
    only: Precondition = ANYHOW,
) -> tuple[Schedule, bool]:
    """Makes what `put_over` returns be what the name stands for; also says whether it was created, under the given new id.

    `put_over` is given what is there, or None, and returns a definition of that name, the same each time.

    PreconditionFailed where what the name stands for, or stands for not, is not what was meant.
    """
    for _ in range(_TRIES):
        found = _id_of(scheduling, tenant_id, name)
        if found is None:
            only.check(None)
            with contextlib.suppress(Conflict):
                return scheduling.create(tenant_id, new_id, put_over(None), changed_by=changed_by), True
        else:
            with contextlib.suppress(NotFound):
                return scheduling.edit(tenant_id, found, put_over, changed_by=changed_by, only=only), False
    raise Conflict("it is being changed by others at this moment; try again")


def _id_of(scheduling: Scheduling, tenant_id: UUID, name: str) -> UUID | None:
    with scheduling.database.transaction() as transaction:
        rows = transaction.run("schedules.named", tenant_id=tenant_id, name=name)
    found: UUID | None = rows[0]["id"] if rows else None
    return found
