"""Names of a tenant's document as parts of a JSON pointer that any encoder can write."""


def reference_token(name: object) -> str:
    """One reference token (RFC 6901 §3); a lone surrogate, which UTF-8 can't carry, becomes a question mark."""
    return str(name).encode("utf-8", "replace").decode().replace("~", "~0").replace("/", "~1")
