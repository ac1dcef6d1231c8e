"""An answer before it is encoded for API Gateway."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One answer; without a body it has no content type either."""

    status: int
    content_type: str | None = None
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self, **more: str) -> dict[str, Any]:
        """The proxy integration's form, with further headers whose names are written with underscores."""
        headers = dict(self.headers) | {name.replace("_", "-"): value for name, value in more.items()}
        if self.content_type:
            headers["Content-Type"] = self.content_type
        return {
            "statusCode": self.status,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
            "body": self.body,
            "isBase64Encoded": False,
        }
