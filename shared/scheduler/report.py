"""How a use case tells of its outcomes."""

from typing import Protocol


class Report(Protocol):
    """Told of each outcome: one event name, facts as fields."""

    def __call__(self, event: str, /, **facts: object) -> None: ...
