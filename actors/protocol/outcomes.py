"""Which decisions are fulfilled: a small stream beside the decisions, for those who show them."""

from __future__ import annotations

from collections.abc import Iterable

import msgpack
from pydantic import ValidationError

from actors.broker.bus import FULFILLED, Bus
from actors.documents.model import Amount, Name
from actors.documents.safe_msgpack import NotPacked, unpacked
from actors.protocol.bodies import Body, Number

#: About how many entries are kept.
KEPT = 10_000


class Fulfilled(Body):
    """Of this decision no task waits any more: each that it promised a node has started, or is gone.

    ``decision`` is its number in the ledger, ``at`` when the committer saw it (seconds).
    """

    plan_id: Name
    decision: Number
    at: Amount


class Reports:
    """Writes which decisions are fulfilled, each once; again perhaps, if another committer led meanwhile.

    It remembers as many as the stream keeps: a committer may run for months.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        #: By plan, the oldest first; None: not read yet.
        self._known: dict[str, None] | None = None

    def write(self, ones: Iterable[Fulfilled]) -> None:
        """Write those that are not written yet."""
        for one in ones:
            if self._known is None:
                self._known = dict.fromkeys(reversed(fulfilled(self._bus)))
            if one.plan_id not in self._known:
                self._bus.publish(FULFILLED, {"fulfilled": msgpack.packb(one.model_dump())}, cap=KEPT, insist=True)
                self._known[one.plan_id] = None
            if len(self._known) > KEPT:
                del self._known[next(iter(self._known))]


def fulfilled(bus: Bus) -> dict[str, Fulfilled]:
    """The decisions that are fulfilled, by plan."""
    found: dict[str, Fulfilled] = {}
    for entry in bus.newest(FULFILLED, count=KEPT):
        try:
            one = Fulfilled.model_validate(unpacked(entry.fields.get("fulfilled", b"")))
        except (NotPacked, ValidationError):
            continue  # of a version that says it in another way
        found[one.plan_id] = one
    return found
