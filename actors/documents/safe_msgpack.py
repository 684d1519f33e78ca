"""msgpack that others wrote, read with bounds: no value is made before all of it is known to be there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What an entry may be: its size, how deep its values nest, how many messages it holds."""

    entry_bytes: int = 1 << 20
    depth: int = 32
    messages: int = 10_000


WIRE_LIMITS = WireLimits()
DECISION_LIMITS = WireLimits(entry_bytes=16 << 20)
"""A decision is one entry however large it is, and only the committer writes it: ten thousand evictions must fit."""


_DIGITS = 18
_NESTED = frozenset((dict, list))


class NotPacked(ValueError):
    """Bytes that are no msgpack of ours; the message says why."""


def unpacked(packed: bytes, *, keys_are_text: bool = True) -> Any:
    """The one value that the bytes are.

    An array's head says how long it is, and room for that is made at once: a few bytes can ask for gigabytes. So the
    bytes are walked first, which makes nothing; what is whole can only ask for as much as its own size.

    Raises
    ------
    NotPacked
        For anything but one whole value of plain kinds, nested at most some hundred deep.
    """
    walker = msgpack.Unpacker(max_buffer_size=max(1, len(packed)))
    walker.feed(packed)
    try:
        walker.skip()
        if walker.tell() != len(packed):
            raise NotPacked(f"found {len(packed) - walker.tell()} bytes after its end")
        return msgpack.unpackb(packed, raw=False, strict_map_key=keys_are_text, ext_hook=_no_extension)
    except msgpack.OutOfData as refusal:
        raise NotPacked("it is cut off") from refusal
    except (ValueError, msgpack.UnpackException) as refusal:
        raise NotPacked(str(refusal) or type(refusal).__name__) from refusal


def _no_extension(code: int, _data: bytes) -> Any:
    raise ValueError(f"extension type {code}")


def whole_number(digits: bytes) -> int | None:
    """A count as a stream's field holds it, below 10^18; None for anything else."""
    return int(digits) if digits.isdigit() and len(digits) <= _DIGITS else None


def deeper_than(value: Any, limit: int) -> bool:
    """Whether maps and arrays nest deeper than `limit`; level by level, so that depth cannot exhaust the stack."""
    level: list[Any] = [value] if type(value) in _NESTED else []
    for _ in range(limit):
        inner: list[Any] = []
        for outer in level:
            # Exact types, for the decoder makes no others, and this looks at every value that arrives.
            inner += [one for one in (outer.values() if type(outer) is dict else outer) if type(one) in _NESTED]
        if not inner:
            return False
        level = inner
    return True
