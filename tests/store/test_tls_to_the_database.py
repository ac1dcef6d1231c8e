"""The database is believed only with a certificate of RDS's own authorities, the runtime's, or those of a named bundle."""

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from scheduler.aws import logins
from scheduler.errors import DatabaseUnavailable
from scheduler.settings import Settings
from scheduler.store.clock import database_clock
from scheduler.store.connection import Database, Login

from local import rds_roots
from tests.http.certificates import Authority, make_authority
from tests.test_settings import GOOD

_REGIONS = {"eu-west-1", "eu-central-1", "us-east-1", "us-east-2", "us-west-2", "ap-southeast-2", "sa-east-1"}
# PostgreSQL, Message Formats: the length, 8, and the code of an SSLRequest.
_SSL_REQUEST = bytes.fromhex("00000008 04d2162f")


@pytest.fixture(scope="module")
def kept() -> dict[str, x509.Certificate]:
    return rds_roots.roots(rds_roots.FILE.read_text())


def test_each_region_has_the_authorities_of_all_three_kinds(kept: dict[str, x509.Certificate]) -> None:
    kinds: dict[str, set[str]] = {}
    for name in kept:
        region, kind = name.removeprefix("Amazon RDS ").removesuffix(" G1").split(" Root CA ")
        kinds.setdefault(region, set()).add(kind)
    assert kinds.keys() >= _REGIONS
    assert all(each == {"RSA2048", "RSA4096", "ECC384"} for each in kinds.values())


def test_the_authorities_are_roots_that_outlive_us(kept: dict[str, x509.Certificate]) -> None:
    assert rds_roots.FILE.read_text() == rds_roots.written(kept)
    for each in kept.values():
        each.verify_directly_issued_by(each)
        assert each.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert each.not_valid_after_utc > dt.datetime(2060, 1, 1, tzinfo=dt.UTC)


def test_of_a_list_only_the_roots_of_regions_are_kept(tmp_path: Path, kept: dict[str, x509.Certificate]) -> None:
    other = Path(make_authority(tmp_path).ca_file).read_text()
    assert rds_roots.roots(f"a list\n{other}\n{rds_roots.FILE.read_text()}") == kept


def _tls(ca_file: str = "") -> ssl.SSLContext:
    context = logins._tls(logins.DatabaseTls.VERIFY, ca_file)
    assert context
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    return context


def test_what_signs_for_rds_is_trusted_beside_what_the_runtime_trusts(kept: dict[str, x509.Certificate]) -> None:
    trusted = _tls().get_ca_certs()
    serials = {int(each["serialNumber"], 16) for each in trusted}
    assert {each.serial_number for each in kept.values()} <= serials
    assert len(trusted) > len(kept)


def test_a_bundle_that_is_named_is_trusted_alone(tmp_path: Path) -> None:
    [one] = _tls(make_authority(tmp_path).ca_file).get_ca_certs()
    assert one["subject"] == ((("commonName", "Throw-away root"),),)


type Connect = Callable[..., Database]


@pytest.fixture
def through_tls(login: Login, aws: None, tmp_path: Path) -> Iterator[Connect]:
    """Connects to the test's database at `host` by settings, through TLS with a certificate for `localhost`."""
    authority = make_authority(tmp_path)
    with ExitStack() as stops:
        port = stops.enter_context(closing(_Front(login, authority))).port

        def connect(*, host: str = "localhost", trusted: bool = True) -> Database:
            ca_file = authority.ca_file if trusted else ""
            settings = Settings.from_environment(
                {**GOOD, "DATABASE_HOST": host, "DATABASE_PORT": str(port), "DATABASE_CA_FILE": ca_file}
            )
            made = logins.login_of(settings)()
            database = Database(
                lambda: replace(made, database=login.database, user=login.user, password=login.password)
            )
            stops.callback(database.close)
            return database

        yield connect


class _Front:
    """Speaks TLS with one client at a time, and plain text with the server behind."""

    def __init__(self, login: Login, authority: Authority) -> None:
        self._server = (login.host, login.port)
        self._tls = authority.server("localhost")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with suppress(OSError), client:
                self._pass_on(client)

    def _pass_on(self, client: socket.socket) -> None:
        assert client.recv(8) == _SSL_REQUEST
        client.sendall(b"S")
        with (
            self._tls.wrap_socket(client, server_side=True) as secured,
            socket.create_connection(self._server) as plain,
        ):
            back = threading.Thread(target=_copy, args=(plain, secured))
            back.start()
            _copy(secured, plain)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _reads_the_clock(database: Database) -> bool:
    with database.transaction() as transaction:
        return database_clock(transaction).tzinfo is dt.UTC


def test_a_server_with_a_certificate_of_a_trusted_authority_is_talked_to(through_tls: Connect) -> None:
    assert _reads_the_clock(through_tls())


def test_a_server_whose_authority_nobody_knows_is_refused(through_tls: Connect) -> None:
    with pytest.raises(DatabaseUnavailable, match="certificate verify failed"):
        _reads_the_clock(through_tls(trusted=False))


def test_a_server_with_a_certificate_for_another_name_is_refused(through_tls: Connect) -> None:
    with pytest.raises(DatabaseUnavailable, match="certificate verify failed"):
        _reads_the_clock(through_tls(host="127.0.0.1"))
