"""What the transformed template makes under the parameters of each environment: neither cfn-lint nor SAM looks at that."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.template.reading import Resolved, environments, granted, lint

_FUNCTIONS = {"Admin", "Api", "Authorizer", "DeadLetter", "Delivery", "Maintenance", "Migrate", "Planner"}
# AWS: a function's resource policy, in bytes.
_POLICY_LIMIT = 20_480
# Lambda keeps so many of an account's concurrent executions back for functions that reserve none.
_UNRESERVED = 100


def _arn(logical_id: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical_id, "Arn"]}


def _variables(stack: Resolved) -> dict[str, dict[str, Any]]:
    found = stack.of_type("AWS::Lambda::Function")
    return {name: each["Environment"]["Variables"] for name, each in found.items()}


def test_cfn_lint_finds_nothing_in_what_sam_makes_of_the_template(transformed: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "transformed.json"
    file.write_text(json.dumps(transformed))
    assert lint(file) == ""


@pytest.mark.parametrize("environment", ["default", "staging", "production"])
def test_nothing_is_relaxed_but_on_one_machine(transformed: dict[str, Any], environment: str) -> None:
    stack = Resolved(transformed, environments()[environment])
    for variables in _variables(stack).values():
        assert variables["LOCAL_TARGETS"] == "off"
        assert variables["DATABASE_TLS"] == "verify"
    for function in stack.of_type("AWS::Lambda::Function").values():
        assert len(function["VpcConfig"]["SubnetIds"]) == 2
        assert function["VpcConfig"]["SecurityGroupIds"] == [{"Ref": "FunctionSecurityGroup"}]
    [database] = stack.of_type("AWS::RDS::DBInstance").values()
    assert database["StorageEncrypted"]
    assert database["ManageMasterUserPassword"]
    assert database["EnableIAMDatabaseAuthentication"]
    assert not database["PubliclyAccessible"]
    assert database["BackupRetentionPeriod"] >= 7
    assert database["Engine"] == "postgres"
    assert int(database["EngineVersion"]) >= 18
    for queue in stack.of_type("AWS::SQS::Queue").values():
        assert queue["SqsManagedSseEnabled"]
    assert stack.of_type("AWS::SQS::QueuePolicy"), "queues over TLS only"


def test_production_has_a_second_of_everything_and_guards_what_cannot_be_made_again(production: Resolved) -> None:
    [database] = production.of_type("AWS::RDS::DBInstance").values()
    assert (database["MultiAZ"], database["DeletionProtection"]) == ("true", "true")
    assert database["MonitoringRoleArn"] == _arn("DatabaseMonitoringRole")
    assert len(production.of_type("AWS::EC2::NatGateway")) == 2
    assert production.of_type("AWS::WAFv2::WebACLAssociation")


def test_the_web_acl_blocks_nothing_for_what_a_payload_or_a_name_holds(production: Resolved) -> None:
    [acl] = production.of_type("AWS::WAFv2::WebACL").values()
    [common] = [rule for rule in acl["Rules"] if rule["Name"] == "common"]
    overrides = common["Statement"]["ManagedRuleGroupStatement"]["RuleActionOverrides"]
    assert {each["Name"] for each in overrides if each["ActionToUse"] == {"Count": {}}} == {
        "SizeRestrictions_BODY",
        "CrossSiteScripting_BODY",
        "GenericLFI_BODY",
        "GenericRFI_BODY",
        "EC2MetaDataSSRF_BODY",
        "RestrictedExtensions_URIPATH",
        "RestrictedExtensions_QUERYARGUMENTS",
    }


def test_the_local_environment_makes_no_network_no_database_and_no_web_acl(transformed: dict[str, Any]) -> None:
    stack = Resolved(transformed, environments()["local"] | {"DatabaseHost": "127.0.0.1"})
    kinds = {each["Type"] for each in stack.resources.values()}
    assert not {kind for kind in kinds if kind.startswith(("AWS::EC2::", "AWS::RDS::", "AWS::WAFv2::"))}
    assert all("VpcConfig" not in function for function in stack.of_type("AWS::Lambda::Function").values())


def test_an_existing_network_and_database_are_taken_as_they_are(transformed: dict[str, Any]) -> None:
    parameters = {
        "Network": "existing",
        "Database": "existing",
        "SubnetIds": "subnet-1,subnet-2",
        "SecurityGroupIds": "sg-1",
        "DatabaseHost": "db.internal",
        "DatabaseSecretArn": "arn:secret",
    }
    stack = Resolved(transformed, parameters)
    assert not {
        each["Type"] for each in stack.resources.values() if each["Type"].startswith(("AWS::EC2::", "AWS::RDS::"))
    }
    for function in stack.of_type("AWS::Lambda::Function").values():
        assert function["VpcConfig"] == {"SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"}
        assert function["Environment"]["Variables"]["DATABASE_HOST"] == "db.internal"
        assert function["Environment"]["Variables"]["DATABASE_SECRET_ARN"] == "arn:secret"


_THERE = {"Database": "existing", "DatabaseHost": "db.internal"}
_NET = {"Network": "existing", "SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"}


@pytest.mark.parametrize(
    ("parameters", "refused"),
    [
        ({}, ""),
        ({**_THERE, "DatabaseSecretArn": "arn:secret"}, ""),
        ({**_THERE, "DatabaseAuth": "iam", "DatabaseResourceId": "db-1"}, ""),
        ({**_THERE, "DatabaseHost": "", "DatabaseSecretArn": "arn:secret"}, "needs DatabaseHost"),
        (_THERE, "needs DatabaseSecretArn"),
        (
            {**_THERE, "DatabaseAuth": "iam", "DatabaseSecretArn": "arn:secret"},
            "or DatabaseResourceId with",
        ),
        ({**_NET, "VpcId": "vpc-1"}, ""),
        (_NET, "Network=existing with VpcId"),
        ({**_NET, "VpcId": "vpc-1", "SubnetIds": ""}, "needs SubnetIds"),
        ({"Network": "none"}, "Database=own needs Network=own"),
    ],
)
def test_what_a_deploy_lacks_is_said_before_anything_is_made(
    transformed: dict[str, Any], parameters: dict[str, str], refused: str
) -> None:
    said = Resolved(transformed, parameters).refused()
    assert bool(said) == bool(refused)
    assert refused in "".join(said)


def test_only_the_functions_reach_the_database_and_it_reaches_nothing(fresh: Resolved) -> None:
    group = fresh.resources["DatabaseSecurityGroup"]["Properties"]
    [way_in] = group["SecurityGroupIngress"]
    assert way_in["SourceSecurityGroupId"] == {"Ref": "FunctionSecurityGroup"}
    assert (way_in["FromPort"], way_in["ToPort"]) == (5432, 5432)
    assert [way_out["CidrIp"] for way_out in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]
    ways = [each for each in fresh.of_type("AWS::EC2::Route").values() if each["RouteTableId"] == {"Ref": "DataRoutes"}]
    assert ways == []


def test_functions_go_out_by_the_ports_that_targets_may_have_and_to_the_database(fresh: Resolved) -> None:
    group = fresh.resources["FunctionSecurityGroup"]["Properties"]
    assert "SecurityGroupIngress" not in group
    assert {(way["FromPort"], way["ToPort"]) for way in group["SecurityGroupEgress"]} == {
        (443, 443),
        (8443, 8443),
        (5432, 5432),
    }


def test_the_subnets_share_nothing_and_lie_in_two_zones(fresh: Resolved) -> None:
    subnets = fresh.of_type("AWS::EC2::Subnet").values()
    assert len({json.dumps(each["CidrBlock"]) for each in subnets}) == len(subnets) == 6
    zones = {each["AvailabilityZone"]["Fn::Select"][0] for each in subnets}
    assert zones == {0, 1}
    assert not any(each.get("MapPublicIpOnLaunch") for each in subnets)


def test_migrations_wait_for_the_way_out_by_which_they_answer(fresh: Resolved) -> None:
    named = {each["Ref"] for each in fresh.resources["Migrations"]["Properties"]["WayOut"]}
    ways = {*fresh.of_type("AWS::EC2::Route"), *fresh.of_type("AWS::EC2::SubnetRouteTableAssociation")}
    assert named == {name for name in ways if name.startswith("Private")}


def test_a_new_account_can_deploy_it(fresh: Resolved) -> None:
    """Its quota of ten concurrent executions refuses any reservation, and it has no log role for API Gateway."""
    assert all("ReservedConcurrentExecutions" not in each for each in fresh.of_type("AWS::Lambda::Function").values())
    [stage] = fresh.of_type("AWS::ApiGateway::Stage").values()
    assert stage["AccessLogSetting"]["DestinationArn"] == _arn("AccessLog")
    assert fresh.resources["AccessLog"]["Properties"]["Tags"][0]["Value"] == {"Ref": "ApiLogAccount"}
    assert not fresh.of_type("AWS::WAFv2::WebACL")


def test_reservations_and_mappings_add_up_to_the_stated_connections(
    template: dict[str, Any], production: Resolved
) -> None:
    stated = template["Mappings"]["Connections"]
    reserved = {
        name.removesuffix("Function"): each["ReservedConcurrentExecutions"]
        for name, each in production.of_type("AWS::Lambda::Function").items()
    }
    assert reserved == stated["Of"]
    assert set(reserved) == _FUNCTIONS
    assert sum(reserved.values()) == stated["Budget"]["Sum"]
    for mapping in production.of_type("AWS::Lambda::EventSourceMapping").values():
        function = mapping["FunctionName"]["Ref"].removesuffix("Function")
        # Fewer places than the mapping fills would throttle it, and a throttled message loses a receive.
        assert mapping["ScalingConfig"]["MaximumConcurrency"] == reserved[function]


def test_the_reservations_fit_the_quota_that_production_says_it_needs(template: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "samconfig.toml").read_text()
    quota = re.search(r"quota of (\d+) concurrent executions", text)
    assert quota
    assert int(quota[1]) == template["Mappings"]["Connections"]["Budget"]["Sum"] + _UNRESERVED


def test_one_permission_lets_the_api_invoke_its_function(transformed: dict[str, Any]) -> None:
    def invoked_by(principal: str) -> list[dict[str, Any]]:
        resources = transformed["Resources"].values()
        permissions = [each["Properties"] for each in resources if each["Type"] == "AWS::Lambda::Permission"]
        return [each for each in permissions if each["Principal"] == principal]

    api, authorizer = sorted(invoked_by("apigateway.amazonaws.com"), key=lambda each: "Authorizer" in str(each))
    assert api["FunctionName"] == {"Ref": "ApiFunction"}
    assert api["SourceArn"]["Fn::Sub"].endswith("/*/v1/*")
    assert "AuthorizerFunction" in json.dumps(authorizer["FunctionName"])
    assert 2 * len(json.dumps(api)) < _POLICY_LIMIT


def test_every_source_of_a_mapping_has_a_dead_letter_queue_that_keeps_longer(fresh: Resolved) -> None:
    queues = fresh.of_type("AWS::SQS::Queue")
    sources = {
        each["EventSourceArn"]["Fn::GetAtt"][0] for each in fresh.of_type("AWS::Lambda::EventSourceMapping").values()
    }
    # Letters are received until they are answered: they decide nothing, and the sweep finds the runs of those that expire.
    assert sources - {"DeadLetterQueue"} == {"RunQueue"}
    redrive = queues["RunQueue"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == _arn("DeadLetterQueue")
    assert queues["DeadLetterQueue"]["MessageRetentionPeriod"] > queues["RunQueue"]["MessageRetentionPeriod"]


def test_what_is_invoked_asynchronously_leaves_its_failures_in_a_queue(fresh: Resolved) -> None:
    failures = _arn("FailureQueue")
    for schedule in fresh.of_type("AWS::Scheduler::Schedule").values():
        assert schedule["Target"]["DeadLetterConfig"]["Arn"] == failures
    scheduled = {each["Target"]["Arn"]["Fn::GetAtt"][0] for each in fresh.of_type("AWS::Scheduler::Schedule").values()}
    resources = {
        each["Properties"]["ServiceToken"]["Fn::GetAtt"][0]
        for each in fresh.resources.values()
        if each["Type"].startswith("Custom::")
    }
    kept = {
        each["FunctionName"]["Ref"]
        for each in fresh.of_type("AWS::Lambda::EventInvokeConfig").values()
        if each["DestinationConfig"]["OnFailure"]["Destination"] == failures
    }
    assert scheduled | resources == kept == {"PlannerFunction", "MaintenanceFunction", "MigrateFunction"}


def test_every_queue_refuses_plain_text(fresh: Resolved) -> None:
    [policy] = fresh.of_type("AWS::SQS::QueuePolicy").values()
    assert {each["Ref"] for each in policy["Queues"]} == set(fresh.of_type("AWS::SQS::Queue"))
    [statement] = policy["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert [each["Fn::GetAtt"][0] for each in statement["Resource"]] == [each["Ref"] for each in policy["Queues"]]


def test_every_function_logs_to_a_group_of_its_own_that_forgets(fresh: Resolved) -> None:
    groups = fresh.of_type("AWS::Logs::LogGroup")
    assert all(each["RetentionInDays"] for each in groups.values())
    functions = fresh.of_type("AWS::Lambda::Function")
    used = [each["LoggingConfig"]["LogGroup"]["Ref"] for each in functions.values()]
    assert sorted(used) == sorted(set(groups) - {"AccessLog"})


def test_every_function_and_the_api_are_traced(fresh: Resolved) -> None:
    assert all(each["TracingConfig"] == {"Mode": "Active"} for each in fresh.of_type("AWS::Lambda::Function").values())
    assert all(each["TracingEnabled"] for each in fresh.of_type("AWS::ApiGateway::Stage").values())


def test_the_api_is_throttled_and_logs_who_asked_but_no_key(fresh: Resolved) -> None:
    [stage] = fresh.of_type("AWS::ApiGateway::Stage").values()
    [settings] = stage["MethodSettings"]
    assert settings["ThrottlingRateLimit"] == 100
    logged = json.loads(stage["AccessLogSetting"]["Format"])
    assert {"request_id", "tenant_id", "status", "route"} <= set(logged)
    assert not re.search(r"authorization|queryString|header|body", json.dumps(logged), re.IGNORECASE)


def test_what_holds_secrets_or_data_outlives_the_stack(fresh: Resolved) -> None:
    policies = {name: each.get("DeletionPolicy") for name, each in fresh.resources.items()}
    assert policies["DatabaseInstance"] == "Snapshot"
    assert policies["SigningKey"] == "RetainExceptOnCreate"
    kept = {name for name, policy in policies.items() if policy not in (None, "Delete")}
    assert kept == {"DatabaseInstance", "SigningKey", "EgressAddressA", "ApiLogRole", "ApiLogAccount"}


def test_a_stack_that_takes_over_a_database_decrypts_with_its_key_and_makes_none(transformed: dict[str, Any]) -> None:
    stack = Resolved(transformed, {"SigningKeyArn": "arn:key"})
    assert not stack.of_type("AWS::KMS::Key")
    assert {variables["SIGNING_KEY_ID"] for variables in _variables(stack).values()} == {"arn:key"}
    keys = {
        resource for name in _FUNCTIONS for action, resource in granted(stack, f"{name}Function") if "kms:" in action
    }
    assert keys == {"arn:key"}
