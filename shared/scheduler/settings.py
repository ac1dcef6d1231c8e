"""The only reader of the environment: one typed object that fails at cold start with the variable's name."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.errors import MisconfiguredError
from scheduler.lease_times import LeaseTimes


class DatabaseAuth(StrEnum):
    """How the password is found: a Secrets Manager secret, or an IAM token made at each connect."""

    SECRET = "secret"
    IAM = "iam"


class DatabaseTls(StrEnum):
    """`verify` checks the server's certificate and name; `off` is for a database on this machine."""

    VERIFY = "verify"
    OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a deployment decides. A field is one environment variable, its name in upper case; `lease_times` is three."""

    database_host: str
    database_port: int
    database_name: str
    database_user: str
    database_auth: DatabaseAuth
    database_secret_arn: str
    database_tls: DatabaseTls
    database_ca_file: str
    queue_url: str
    dead_letter_queue_url: str
    signing_key_id: str
    event_bus_name: str
    lease_times: LeaseTimes
    local_targets: bool
    retention_days: int
    tenant_queued: int
    tenant_concurrency: int
    endpoint_failing_days: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Reads all of them; MisconfiguredError names the first that is missing or wrong."""
        read = _Reader(environment)
        return cls(
            database_host=read.text("DATABASE_HOST"),
            database_port=read.integer("DATABASE_PORT", 1, 65535),
            database_name=read.text("DATABASE_NAME"),
            database_user=read.text("DATABASE_USER"),
            database_auth=read.choice("DATABASE_AUTH", DatabaseAuth),
            database_secret_arn=read.optional("DATABASE_SECRET_ARN"),
            database_tls=read.choice("DATABASE_TLS", DatabaseTls),
            database_ca_file=read.optional("DATABASE_CA_FILE"),
            queue_url=read.text("QUEUE_URL"),
            dead_letter_queue_url=read.text("DEAD_LETTER_QUEUE_URL"),
            signing_key_id=read.text("SIGNING_KEY_ID"),
            event_bus_name=read.text("EVENT_BUS_NAME"),
            lease_times=LeaseTimes(
                lease=read.integer("LEASE_SECONDS", 1, 900),
                function_timeout=read.integer("DELIVERY_TIMEOUT_SECONDS", 1, 900),
                deadline=read.integer("HTTP_DEADLINE_SECONDS", 1, 60),
            ),
            local_targets=read.choice("LOCAL_TARGETS", _Switch) is _Switch.ON,
            retention_days=read.integer("RETENTION_DAYS", 7, 400),
            tenant_queued=read.integer("TENANT_QUEUED", 10, 10_000),
            tenant_concurrency=read.integer("TENANT_CONCURRENCY", 1, 1_000),
            endpoint_failing_days=read.integer("ENDPOINT_FAILING_DAYS", 1, 365),
        )


class _Switch(StrEnum):
    ON = "on"
    OFF = "off"


class _Reader:
    """Typed look-ups in one mapping, with errors that name the variable."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def optional(self, name: str) -> str:
        return self._environment.get(name, "")

    def text(self, name: str) -> str:
        value = self.optional(name)
        if not value:
            raise MisconfiguredError(f"{name} is not set")
        return value

    def integer(self, name: str, least: int, most: int) -> int:
        text = self.text(name)
        if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
            raise MisconfiguredError(f"{name} must be a whole number from {least} to {most}, not {text!r}")
        return int(text)

    def choice[E: StrEnum](self, name: str, kind: type[E]) -> E:
        text = self.text(name)
        if text not in list(kind):
            raise MisconfiguredError(f"{name} must be one of {', '.join(kind)}, not {text!r}")
        return kind(text)
