"""Where things are: the project's root, its environments, and the folder that local runs keep their data in."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
KEPT = PROJECT / ".local"


def tool(environment: str, program: str) -> Path:
    """A program of `.venv-<environment>`; FileNotFoundError that says how to make it."""
    path = PROJECT / f".venv-{environment}" / "bin" / program
    if not path.exists():
        raise FileNotFoundError(f"{path.relative_to(PROJECT)} is missing: `make run` or `make test` sets it up")
    return path
