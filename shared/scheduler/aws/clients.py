"""Clients of AWS services, by botocore alone: boto3 would import its S3 transfer manager into every cold start."""

from functools import cache
from typing import Any


def client(service: str, **settings: object) -> Any:
    """A client of a service, in the region and with the credentials of the environment; settings as of botocore's Config."""
    # Imported with the first client: it is two fifths of what a handler would import, and serves nothing before.
    from botocore.config import Config  # noqa: PLC0415

    return _session().create_client(service, config=Config(**settings))


@cache
def _session() -> Any:
    from botocore.session import get_session  # noqa: PLC0415

    return get_session()
