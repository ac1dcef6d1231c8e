"""How a function logs in to the database: a password from Secrets Manager, or an IAM token made at each connect."""

import json
import ssl
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, assert_never

from scheduler.aws.clients import client
from scheduler.settings import DatabaseAuth, DatabaseTls, Settings
from scheduler.store.connection import Login

# RDS signs its servers' certificates by authorities of its own, one set a region, which no system trusts by itself.
_RDS_ROOTS = Path(__file__).with_name("rds-roots.pem")


def login_of(settings: Settings) -> Callable[[], Login]:
    """What a Database calls at each connect."""

    def login() -> Login:
        user, password = _credentials(settings)
        return Login(
            host=settings.database_host,
            port=settings.database_port,
            database=settings.database_name,
            user=user,
            password=password,
            tls=_tls(settings.database_tls, settings.database_ca_file),
        )

    return login


def _credentials(settings: Settings) -> tuple[str, str]:
    match settings.database_auth:
        case DatabaseAuth.SECRET:
            # Read at each connect, not kept: a rotated password is picked up with the next connection.
            answer = _client("secretsmanager").get_secret_value(SecretId=settings.database_secret_arn)
            secret = json.loads(answer["SecretString"])
            return secret["username"], secret["password"]
        case DatabaseAuth.IAM:
            token: str = _client("rds").generate_db_auth_token(
                DBHostname=settings.database_host, Port=settings.database_port, DBUsername=settings.database_user
            )
            return settings.database_user, token
        case _:
            assert_never(settings.database_auth)


@cache
def _client(service: str) -> Any:
    return client(service)


@cache
def _tls(mode: DatabaseTls, ca_file: str) -> ssl.SSLContext | None:
    match mode:
        case DatabaseTls.VERIFY:
            context = ssl.create_default_context(cafile=ca_file or None)
            if not ca_file:
                context.load_verify_locations(_RDS_ROOTS)
            return context
        case DatabaseTls.OFF:
            return None
        case _:
            assert_never(mode)
