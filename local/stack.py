"""The whole stack on this machine: PostgreSQL, the AWS endpoint, and the project's template deployed onto it."""

import fcntl
import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import postgres, release
from local.endpoint import Endpoint
from local.notes import Notes

_DATABASE = "carillon"
_SECRET = "carillon/database"

type Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """A running stack. Everything it keeps is under `folder`."""

    folder: Path
    notes: Notes
    database: postgres.Server
    endpoint: Endpoint
    outputs: Mapping[str, str]

    @property
    def api_url(self) -> str:
        """Base of the tenants' API, as this machine reaches it."""
        return f"{self.endpoint.url}/_aws/execute-api/{self.outputs['ApiId']}/live"

    def invoke(self, output: str, event: Mapping[str, Any]) -> Any:
        """Invokes the function that the stack's output names, as IAM lets one on AWS; RuntimeError with its error."""
        name, payload = self.outputs[output], json.dumps(event).encode()
        answer = self.endpoint.client("lambda").invoke(FunctionName=name, Payload=payload)
        result = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise RuntimeError(f"{name}: {result}")
        return result


@contextmanager
def running(
    folder: Path,
    *,
    say: Say,
    parameters: Mapping[str, str] | None = None,
    first: Callable[[Notes], None] = lambda _: None,
) -> Iterator[Stack]:
    """Starts the stack over `folder` and stops all of it at the end, whatever ended it.

    `parameters` are the template's. `first` is called before anything can be delivered. Raises RuntimeError or TimeoutError
    with the end of the log of what did not start.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder), _signals_as_exceptions(), ExitStack() as stops:
        notes = Notes(folder / "stack.json")
        with _told(say, "building the functions and layers"):
            digest = release.build()
        with _told(say, "starting PostgreSQL"):
            data = folder / "postgres"
            fresh = not (data / "PG_VERSION").exists()
            stops.callback(_undisturbed, postgres.Server(data=data, port=notes.port("database")).stop)
            database = _start_postgres(data, notes)
            database.create_database(_DATABASE)
        first(notes)
        endpoint = Endpoint(folder=folder / "aws", port=notes.port("endpoint"))
        stops.callback(_undisturbed, endpoint.stop)
        with _told(say, "starting the AWS endpoint"):
            endpoint.start()
        version = {"Release": f"{digest[:16]}-{notes.database(fresh=fresh)}"}
        wanted = {**_database_parameters(database, endpoint), **version, **(parameters or {})}
        if notes.deployed != wanted or not release.outputs(endpoint):
            with _told(say, "deploying the template"):
                _deploy(endpoint, wanted, notes)
        try:
            outputs = release.outputs(endpoint)
            yield Stack(folder=folder, notes=notes, database=database, endpoint=endpoint, outputs=outputs)
        finally:
            say("stopping …")


def _start_postgres(data: Path, notes: Notes) -> postgres.Server:
    postgres.Server(data=data, port=notes.port("database")).stop()
    try:
        return postgres.start(data, port=notes.port("database"))
    except RuntimeError:
        return postgres.start(data, port=notes.move("database"))


def _database_parameters(database: postgres.Server, endpoint: Endpoint) -> dict[str, str]:
    return {
        "DatabaseHost": database.host,
        "DatabasePort": str(database.port),
        "DatabaseName": _DATABASE,
        "DatabaseUser": postgres.OWNER,
        "DatabaseSecretArn": _secret(database, endpoint),
    }


def _secret(database: postgres.Server, endpoint: Endpoint) -> str:
    secrets = endpoint.client("secretsmanager")
    value = json.dumps({"username": postgres.OWNER, "password": database.password})
    try:
        return str(secrets.create_secret(Name=_SECRET, SecretString=value)["ARN"])
    except secrets.exceptions.ResourceExistsException:
        return str(secrets.put_secret_value(SecretId=_SECRET, SecretString=value)["ARN"])


def _deploy(endpoint: Endpoint, parameters: Mapping[str, str], notes: Notes) -> None:
    notes.deployed = None
    try:
        release.deploy(endpoint, parameters)
    except BaseException:
        endpoint.abandon()
        raise
    # The endpoint writes its state when it stops. What the database will hold from now on can be read with the deployed
    # key only, so the key must be on disk before anything else happens.
    endpoint.stop()
    endpoint.start()
    notes.deployed = parameters


@contextmanager
def _told(say: Say, what: str) -> Iterator[None]:
    say(f"{what} …")
    began = time.monotonic()
    yield
    if (took := time.monotonic() - began) >= 1:
        say(f"{what}: {took:.1f} s")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"a local stack is running over {folder} already") from None
        yield


_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """SIGTERM and SIGHUP end us as Ctrl-C does, so that what was started is stopped."""
    earlier = {each: signal.signal(each, signal.default_int_handler) for each in _ENDINGS}
    try:
        yield
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)


def _undisturbed(stop: Callable[[], None]) -> None:
    """Stops something; a second Ctrl-C does not cut it short."""
    for each in _ENDINGS:
        signal.signal(each, signal.SIG_IGN)
    stop()
