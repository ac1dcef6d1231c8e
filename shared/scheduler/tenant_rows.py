"""A tenant's row, held while what the tenant has is counted or changed as a whole."""

from uuid import UUID

from scheduler.errors import NoTenant
from scheduler.store.connection import Transaction


def hold(transaction: Transaction, tenant_id: UUID) -> int:
    """Keeps all others out who would hold it until the transaction ends; returns how many schedules it may have. NoTenant.

    What is counted is counted by a later statement: one that waits sees nothing newer than its own beginning.
    """
    rows = transaction.run("tenants.hold", tenant_id=tenant_id)
    if not rows:
        raise NoTenant(tenant_id)
    most: int = rows[0]["max_schedules"]
    return most
