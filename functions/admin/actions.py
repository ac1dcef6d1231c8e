"""The operators' actions: each decodes what is asked, calls one use case and encodes what came of it."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

import asked
from scheduler.aws.keys import Keys
from scheduler.credentials import Credentials
from scheduler.idempotency import Answered, Idempotency
from scheduler.operators import Operators
from scheduler.scheduling import Scheduling
from scheduler.signing_secrets import SigningSecrets
from scheduler.store.clock import Clock
from scheduler.store.connection import Database
from scheduler.tenants import create_tenant

type Event = Mapping[str, Any]
type Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Actions:
    """What an operator may ask for, by the name of the method."""

    database: Database
    clock: Clock
    keys: Keys
    scheduling: Scheduling
    more_time: Callable[[], bool]

    def create_tenant(self, event: Event) -> Answer:
        """With its first key and secret, shown this once. Under an id that is there already: nothing is made."""
        given = asked.new_tenant_id(event)
        with self.database.joined() as transaction:
            if given and transaction.run("operators.find", tenant_id=given):
                return {"tenant_id": str(given), "created": False}
            made = create_tenant(
                self.database,
                self.clock,
                self.keys,
                event.get("name"),
                new_id=uuid4,
                entropy=os.urandom,
                tenant_id=given,
            )
            self._operators(event).note(transaction, "create_tenant", made.tenant_id, name=event["name"])
        return {
            "tenant_id": str(made.tenant_id),
            "created": True,
            "api_key": made.api_key,
            "signing_secret": made.signing_secret,
        }

    def suspend_tenant(self, event: Event) -> Answer:
        """Its keys are refused, its runs held."""
        tenant_id = asked.tenant_id(event)
        return {"tenant_id": str(tenant_id), "changed": self._operators(event).suspend(tenant_id)}

    def resume_tenant(self, event: Event) -> Answer:
        """The opposite."""
        tenant_id = asked.tenant_id(event)
        return {"tenant_id": str(tenant_id), "changed": self._operators(event).resume(tenant_id)}

    def delete_tenant(self, event: Event) -> Answer:
        """With all that it has; to be repeated until it is done."""
        tenant_id = asked.tenant_id(event)
        done = self._operators(event).delete(tenant_id, self.scheduling, self.more_time)
        return {"tenant_id": str(tenant_id), "done": done}

    def set_limits(self, event: Event) -> Answer:
        """Those that are given; answers all."""
        tenant_id, limits = asked.tenant_id(event), asked.limits(event)
        return {"tenant_id": str(tenant_id), "limits": asdict(self._operators(event).set_limits(tenant_id, limits))}

    def rotate_secret(self, event: Event) -> Answer:
        """A new signing secret, shown this once."""
        tenant_id, overlap = asked.tenant_id(event), asked.overlap(event)

        def work() -> Answer:
            secrets = SigningSecrets(database=self.database, clock=self.clock)
            made = secrets.rotate(tenant_id, uuid4(), self.keys, overlap=overlap, entropy=os.urandom)
            return {"tenant_id": str(tenant_id), "signing_secret": made.text}

        return self._once(event, tenant_id, work)

    def issue_key(self, event: Event) -> Answer:
        """A further API key, shown this once."""
        tenant_id, scopes = asked.tenant_id(event), asked.scopes(event)

        def work() -> Answer:
            credentials = Credentials(database=self.database, clock=self.clock)
            issued = credentials.issue(
                tenant_id, uuid4(), name=None, scopes=scopes, expires_at=None, entropy=os.urandom
            )
            return {"tenant_id": str(tenant_id), "key_id": str(issued.key.id), "api_key": issued.text}

        return self._once(event, tenant_id, work)

    def _once(self, event: Event, tenant_id: UUID, work: Callable[[], Answer]) -> Answer:
        """Once for each request id, and written down with the work itself."""

        def carry_out() -> Answered:
            with self.database.transaction() as transaction:
                answer = work()
                self._operators(event).note(transaction, event["action"], tenant_id)
            return Answered(status=200, headers={}, body=json.dumps(answer))

        request_id = asked.request_id(event)
        if request_id is None:
            with self.database.joined():
                answered = carry_out()
        else:
            fingerprint = hashlib.sha256(json.dumps(event, sort_keys=True).encode()).digest()
            idempotency = Idempotency(database=self.database, clock=self.clock, seal=self.keys)
            # No tenant's key has a line break: none stands in an operator's way.
            answered = idempotency.once(tenant_id, f"admin\n{request_id}", fingerprint, carry_out, sealed=True)
        answer: Answer = json.loads(answered.body)
        return answer

    def _operators(self, event: Event) -> Operators:
        return Operators(database=self.database, clock=self.clock, operator=asked.operator(event))


# Each with the fields that it reads, besides `action` and `operator`.
ACTIONS = {
    "create_tenant": ("name", "tenant_id"),
    "suspend_tenant": ("tenant_id",),
    "resume_tenant": ("tenant_id",),
    "delete_tenant": ("tenant_id",),
    "set_limits": ("tenant_id", "limits"),
    "rotate_secret": ("tenant_id", "overlap_seconds", "request_id"),
    "issue_key": ("tenant_id", "scopes", "request_id"),
}
