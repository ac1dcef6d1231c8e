"""Each function may do what its code does, on what it does it to, and nothing else.

What that is stands in tests/template/needed.py; tests/deployed/test_permissions_in_use.py records it.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest

from local.project import PROJECT
from tests.template.needed import BY_LAMBDA, LOG_IN, NEEDED
from tests.template.reading import Resolved, environments, granted, listed

# What a client's method needs. The token for the database is signed without a call; what it is good for is rds-db:connect.
_ACTION_OF = {
    "send_message_batch": "sqs:SendMessage",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
    "encrypt": "kms:Encrypt",
    "decrypt": "kms:Decrypt",
    "put_events": "events:PutEvents",
    "get_secret_value": "secretsmanager:GetSecretValue",
    "generate_db_auth_token": "rds-db:connect",
}
_ASYNCHRONOUS = {"Planner", "Maintenance", "Migrate"}
# AWS's own policies, for what Lambda does under a function's role: logs, network interfaces, traces, receives of the mapping.
_MANAGED = {
    "AWSLambdaBasicExecutionRole",
    "AWSLambdaVPCAccessExecutionRole",
    "AWSXrayWriteOnlyAccess",
    "AWSLambdaSQSQueueExecutionRole",
}


def _methods(*services: str) -> Iterator[str]:
    session = botocore.session.get_session()
    for service in services:
        for name in session.get_service_model(service).operation_names:
            yield re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _called() -> set[str]:
    """The methods that the code calls on clients of AWS."""
    known = {*_methods("sqs", "kms", "events", "secretsmanager"), "generate_db_auth_token"}
    sources = [ast.parse(path.read_text()) for path in (PROJECT / "shared" / "scheduler" / "aws").glob("*.py")]
    named = {node.attr for source in sources for node in ast.walk(source) if isinstance(node, ast.Attribute)}
    return named & known


def test_the_table_knows_every_call_that_the_code_makes_and_no_other() -> None:
    assert _called() == set(_ACTION_OF)


@pytest.mark.parametrize("function", sorted(NEEDED))
def test_a_function_may_do_what_it_does_and_nothing_else(fresh: Resolved, function: str) -> None:
    by_lambda = BY_LAMBDA if function in _ASYNCHRONOUS else set()
    assert granted(fresh, f"{function}Function") == LOG_IN | NEEDED[function] | by_lambda
    assert {action for action, _ in NEEDED[function]} <= set(_ACTION_OF.values())


@pytest.mark.parametrize("function", sorted(NEEDED))
def test_a_function_has_the_log_in_and_of_aws_own_policies_only_these(fresh: Resolved, function: str) -> None:
    attached = fresh.resources[f"{function}FunctionRole"]["Properties"]["ManagedPolicyArns"]
    assert {"Ref": "DatabaseAccess"} in attached
    names = {str(each.get("Fn::Sub", each) if isinstance(each, dict) else each).rpartition("/")[2] for each in attached}
    assert {name for name in names if name.startswith("AWS")} <= _MANAGED


@pytest.mark.parametrize(("auth", "action"), [("secret", "secretsmanager:GetSecretValue"), ("iam", "rds-db:connect")])
def test_the_log_in_is_by_a_secret_or_by_a_token(transformed: dict[str, Any], auth: str, action: str) -> None:
    stack = Resolved(transformed, {"DatabaseAuth": auth})
    [policy] = stack.of_type("AWS::IAM::ManagedPolicy").values()
    [statement] = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == action
    assert statement["Resource"] != "*"


@pytest.mark.parametrize("environment", ["default", "staging", "production"])
def test_no_policy_of_ours_says_all_resources(transformed: dict[str, Any], environment: str) -> None:
    stack = Resolved(transformed, environments()[environment])
    for role in stack.of_type("AWS::IAM::Role").values():
        for policy in role.get("Policies", ()):
            for statement in policy["PolicyDocument"]["Statement"]:
                assert "*" not in listed(statement["Resource"])
                assert not any(action.endswith("*") for action in listed(statement["Action"]))
