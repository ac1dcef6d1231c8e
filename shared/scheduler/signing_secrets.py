"""A tenant's signing secrets: looked at, rotated with an overlap, and ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from scheduler import tenant_rows
from scheduler.aws.keys import Keys
from scheduler.errors import Conflict, InvalidInput, NotFound, Problem
from scheduler.preconditions import ANYHOW, Precondition, tag_of
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Transaction
from scheduler.webhook.signature import SigningSecret

# Random bytes of a secret (Standard Webhooks: 24 to 64).
SECRET_BYTES = 32
# How long an old secret goes on signing beside its successor.
DEFAULT_OVERLAP = timedelta(hours=24)
MAX_OVERLAP = timedelta(days=7)
# Old secrets that sign beside the newest one.
_OLD_SECRETS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretInForce:
    """A secret that signs now, without its text; `expires_at` None: it is the newest."""

    id: UUID
    created_at: datetime
    expires_at: datetime | None

    @property
    def tag(self) -> str:
        """Names its state."""
        return tag_of(self.id, self.expires_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSecret:
    """A new secret with its text, this once."""

    secret: SecretInForce
    text: str = field(repr=False)


def tag_of_all(secrets: Sequence[SecretInForce]) -> str:
    """Names the state of all secrets together."""
    return tag_of(*(each.tag for each in secrets))


@dataclass(frozen=True, kw_only=True, slots=True)
class SigningSecrets:
    """The use cases, over one database and clock. Those that change anything hold the tenant: one at a time."""

    database: Database
    clock: Clock

    def list(self, tenant_id: UUID) -> list[SecretInForce]:
        """The secrets that requests are signed with now, newest first."""
        with self.database.transaction() as transaction:
            return _in_force(transaction, tenant_id, self.clock(transaction))

    def get(self, tenant_id: UUID, secret_id: UUID) -> SecretInForce:
        """One of them; NotFound."""
        return _one(self.list(tenant_id), secret_id)

    def rotate(
        self,
        tenant_id: UUID,
        new_id: UUID,
        keys: Keys,
        *,
        overlap: timedelta = DEFAULT_OVERLAP,
        entropy: Callable[[int], bytes],
        only: Precondition = ANYHOW,
    ) -> NewSecret:
        """Makes a new secret under the given new id; `entropy(n)` returns n random bytes. The old ones sign on for `overlap`.

        InvalidInput for an overlap that is not 0 to 7 days; NotFound; PreconditionFailed by the state of all secrets. At most
        four secrets sign at once: where rotations follow each other faster than their overlaps end, the oldest end at once.
        """
        if not timedelta(0) <= overlap <= MAX_OVERLAP:
            raise InvalidInput(Problem(pointer="/overlap_seconds", detail=f"must be 0 to {MAX_OVERLAP.days} days"))
        text = SigningSecret(key=entropy(SECRET_BYTES)).text
        ciphertext = keys.encrypt(tenant_id, text)
        with self.database.transaction() as transaction:
            old, now = self._held(transaction, tenant_id)
            only.check(tag_of_all(old))
            words = {"tenant_id": tenant_id, "now": now}
            transaction.run("signing_secrets.retire", until=now + overlap, kept=_OLD_SECRETS, **words)
            transaction.run("signing_secrets.insert", id=new_id, ciphertext=ciphertext, **words)
        return NewSecret(secret=SecretInForce(id=new_id, created_at=now, expires_at=None), text=text)

    def revoke(self, tenant_id: UUID, secret_id: UUID, *, only: Precondition = ANYHOW) -> None:
        """Ends a secret that was replaced before its overlap is over. NotFound; PreconditionFailed; Conflict for the newest."""
        with self.database.transaction() as transaction:
            secrets, now = self._held(transaction, tenant_id)
            secret = _one(secrets, secret_id)
            only.check(secret.tag)
            if secret.expires_at is None:
                # A tenant without any could be sent nothing.
                raise Conflict("it is the newest secret; rotate first")
            transaction.run("signing_secrets.end", id=secret_id, now=now)

    def _held(self, transaction: Transaction, tenant_id: UUID) -> tuple[Sequence[SecretInForce], datetime]:
        tenant_rows.hold(transaction, tenant_id)
        now = self.clock(transaction)
        return _in_force(transaction, tenant_id, now), now


def _in_force(transaction: Transaction, tenant_id: UUID, now: datetime) -> list[SecretInForce]:
    rows = transaction.run("signing_secrets.in_force", tenant_id=tenant_id, now=now)
    return [SecretInForce(**row) for row in rows]


def _one(secrets: Sequence[SecretInForce], secret_id: UUID) -> SecretInForce:
    for each in secrets:
        if each.id == secret_id:
            return each
    raise NotFound(f"no signing secret {secret_id} is in force")
