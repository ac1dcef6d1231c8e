"""The contract as tests use it: its routes, and a judge of answers."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from openapi_schema_validator import OAS31Validator, oas31_format_checker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_URI = "urn:contract"
# What the contract says of all answers at its beginning.
_EVERYWHERE = {"Content-Type", "X-Request-Id", "RateLimit-Policy", "RateLimit", "Idempotent-Replayed"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """An OpenAPI document."""

    document: dict[str, Any]
    registry: Any

    @classmethod
    def read(cls, path: Path) -> "Contract":
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        resource = Resource.from_contents(document, default_specification=DRAFT202012)
        return cls(document=document, registry=Registry().with_resource(_URI, resource))

    def routes(self) -> set[tuple[str, str]]:
        """(method, path) of every operation."""
        methods = {"get", "put", "post", "delete", "patch"}
        return {
            (method.upper(), path) for path, item in self.document["paths"].items() for method in item.keys() & methods
        }

    def route_of(self, path: str) -> str:
        """The path with its parameters that a request's path belongs to, or the path itself."""
        return self._match(path)[0]

    def parameters_of(self, path: str) -> dict[str, str] | None:
        """What a request's path gives for its route's parameters, as API Gateway hands it on."""
        return self._match(path)[1] or None

    def _match(self, path: str) -> tuple[str, dict[str, str]]:
        # A route without parameters before one whose parameter would take its last word.
        for route in sorted(self.document["paths"], key=lambda route: route.count("{")):
            if found := re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route), path):
                return str(route), found.groupdict()
        return path, {}

    def check(self, method: str, route: str, status: int, headers: dict[str, str], document: Any) -> None:
        """AssertionError unless the contract says that this route may answer so."""
        if (method, route) not in self.routes():
            return
        said = self.document["paths"][route][method.lower()]["responses"]
        assert str(status) in said, f"{method} {route} answered {status}, which the contract does not say: {document}"
        response = self.resolve(said[str(status)])
        self._check_headers(f"{method} {route} {status}", response.get("headers", {}), headers)
        content_type = headers.get("Content-Type")
        if "content" not in response:
            assert document is None
            return
        assert content_type in response["content"], f"{content_type} is none of {list(response['content'])}"
        self.check_schema(response["content"][content_type]["schema"], document)

    def _check_headers(self, answer: str, said: dict[str, Any], headers: dict[str, str]) -> None:
        described = {name: self.resolve(each) for name, each in said.items()}
        required = {name for name, each in described.items() if each.get("required")}
        assert required <= headers.keys(), f"{answer} lacks {required - headers.keys()}"
        undescribed = headers.keys() - described.keys() - _EVERYWHERE
        assert not undescribed, f"{answer} has {undescribed}, which the contract does not say"
        for name in described.keys() & headers.keys():
            schema = described[name]["schema"]
            value = int(headers[name]) if schema.get("type") == "integer" else headers[name]
            self.check_schema(schema, value)

    def check_schema(self, schema: dict[str, Any], document: Any) -> None:
        """AssertionError unless the document is as a schema of the contract says."""
        validator = OAS31Validator(self._absolute(schema), registry=self.registry, format_checker=oas31_format_checker)
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
        assert not errors, errors

    def resolve(self, part: dict[str, Any]) -> dict[str, Any]:
        """The part itself, or what it refers to."""
        if "$ref" not in part:
            return part
        found: dict[str, Any] = self.registry.resolver(_URI).lookup(part["$ref"]).contents
        return found

    def _absolute(self, schema: Any) -> Any:
        """The schema with references that are good outside the document too."""
        if isinstance(schema, list):
            return [self._absolute(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            name: _URI + value if name == "$ref" and value.startswith("#") else self._absolute(value)
            for name, value in schema.items()
        }
