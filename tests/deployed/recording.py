"""What the functions call of AWS, told by the endpoint's own record (CloudTrail) and not by the code."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import psutil

from local.stack import Stack

# The endpoint answers so many events a look-up and gives no token for more.
_PAGE = 50
_SECOND = timedelta(seconds=1)


def calls(deployed: Stack) -> dict[str, set[tuple[str, str]]]:
    """By a function's logical id less `Function`: the service and operation of each call that it has made."""
    made = defaultdict(set)
    for key, function in _keys().items():
        for event in _events(deployed, key):
            service = event["EventSource"].removesuffix(".amazonaws.com")
            made[function].add((service, event["EventName"]))
    return made


def action(service: str, operation: str) -> str:
    """The IAM action that an operation needs: a batch needs what one message does (Amazon SQS API permissions)."""
    return f"{service}:{operation.removesuffix('Batch') if service == 'sqs' else operation}"


def _keys() -> dict[str, str]:
    """Each running function's access key, which is its role's own, from the environment of its process."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            environment = process.environ()
            if name := environment.get("AWS_LAMBDA_FUNCTION_NAME"):
                found[environment["AWS_ACCESS_KEY_ID"]] = name.split("-")[1].removesuffix("Function")
    return found


def _events(deployed: Stack, key: str) -> Iterator[dict[str, Any]]:
    """All that was called with a key, newest first, a page of whole seconds at a time."""
    trail, ends = deployed.endpoint.client("cloudtrail"), {}
    while True:
        words = [{"AttributeKey": "AccessKeyId", "AttributeValue": key}]
        page = trail.lookup_events(LookupAttributes=words, MaxResults=_PAGE, **ends)["Events"]
        yield from page
        if len(page) < _PAGE:
            return
        ends = {"EndTime": _whole(page[-1]) + _SECOND}
        assert _whole(page[-1]) < _whole(page[0]), f"more than {_PAGE} calls in one second: the rest can't be told"


def _whole(event: dict[str, Any]) -> datetime:
    at: datetime = event["EventTime"]
    return at.replace(microsecond=0)
