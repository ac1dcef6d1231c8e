"""PostgreSQL for a benchmark: a server of its own that is gone afterwards, and databases with the schema in place."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pg8000.native import Connection
from scheduler.store.connection import Database, Login
from scheduler.store.migrations import upgrade

from local import postgres


@contextmanager
def serving(options: dict[str, str] | None = None) -> Iterator[postgres.Server]:
    """A server in a temporary folder, with these settings."""
    folder = Path(tempfile.mkdtemp(prefix="carillon-bench-"))
    try:
        server = postgres.start(folder / "data", options=options)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(server: postgres.Server, name: str) -> Iterator[tuple[Database, Connection]]:
    """A new database as the product sees it, and a connection of the server's administrator to it."""
    server.create_database(name)
    login = Login(
        host=server.host, port=server.port, database=name, user=postgres.OWNER, password=server.password, tls=None
    )
    upgrade(login)
    ours = Database(lambda: login)
    with (
        closing(ours),
        closing(
            Connection(server.user, host=server.host, port=server.port, database=name, password=server.password)
        ) as admin,
    ):
        yield ours, admin
