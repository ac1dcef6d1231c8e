"""The template as the tests read it: its text, SAM's transform of it, and what is left of that under given parameters."""

import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from local.endpoint import clean_environment
from local.project import PROJECT, tool

# SAM's own translator, in the environment that has it. Code must be in S3 by the time AWS transforms it.
_TRANSFORM = """
import json, sys
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
template = json.load(sys.stdin)
for resource in template["Resources"].values():
    for name in ("CodeUri", "ContentUri"):
        if name in resource.get("Properties", {}):
            resource["Properties"][name] = "s3://bucket/code.zip"
json.dump(Translator({}, Parser()).translate(sam_template=template, parameter_values={"AWS::Region": "eu-west-1"}), sys.stdout)
"""


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short intrinsic functions: `!Ref X` becomes {"Ref": "X"}, `!Sub X` {"Fn::Sub": "X"}."""


def _intrinsic(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        text = str(loader.construct_scalar(node))
        return {name: text.split(".", 1) if suffix == "GetAtt" else text}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _intrinsic)


def read(path: Path = PROJECT / "template.yaml") -> dict[str, Any]:
    """The template with long intrinsic functions; what YAML anchors share is written out."""
    document = yaml.load(path.read_text(), _Loader)  # noqa: S506 - a SafeLoader
    plain: dict[str, Any] = json.loads(json.dumps(document))
    return plain


def transform(template: Mapping[str, Any]) -> dict[str, Any]:
    """What SAM makes of the template: plain CloudFormation."""
    done = subprocess.run(
        [tool("sam", "python"), "-c", _TRANSFORM],
        input=json.dumps(template),
        capture_output=True,
        text=True,
        check=False,
        env={**clean_environment(), "AWS_DEFAULT_REGION": "eu-west-1"},
    )
    assert done.returncode == 0, done.stderr
    plain: dict[str, Any] = json.loads(done.stdout)
    return plain


def lint(path: Path) -> str:
    """What cfn-lint says of a template file; nothing is good."""
    done = subprocess.run(
        [tool("sam", "cfn-lint"), "--regions", "eu-west-1", "us-east-1", "--", path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AWS_DEFAULT_REGION": "eu-west-1"},
    )
    return done.stdout + done.stderr


def environments() -> dict[str, dict[str, str]]:
    """The parameters that each environment of samconfig.toml sets."""
    settings = tomllib.loads((PROJECT / "samconfig.toml").read_text())
    settings.pop("version")
    return {
        name: dict(pair.split("=", 1) for pair in commands["deploy"]["parameters"].get("parameter_overrides", []))
        for name, commands in settings.items()
    }


class Resolved:
    """A template under parameters: resources whose condition holds, with Ref of parameters, If and FindInMap worked out."""

    def __init__(self, template: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        unknown = set(parameters) - set(template["Parameters"])
        assert not unknown, f"no such parameters: {unknown}"
        self._template = template
        self._parameters = {name: each.get("Default") for name, each in template["Parameters"].items()} | dict(
            parameters
        )
        self.resources: dict[str, dict[str, Any]] = {
            name: self._value(each)
            for name, each in template["Resources"].items()
            if "Condition" not in each or self._holds({"Condition": each["Condition"]})
        }

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of all resources of a type, by logical id."""
        return {name: each.get("Properties", {}) for name, each in self.resources.items() if each["Type"] == kind}

    def refused(self) -> list[str]:
        """What CloudFormation says of these parameters by the template's rules, before it makes anything."""
        return [
            each["AssertDescription"]
            for rule in self._template["Rules"].values()
            if self._holds(rule["RuleCondition"])
            for each in rule["Assertions"]
            if not self._holds(each["Assert"])
        ]

    def _value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [value for each in node if (value := self._value(each)) != {"Ref": "AWS::NoValue"}]
        if not isinstance(node, dict):
            return node
        if "Fn::If" in node:
            condition, yes, no = node["Fn::If"]
            return self._value(yes if self._holds({"Condition": condition}) else no)
        if "Fn::FindInMap" in node:
            name, top, second = node["Fn::FindInMap"]
            return self._template["Mappings"][name][top][second]
        if node.get("Ref") in self._parameters:
            return self._parameters[node["Ref"]]
        values = {name: self._value(each) for name, each in node.items()}
        return {name: each for name, each in values.items() if each != {"Ref": "AWS::NoValue"}}

    def _holds(self, condition: Mapping[str, Any]) -> bool:
        [(operator, operand)] = condition.items()
        if operator == "Condition":
            return self._holds(self._template["Conditions"][operand])
        if operator == "Fn::Not":
            return not self._holds(operand[0])
        if operator in ("Fn::And", "Fn::Or"):
            return (all if operator == "Fn::And" else any)(self._holds(each) for each in operand)
        if operator == "Fn::Contains":
            return operand[1] in str(self._value(operand[0])).split(",")
        assert operator == "Fn::Equals", operator
        left, right = (str(self._value(each)) for each in operand)
        return left == right


def granted(stack: Resolved, function: str) -> set[tuple[str, str]]:
    """Action and resource of all that our own policies allow a function, by its logical id."""
    role = stack.resources[f"{function}Role"]["Properties"]
    attached = [each["Ref"] for each in role["ManagedPolicyArns"] if isinstance(each, dict) and "Ref" in each]
    policies = [*role.get("Policies", ()), *(stack.resources[name]["Properties"] for name in attached)]
    statements = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
    assert all(each["Effect"] == "Allow" for each in statements)
    return {
        (action, resource["Fn::GetAtt"][0] if isinstance(resource, dict) else resource)
        for statement in statements
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def listed(value: Any) -> list[Any]:
    """A policy's value, which stands alone where it is one."""
    return value if isinstance(value, list) else [value]
