"""One PostgreSQL connection, kept while it is in step with the server, and transactions on it."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

import pg8000.native
from pg8000.core import Context
from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import to_statement

from scheduler.errors import DatabaseUnavailable
from scheduler.store.sql import block

# Seconds that one answer of the server may take; longer than statement_timeout, so that the server speaks first.
_ANSWER_SECONDS = 25.0

# Class 40: rolled back for the others' sake. 53: out of resources. 57: cancelled, or shutting down. 25P03 and 25P04: the
# session's or the transaction's time is over. (PostgreSQL, Appendix A.)
_INTERRUPTED = ("40", "53", "57", "25P03", "25P04")

_BEGIN = "begin"

type Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Login:
    """What one connect needs. Made anew for each: an IAM token lives for 15 minutes and is checked only then."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    # None only for a server on this machine: pg8000 then falls back to plain text where the server has no TLS.
    tls: ssl.SSLContext | None


class StatementRefused(Exception):
    """The server's own error for one statement; the transaction is rolled back, the connection stays in step.

    `code` is the SQLSTATE, `constraint` the name of the violated constraint or "".
    """

    def __init__(self, error: DatabaseError) -> None:
        fields = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        super().__init__(fields.get("M", str(error)))
        self.code: str = fields.get("C", "")
        self.constraint: str = fields.get("n", "")


class StatementInterrupted(StatementRefused, DatabaseUnavailable):
    """The server gave up on a statement that was sound: a deadlock, a time limit, a shutdown. Worth another try."""


def _refusal(error: DatabaseError) -> StatementRefused:
    refused = StatementRefused(error)
    return StatementInterrupted(error) if refused.code.startswith(_INTERRUPTED) else refused


@cache
def _statement(name: str) -> tuple[str, Callable[[dict[str, object]], tuple[object, ...]]]:
    """The block with numbered parameters, and what puts named ones in their order: what the driver's own `run` would parse
    out of the text anew at each call, which for our longer statements costs more than the server's answer."""
    text, in_order = to_statement(block(name))
    return text, in_order


def _dial(host: str, port: int) -> socket.socket:
    """A connected socket. The driver writes a long statement in several pieces: without TCP_NODELAY the second waits for
    the acknowledgment of the first, which the server delays by 40 ms."""
    dialled = socket.create_connection((host, port), timeout=_ANSWER_SECONDS)
    dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return dialled


class Transaction:
    """One open transaction; the only way to run a statement."""

    def __init__(self, connection: pg8000.native.Connection) -> None:
        self._connection = connection
        self.in_step = True

    def run(self, name: str, /, **parameters: object) -> list[Row]:
        """Runs the block `name` and returns its rows by column name.

        Raises StatementRefused for the server's own errors and DatabaseUnavailable for a broken connection. After any
        error but the server's own the connection may be out of step: pg8000 1.31.6 answers the next query with the rows of
        one whose parameter could not be encoded. `in_step` then is False, and the database drops the connection.
        """
        done = self._execute(name, parameters)
        columns = [column["name"] for column in done.columns or ()]
        return [dict(zip(columns, row, strict=True)) for row in done.rows or ()]

    def change(self, name: str, /, **parameters: object) -> int:
        """Runs the block `name` and returns how many rows it changed; errors as for `run`."""
        return int(self._execute(name, parameters).row_count)

    def _execute(self, name: str, parameters: dict[str, object]) -> Context:
        text, in_order = _statement(name)
        values = in_order(parameters)
        try:
            if values:
                return self._connection.execute_unnamed(text, values)
            return self._connection.execute_simple(text)
        except DatabaseError as error:
            raise _refusal(error) from error
        except (InterfaceError, OSError) as error:
            self.in_step = False
            raise DatabaseUnavailable(f"the connection broke: {error!r}") from error
        except BaseException:
            self.in_step = False
            raise


@contextmanager
def _part(whole: Transaction) -> Iterator[Transaction]:
    whole.run("transactions.begin_part")
    try:
        yield whole
    except BaseException:
        if whole.in_step:
            whole.run("transactions.undo_part")
        raise
    whole.run("transactions.end_part")


class Database:
    """Transactions over one lazily opened connection. Not for several threads at once: one to a sandbox."""

    def __init__(self, login: Callable[[], Login]) -> None:
        self._login = login
        self._connection: pg8000.native.Connection | None = None
        self._opening = _BEGIN
        self._whole: Transaction | None = None

    @contextmanager
    def acting_for(self, tenant_id: UUID) -> Iterator[None]:
        """Each transaction inside sees and changes this tenant's rows alone, by the schema's row-level policies."""
        # In the one text that opens the transaction, so that it costs no round trip. A UUID's text needs no quoting.
        self._opening = f"{_BEGIN}; set local app.tenant = '{tenant_id!s}'"
        try:
            yield
        finally:
            self._opening = _BEGIN

    @contextmanager
    def joined(self) -> Iterator[Transaction]:
        """One transaction for all that begin inside: stored together or not at all. One that raises undoes its own part."""
        outer = self._whole
        with self.transaction() as whole:
            self._whole = whole
            try:
                yield whole
            finally:
                self._whole = outer

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """BEGIN … COMMIT around the block; ROLLBACK where it raises. Inside `joined`, a part of that one.

        Raises DatabaseUnavailable where there is no connection or it broke: before COMMIT nothing is stored; a COMMIT whose
        answer was lost may have been. A connection that the server closed while the sandbox was frozen is replaced
        once, at BEGIN, where nothing can be lost by it.
        """
        if self._whole is not None:
            with _part(self._whole) as part:
                yield part
            return
        connection = self._begin()
        transaction = Transaction(connection)
        try:
            yield transaction
        except BaseException:
            if transaction.in_step:
                self._roll_back(connection)
            else:
                self.close()
            raise
        self._commit(connection)

    def close(self) -> None:
        """Drops the connection, if any; the next transaction opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(InterfaceError, OSError):
                connection.close()

    def _begin(self) -> pg8000.native.Connection:
        kept = self._connection
        if kept is not None:
            try:
                kept.execute_simple(self._opening)
            except (DatabaseError, InterfaceError, OSError):
                self.close()
            else:
                return kept
        fresh = self._connect()
        try:
            fresh.execute_simple(self._opening)
        except (DatabaseError, InterfaceError, OSError) as error:
            self.close()
            raise DatabaseUnavailable(f"a new connection broke: {error!r}") from error
        return fresh

    def _connect(self) -> pg8000.native.Connection:
        login = self._login()
        try:
            self._connection = pg8000.native.Connection(
                login.user,
                host=login.host,
                sock=_dial(login.host, login.port),
                database=login.database,
                password=login.password,
                timeout=_ANSWER_SECONDS,
                ssl_context=login.tls,
                application_name="carillon",
            )
        except (DatabaseError, InterfaceError, OSError) as error:
            raise DatabaseUnavailable(f"no connection to {login.host}:{login.port}: {error}") from error
        return self._connection

    def _commit(self, connection: pg8000.native.Connection) -> None:
        try:
            connection.run("commit")
        except DatabaseError as error:
            self._roll_back(connection)
            raise _refusal(error) from error
        except (InterfaceError, OSError) as error:
            self.close()
            raise DatabaseUnavailable("the connection broke at COMMIT, which may have been carried out") from error

    def _roll_back(self, connection: pg8000.native.Connection) -> None:
        try:
            connection.run("rollback")
        except (DatabaseError, InterfaceError, OSError):
            self.close()
