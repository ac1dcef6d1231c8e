"""Reads the changes of offset out of a TZif file (RFC 9636), independently of any code that interprets zones."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

_HEADER = struct.Struct(">4sc15x6l")


@dataclass(frozen=True, kw_only=True)
class OffsetChange:
    """Seconds since the epoch, and seconds to add to UTC before and after."""

    at: int
    before: int
    after: int


def offset_changes(name: str) -> Iterator[OffsetChange]:
    """The changes in the file's 64-bit table, those that leave the offset as it is left out."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    _, _, standard, universal, leaps, times, types, letters = _HEADER.unpack_from(data)
    second = _HEADER.size + times * 5 + types * 6 + letters + leaps * 8 + standard + universal
    *_, times, types, _ = _HEADER.unpack_from(data, second)
    start = second + _HEADER.size
    instants = struct.unpack_from(f">{times}q", data, start)
    indices = data[start + 8 * times : start + 9 * times]
    offsets = [struct.unpack_from(">l", data, start + 9 * times + 6 * number)[0] for number in range(types)]
    before = offsets[0]
    for at, index in zip(instants, indices, strict=True):
        if offsets[index] != before:
            yield OffsetChange(at=at, before=before, after=offsets[index])
            before = offsets[index]
