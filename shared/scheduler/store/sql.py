"""The named SQL blocks: `sql/<file>.sql`, each block under a line `-- name: <block>`."""

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)


@cache
def block(name: str) -> str:
    """The text of `<file>.<block>`, such as `planning.advance`. KeyError where there is none."""
    file, _, wanted = name.partition(".")
    return _blocks(file)[wanted]


@cache
def _blocks(file: str) -> dict[str, str]:
    text = (files("scheduler.store") / "sql" / f"{file}.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return dict(zip(parts[::2], (body.strip() for body in parts[1::2]), strict=True))
