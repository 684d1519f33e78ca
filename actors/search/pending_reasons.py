"""Why podgroups wait, as it is read from the stream of reasons: one entry for each change."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from actors.broker.bus import STARVING, Bus, Entry, from_newest
from actors.documents.safe_msgpack import unpacked

log = logging.getLogger(__name__)

_PAGE = 2_500


@dataclass(frozen=True, slots=True)
class PendingReasons:
    """Why a podgroup waits.

    Attributes
    ----------
    at
        When that was found, seconds.
    attempts
        An explanation for each action; without any it does not starve: it is not valid, or waits for room that comes
        free.
    condition
        Why it is not scheduled; None: it is.
    since
        When it began to wait, whatever the reasons were since; seconds. None: an older writer did not say.
    place
        Its place among the starving podgroups in the policy's order, from 1, and how many there were; None: it does
        not starve.
    """

    podgroup: str
    at: float
    attempts: tuple[Mapping[str, Any], ...]
    condition: Mapping[str, Any] | None = None
    since: float | None = None
    place: tuple[int, int] | None = None

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Action and reason of each attempt, and the condition's reason; if these are the same, nothing has changed."""
        found = [(str(one["action"]), str(one["reason"])) for one in self.attempts]
        if self.condition is not None:
            found.append(("condition", str(self.condition["reason"])))
        return tuple(found)


def newest(bus: Bus) -> Iterator[PendingReasons]:
    """The last entry about each podgroup, the newest first."""
    seen: set[str] = set()
    for waits in kept_reasons(bus):
        if waits.podgroup not in seen:
            seen.add(waits.podgroup)
            yield waits


def waiting(bus: Bus) -> dict[str, PendingReasons]:
    """Why podgroups wait, by name, the last written first."""
    return {one.podgroup: one for one in newest(bus) if one.reasons}


def kept_reasons(bus: Bus) -> Iterator[PendingReasons]:
    """All that is kept, the newest first."""
    entries = from_newest(bus, STARVING, page=_PAGE)
    return (waits for entry in entries if (waits := _read(entry)) is not None)


def _pair(said: Any) -> tuple[int, int]:
    place, count = said
    return int(place), int(count)


def _read(entry: Entry) -> PendingReasons | None:
    """The reasons in an entry; None if it cannot be read."""
    try:
        at, attempts = unpacked(entry.fields["why"])
        found, began, place = (entry.fields.get(name) for name in ("condition", "since", "place"))
        waits = PendingReasons(
            entry.fields["podgroup"].decode(), float(at), tuple(dict(one) for one in attempts),
            None if found is None else dict(unpacked(found)),
            None if began is None else float(unpacked(began)),
            None if place is None else _pair(unpacked(place)),
        )  # fmt: skip
        _ = waits.reasons
    except (KeyError, TypeError, ValueError) as refusal:
        log.warning("entry %s of why podgroups wait is passed over: %r", entry.id, refusal)
        return None
    return waits
