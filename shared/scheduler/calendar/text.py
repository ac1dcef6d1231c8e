"""Small readers of someone else's text: decimals without surprises, and text as it may stand in a message."""

_LONGEST_NUMBER = 10
_SHOWN = 24


def decimal(text: str) -> int | None:
    """The value of ASCII digits, leading zeros and all; None for anything else.

    More digits than any value here can have come back as a large number, without the cost of converting them.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _LONGEST_NUMBER else 10**_LONGEST_NUMBER


def quoted(text: str) -> str:
    """Someone's text as it may stand in a one-line message: escaped, and cut when long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
