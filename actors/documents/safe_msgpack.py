"""msgpack from outside, read with bounds: no value is made before all of its bytes are known to be there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Limits of an entry: its size in bytes, the depth of its values, and the number of its messages."""

    entry_bytes: int = 1 << 20
    depth: int = 32
    messages: int = 10_000


WIRE_LIMITS = WireLimits()
#: Limits of an entry of decisions. One decision is one entry, and ten thousand evictions must fit into it.
DECISION_LIMITS = WireLimits(entry_bytes=16 << 20)


_DIGITS = 18
_NESTED = frozenset((dict, list))


class NotPacked(ValueError):
    """Bytes that are not valid msgpack of this program; the message says why."""


def unpacked(packed: bytes) -> Any:
    """Decode the bytes, which must be exactly one value.

    The head of an array states its length, and the decoder allocates that at once, so a few bytes can ask for
    gigabytes. Therefore the bytes are walked first, which allocates nothing: a complete value takes memory in
    proportion to its bytes.

    Raises
    ------
    NotPacked
        For anything but one complete value of plain types that is not nested too deep.
    """
    walker = msgpack.Unpacker(max_buffer_size=max(1, len(packed)))
    walker.feed(packed)
    try:
        walker.skip()
        if walker.tell() != len(packed):
            raise NotPacked(f"found {len(packed) - walker.tell()} bytes after its end")
        return msgpack.unpackb(packed, raw=False, strict_map_key=True, ext_hook=_no_extension)
    except msgpack.OutOfData as refusal:
        raise NotPacked("it is cut off") from refusal
    except (ValueError, msgpack.UnpackException) as refusal:
        raise NotPacked(str(refusal) or type(refusal).__name__) from refusal


def _no_extension(code: int, _data: bytes) -> Any:
    raise ValueError(f"extension type {code}")


def whole_number(digits: bytes) -> int | None:
    """The number below 10^18 that a field of a stream holds as digits; None for anything else."""
    return int(digits) if digits.isdigit() and len(digits) <= _DIGITS else None


def deeper_than(value: Any, limit: int) -> bool:
    """Whether maps and arrays nest deeper than ``limit``. It goes level by level, since recursion could overflow."""
    level: list[Any] = [value] if type(value) in _NESTED else []
    for _ in range(limit):
        # Exact types suffice, since the decoder makes no others; this check runs for every value that arrives.
        inner = [
            one for outer in level for one in (outer.values() if type(outer) is dict else outer) if type(one) in _NESTED
        ]
        if not inner:
            return False
        level = inner
    return True
