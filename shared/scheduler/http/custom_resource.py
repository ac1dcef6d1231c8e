"""The answer that CloudFormation waits for after it called a custom resource's function."""

import json
from collections.abc import Callable
from typing import Any

import requests

_SECONDS = 10.0


def carry_out(event: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Does `work` for a create or update request and tells CloudFormation how it went; returns what it told.

    A failure fails the deploy, with the error's text as the reason: without an answer CloudFormation would wait an hour.
    A delete request is answered at once: there is nothing to undo. Source: AWS CloudFormation, custom resource
    request and response objects.
    """
    answer = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    answer["PhysicalResourceId"] = event.get("PhysicalResourceId") or f"{event['LogicalResourceId']}-once"
    try:
        answer["Data"] = {} if event["RequestType"] == "Delete" else work()
        answer["Status"] = "SUCCESS"
    except Exception as error:
        answer |= {"Status": "FAILED", "Reason": f"{type(error).__name__}: {error}"[:1000]}
    # The address is signed for exactly these headers: an empty content type.
    sent = requests.put(event["ResponseURL"], data=json.dumps(answer), headers={"Content-Type": ""}, timeout=_SECONDS)
    sent.raise_for_status()
    return answer
