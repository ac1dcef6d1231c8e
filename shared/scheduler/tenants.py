"""Tenants and their API keys: made by the operator, found by the authorizer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from scheduler.aws.keys import Keys
from scheduler.credentials import Scope, hash_key, new_key_text, shown
from scheduler.errors import InvalidInput, Problem
from scheduler.signing_secrets import SECRET_BYTES
from scheduler.store.clock import Clock
from scheduler.store.connection import Database
from scheduler.webhook.signature import SigningSecret


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTenant:
    """A tenant with its first credentials: both are shown this once, and kept only hashed or encrypted."""

    tenant_id: UUID
    api_key: str = field(repr=False)
    signing_secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A valid API key: whose it is, and what it may do (read, write, admin)."""

    id: UUID
    tenant_id: UUID
    scopes: tuple[str, ...]


def create_tenant(
    database: Database,
    clock: Clock,
    keys: Keys,
    name: object,
    *,
    new_id: Callable[[], UUID],
    entropy: Callable[[int], bytes],
    tenant_id: UUID | None = None,
) -> NewTenant:
    """Makes a tenant, an API key with all scopes and a signing secret. `entropy(n)` returns n random bytes.

    Under the given id, or a new one.

    InvalidInput for a name that is not a text of 1 to 200 characters.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= 200 or not name.isprintable():
        raise InvalidInput(Problem(pointer="/name", detail="must be a printable text of 1 to 200 characters"))
    tenant_id, key_id, secret_id = tenant_id or new_id(), new_id(), new_id()
    api_key = new_key_text(entropy)
    secret = SigningSecret(key=entropy(SECRET_BYTES)).text
    ciphertext = keys.encrypt(tenant_id, secret)
    with database.transaction() as transaction:
        now = clock(transaction)
        transaction.run("tenants.insert", id=tenant_id, name=name, now=now)
        transaction.run(
            "tenants.insert_key",
            id=key_id,
            tenant_id=tenant_id,
            prefix=shown(api_key),
            hash=hash_key(api_key),
            scopes=list(Scope),
            now=now,
        )
        transaction.run("signing_secrets.insert", id=secret_id, tenant_id=tenant_id, ciphertext=ciphertext, now=now)
    return NewTenant(tenant_id=tenant_id, api_key=api_key, signing_secret=secret)


def find_key(database: Database, clock: Clock, api_key: str) -> Key | None:
    """The key of this text, unless it is unknown, revoked or expired, or its tenant is not active; its use is noted."""
    with database.transaction() as transaction:
        now = clock(transaction)
        rows = transaction.run("tenants.find_key", hash=hash_key(api_key), now=now)
        if rows:
            transaction.run("tenants.touch_key", id=rows[0]["id"], now=now)
    return Key(id=rows[0]["id"], tenant_id=rows[0]["tenant_id"], scopes=tuple(rows[0]["scopes"])) if rows else None
