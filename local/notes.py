"""What a local stack remembers between runs: its ports, which database it made, and what was deployed last."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from local import postgres


class Notes:
    """A small JSON file, written at each change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = json.loads(path.read_text()) if path.exists() else {}

    def port(self, name: str) -> int:
        """The loopback port that `name` keeps; a free one the first time."""
        return int(self._values.get(f"{name}_port") or self._keep(f"{name}_port", postgres.free_port()))

    def move(self, name: str) -> int:
        """Another port for `name`."""
        return self._keep(f"{name}_port", postgres.free_port())

    def database(self, *, fresh: bool) -> str:
        """Names the database's data; a new name where the data is new."""
        if fresh or "database" not in self._values:
            self._keep("database", uuid.uuid4().hex[:12])
        return str(self._values["database"])

    @property
    def deployed(self) -> Mapping[str, str] | None:
        """Parameters of the last deployment that came to its end."""
        return self._values.get("deployed")

    @deployed.setter
    def deployed(self, parameters: Mapping[str, str] | None) -> None:
        self._keep("deployed", None if parameters is None else dict(parameters))

    def _keep[T](self, name: str, value: T) -> T:
        self._values[name] = value
        self._path.write_text(json.dumps(self._values, indent=2) + "\n")
        return value
