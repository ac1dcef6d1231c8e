"""Brings a database to the newest schema. Needs alembic, which only the migrate function carries."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from scheduler.errors import MisconfiguredError
from scheduler.store.connection import Login

# Any constant of ours: two migrations at once wait for each other, on this number.
_LOCK = 7_022_026_034
_LEAST_VERSION = 180_000

# A frozen or killed function's open transaction must not hide rows from the others for longer than this. They are the
# role's, not the session's: a pooler would pin a session that sets them.
_ROLE_LIMITS = (
    "statement_timeout = '20s'",
    "idle_in_transaction_session_timeout = '10s'",
    "transaction_timeout = '60s'",
    "timezone = 'UTC'",
)


def upgrade(login: Login, revision: str = "head") -> None:
    """Runs all missing revisions in one transaction, under an advisory lock; a failure leaves the old schema. A schema that
    is newer than all of them is left as it is.

    Raises MisconfiguredError below PostgreSQL 18, whose uuid_extract_timestamp() knows version 7, and for a role that no
    row-level policy binds.
    """
    engine = create_engine(_url(login), poolclass=NullPool, connect_args={"ssl_context": login.tls})
    with engine.begin() as connection:
        _check_version(connection)
        _check_role(connection)
        # A deploy may take longer than a function's transaction may.
        connection.exec_driver_sql("set local statement_timeout = 0")
        connection.exec_driver_sql("set local transaction_timeout = 0")
        connection.exec_driver_sql(f"select pg_advisory_xact_lock({_LOCK})")
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent))
        config.attributes["connection"] = connection
        if not _is_ahead(connection, config):
            command.upgrade(config, revision)
        for limit in _ROLE_LIMITS:
            connection.exec_driver_sql(f"alter role current_user set {limit}")


def _is_ahead(connection: Connection, config: Config) -> bool:
    """Whether a newer release migrated the database before this one was deployed back over it: its schema serves both."""
    found = MigrationContext.configure(connection).get_current_revision()
    newest = ScriptDirectory.from_config(config).get_current_head()
    return found is not None and newest is not None and found > newest


def _url(login: Login) -> URL:
    return make_url("postgresql+pg8000://").set(
        username=login.user, password=login.password, host=login.host, port=login.port, database=login.database
    )


def _check_version(connection: Connection) -> None:
    version = int(connection.exec_driver_sql("show server_version_num").scalar_one())
    if version < _LEAST_VERSION:
        raise MisconfiguredError(f"PostgreSQL 18 or newer is needed, this server is {version // 10_000}")


def _check_role(connection: Connection) -> None:
    text = "select rolsuper or rolbypassrls from pg_roles where rolname = current_user"
    if connection.exec_driver_sql(text).scalar_one():
        raise MisconfiguredError(
            "the database's user is a superuser or has BYPASSRLS: no policy would keep tenants apart"
        )
