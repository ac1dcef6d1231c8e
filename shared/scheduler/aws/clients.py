"""Clients of AWS services, by botocore alone: boto3 would import its S3 transfer manager into every cold start."""

from functools import cache
from typing import Any

from botocore.config import Config


def client(service: str, *, config: Config | None = None) -> Any:
    """A client of a service, in the region and with the credentials of the environment."""
    return _session().create_client(service, config=config)


@cache
def _session() -> Any:
    # Imported with the first client: it is a fifth of what a handler would import, and serves nothing before.
    from botocore.session import get_session  # noqa: PLC0415

    return get_session()
