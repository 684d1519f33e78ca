"""The ingestors' group in the stream of events: how far it is noted there that the leader has read.

What is noted stays unacknowledged until a checkpoint covers it. A fleet waits for the group where much is unread, so
entries that were read before a service led are noted as well.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from actors.broker.bus import EVENTS, Bus, Entry, id_order

GROUP = "ingestor"
#: Seconds after which the group follows what was folded. Each time the broker waits for its disk, and all its clients
#: with it.
NOTE_EVERY_S = 0.25
#: Ids of the newest entries that are remembered while another service leads, or none does.
_UNNOTED = 10_000


class GroupNotes:
    """Which events were folded and are not noted yet. Not for several threads at once.

    Parameters
    ----------
    consumer
        This process's name in the group.
    most
        This many events are noted at once at most, and without delay.
    elapsed_s
        A clock that is never set, in seconds.
    """

    def __init__(self, bus: Bus, consumer: str, most: int, elapsed_s: Callable[[], float]) -> None:
        self._bus, self._consumer, self._most, self._elapsed_s = bus, consumer, most, elapsed_s
        self._unnoted = deque[str](maxlen=_UNNOTED)
        self._noted_at = -math.inf
        #: Whether this service leads and has noted nothing yet.
        self.new_to_lead = False

    def folded(self, entries: Sequence[Entry]) -> None:
        """Entries were folded."""
        self._unnoted.extend(entry.id for entry in entries if entry.stream == EVENTS)

    def note(self) -> None:
        """Note what was folded, if it is time; only the leader does."""
        due = len(self._unnoted) >= self._most or self._elapsed_s() >= self._noted_at + NOTE_EVERY_S
        if not self._unnoted or not due:
            return
        self._noted_at = self._elapsed_s()
        if self.new_to_lead:
            self.forget(self._bus.reached(EVENTS, GROUP))  # the one that led before may have noted some
            self.new_to_lead = False
        while self._unnoted:  # more than are remembered may be unnoted, and never as many as would be too many
            some = min(len(self._unnoted), self._most)
            handed = self._bus.read(EVENTS, GROUP, self._consumer, count=some)
            self.forget(handed[-1].id if handed else self._unnoted[-1])

    def forget(self, reached: str) -> None:
        """The group has come this far, an id: what is not behind it need not be noted any more."""
        upto = id_order(reached)
        while self._unnoted and id_order(self._unnoted[0]) <= upto:
            self._unnoted.popleft()
