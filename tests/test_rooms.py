"""The rooms of the code, and who may import whom: the rules of docs/architecture.md, read off the imports."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "shared" / "scheduler"
MODULES = sorted(PACKAGE.rglob("*.py"))
HANDLERS = sorted((ROOT / "functions").rglob("*.py"))

# Outside package -> the only places that may import it, as paths below shared/scheduler.
ONLY_IN = {
    "boto3": ("aws/",),
    "botocore": ("aws/",),
    "pg8000": ("store/",),
    "alembic": ("store/migrations/",),
    "sqlalchemy": ("store/migrations/",),
    "requests": ("http/",),
    "urllib3": ("http/",),
    "certifi": ("http/",),
    "croniter": ("calendar/",),
    "tzdata": ("calendar/",),
    "aws_lambda_powertools": (),
}
# Room -> the rooms of ours it may import, besides itself and the errors. Use cases may import all of them.
MAY_IMPORT = {
    "calendar": (),
    "webhook": (),
    "store": (),
    "aws": ("settings", "store"),
    "http": ("webhook",),
    "settings": ("lease_times",),
    "lease_times": (),
    "errors": (),
    "runs": (),
}
ROOMS = tuple(MAY_IMPORT)


def imports(path: Path) -> Iterator[str]:
    """The full names of all modules that a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its room"
            yield node.module or ""
            if node.module == "scheduler":
                yield from (f"scheduler.{alias.name}" for alias in node.names)


def below(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(name: str) -> str:
    """`scheduler.calendar.spec` -> `calendar`; `planning` for the use case of that name."""
    return name.split(".")[1] if "." in name else ""


@pytest.mark.parametrize("path", MODULES, ids=below)
def test_an_outside_package_is_imported_only_in_its_room(path: Path) -> None:
    for name in imports(path):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top == "scheduler":
            continue
        assert top in ONLY_IN, f"{below(path)} imports {top}, which no room is for"
        assert below(path).startswith(ONLY_IN[top]), f"{below(path)} imports {top}"


@pytest.mark.parametrize("path", MODULES, ids=below)
def test_a_room_imports_only_the_rooms_it_stands_on(path: Path) -> None:
    own = below(path).partition("/")[0].removesuffix(".py")
    if own not in ROOMS:
        return
    for name in imports(path):
        if name.startswith("scheduler."):
            assert room(name) in (own, "errors", *MAY_IMPORT[own]), f"{below(path)} imports {name}"


@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_function_imports_no_adapters_library_and_no_other_function(path: Path) -> None:
    siblings = {sibling.stem for sibling in path.parent.glob("*.py")}
    for name in imports(path):
        top = name.partition(".")[0]
        known = ("scheduler", "aws_lambda_powertools", *siblings, *sys.stdlib_module_names)
        assert top in known, f"{path.parent.name}/{path.name} imports {top}"


def uses(path: Path, owner: str, names: set[str]) -> bool:
    """Whether a file says `owner.name` for one of the names."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in names
        and isinstance(node.value, ast.Name)
        and node.value.id == owner
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


@pytest.mark.parametrize("path", [*MODULES, *HANDLERS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_environment_is_read_in_settings_alone(path: Path) -> None:
    if path != PACKAGE / "settings.py":
        assert not uses(path, "os", {"environ", "getenv"})


@pytest.mark.parametrize("path", [*MODULES, *HANDLERS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_wall_clock_is_read_in_one_place(path: Path) -> None:
    if path != PACKAGE / "preview.py":
        assert not uses(path, "datetime", {"now", "utcnow", "today"})
        assert not uses(path, "date", {"today"})
        assert not uses(path, "time", {"time", "time_ns"})


@pytest.mark.parametrize("path", sorted((PACKAGE / "store" / "sql").glob("*.sql")), ids=lambda path: path.name)
def test_sql_reads_no_clock_but_in_its_one_block(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    for clock in ("now()", "current_timestamp", "statement_timestamp", "transaction_timestamp", "localtimestamp"):
        assert clock not in "".join(line for line in text.splitlines(True) if not line.startswith("--")), clock
    assert ("clock_timestamp()" in text) is (path.name == "clock.sql")
    assert "/*" not in text, "pg8000 reads a colon inside such a comment as a parameter"


def test_the_architecture_names_every_module_of_the_package_and_no_other() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = page.partition("they take the clock")[2].partition("│")[0]
    told = {"settings", "errors", "__init__"}
    assert set(re.findall(r"(?<= )[a-z_]+(?=[,\n])", listed)) == {path.stem for path in PACKAGE.glob("*.py")} - told
