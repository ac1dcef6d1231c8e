"""What a caller says about the state of a thing that it changes: judged in the change's own transaction, under its locks."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from scheduler.errors import PreconditionFailed


@dataclass(frozen=True, kw_only=True, slots=True)
class Precondition:
    """Which states the change is meant for, by their tags; `there`: whether there must be such a thing. None is either way."""

    tags: Collection[str] | None = None
    there: bool | None = None

    def check(self, tag: str | None) -> None:
        """PreconditionFailed unless it is meant for the state that `tag` names; None: there is no such thing."""
        if tag is None:
            if self.there:
                raise PreconditionFailed("there is none; leave If-Match out to make one")
        elif self.there is False:
            raise PreconditionFailed("there is one already; leave If-None-Match out to change it")
        elif self.tags is not None and tag not in self.tags:
            raise PreconditionFailed("it is not in the state that If-Match names; read it again, and decide anew")


ANYHOW = Precondition()


def tag_of(*facts: object) -> str:
    """A short name for a state: equal for equal facts, and for no others."""
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
