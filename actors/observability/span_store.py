"""Finished spans of all processes, collected through the broker, and one trace as a tree."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

import msgpack

from actors.broker.bus import SPANS, START, Bus, Entry
from actors.documents.safe_msgpack import NotPacked, unpacked
from actors.observability.traces import SpanRecord

log = logging.getLogger(__name__)

_SHOWN_CHARACTERS = 48
#: An entry has at most this many spans: the broker bounds a stream by its entries.
_TOGETHER = 50
_KEYS = {"name", "role", "trace", "span", "parent", "start_ns", "end_ns", "ok", "reason", "attributes", "links"}


def ship_to(bus: Bus, kept: int) -> Callable[[list[SpanRecord]], object]:
    """A shipper for `telemetry.start` that appends spans to the broker and keeps the newest, at most about `kept`."""

    def ship(spans: list[SpanRecord]) -> None:
        for first in range(0, len(spans), _TOGETHER):
            packed = msgpack.packb(spans[first : first + _TOGETHER])
            bus.publish(SPANS, {"spans": packed}, cap=entries_kept(kept))

    return ship


def entries_kept(spans: int) -> int:
    """How many entries the stream keeps for at most about this number of spans; at least one."""
    return max(1, spans // _TOGETHER)


def gathered(bus: Bus, after: str = START) -> tuple[list[SpanRecord], str]:
    """All spans shipped after an entry, and the last entry, from which to continue."""
    spans: list[SpanRecord] = []
    while entries := bus.follow(SPANS, after, count=500):
        for entry in entries:
            spans.extend(_read(entry))
        after = entries[-1].id
    return spans, after


def _read(entry: Entry) -> list[SpanRecord]:
    """The spans of an entry; anything else is skipped, since spans are only for display."""
    try:
        said = unpacked(entry.fields.get("spans", b""))
    except NotPacked as refusal:
        log.warning("entry %s of the spans is passed over: %s", entry.id, refusal)
        return []
    return [one for one in said if isinstance(one, dict) and one.keys() >= _KEYS] if isinstance(said, list) else []


def tree(spans: Iterable[SpanRecord], trace: str) -> list[str]:
    """One trace as indented lines: name, role, duration, attributes.

    Children stand under their parent by start time. A span whose parent is not there (not yet shipped, or dropped)
    stands at the top.
    """
    mine = sorted((span for span in spans if span["trace"] == trace), key=lambda span: (span["start_ns"], span["span"]))
    present = {span["span"] for span in mine}
    children: dict[str | None, list[SpanRecord]] = {}
    for span in mine:
        parent = span["parent"] if span["parent"] in present else None
        children.setdefault(parent, []).append(span)
    return list(_lines(children, None, ""))


def _lines(children: dict[str | None, list[SpanRecord]], parent: str | None, indent: str) -> Iterator[str]:
    siblings = children.get(parent, [])
    for position, span in enumerate(siblings):
        last = position == len(siblings) - 1
        branch, below = ("", "") if parent is None else ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield f"{indent}{branch}{_line(span)}"
        yield from _lines(children, span["span"], indent + below)


def _line(span: SpanRecord) -> str:
    duration_ms = (span["end_ns"] - span["start_ns"]) / 1e6
    details = " ".join(f"{name}={_shown(value)}" for name, value in sorted(span["attributes"].items()))
    failed = "" if span["ok"] else f" FAILED {span['reason']}"
    links = f" ({len(span['links'])} links)" if span["links"] else ""
    return f"{span['name']} [{span['role']}] {duration_ms:.2f} ms{failed}{' ' + details if details else ''}{links}"


def _shown(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
