"""What the local endpoint's IAM needs besides the template: AWS has no actions for batches, the endpoint asks for them.

On AWS `sqs:SendMessage` covers SendMessageBatch too (Amazon SQS API permissions: actions and resource reference).
"""

import json
from collections.abc import Iterator
from typing import Any

from local.endpoint import Endpoint

_BATCHES = {
    "sqs:SendMessage": "sqs:SendMessageBatch",
    "sqs:ChangeMessageVisibility": "sqs:ChangeMessageVisibilityBatch",
}


def allow_batches(endpoint: Endpoint) -> None:
    """Whatever a role may do to a single message it may do to ten, on the same queues. For after each deploy."""
    iam = endpoint.client("iam")
    for role, name, document in _policies(iam):
        for statement in document["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            statement["Action"] = sorted({*actions, *(_BATCHES[each] for each in actions if each in _BATCHES)})
        iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))


def _policies(iam: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each inline policy: its role, its name, its document."""
    for page in iam.get_paginator("list_roles").paginate():
        for role in (each["RoleName"] for each in page["Roles"]):
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
                yield role, name, iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
