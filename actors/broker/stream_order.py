"""The one order of events and decisions: a decision stands behind the events that were there when it was recorded.

The broker writes down which event was the last (``after``) as it records a decision, in one step, so the order is what
happened. Ids do not tell it: they are a clock's, which may jump, and then ids of one stream go on before the other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from actors.broker.bus import START, Entry, id_order

#: The field of a decision's entry that names the last event before it.
AFTER: Final = "after"

#: An id of the events stream, as numbers.
Position = tuple[int, int]


def positions(decisions: Sequence[Entry], behind: Position) -> list[Position]:
    """Behind which event each of some decisions stands, the first of them no earlier than ``behind``.

    What is no record, such as a request for a list, stands where the decision before it does.
    """
    found = []
    for entry in decisions:
        behind = max(behind, _stated(entry))
        found.append(behind)
    return found


def merged(events: Iterable[Entry], decisions: Sequence[Entry], behind: Position = (0, 0)) -> list[Entry]:
    """Entries of both streams, each in its own order, as one."""
    at = [(id_order(entry.id), 0, entry) for entry in events]
    at += [(stands, 1, entry) for stands, entry in zip(positions(decisions, behind), decisions, strict=True)]
    return [entry for _, _, entry in sorted(at, key=lambda one: one[:2])]


def _stated(entry: Entry) -> Position:
    return id_order(entry.fields.get(AFTER, START.encode()).decode())
