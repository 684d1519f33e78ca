"""When to search again for podgroups whose search found no plan, or whose plan was refused; jitter spreads them out.

After a search without a plan there must be news as well, or what stood in the way has ended with time. A refusal is
itself news: the plan was made on an old state.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from zlib import crc32

from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.records import replace

_JITTER = 0.25
_MOST_DOUBLINGS = 16


@dataclass(frozen=True)
class Pause:
    """The pause of a gang group.

    Attributes
    ----------
    revision, until
        It is over when a newer revision is known and this time (seconds) has come.
    times
        Failures in a row.
    or_news_of
        A revision after which news ends it at once; None: it lasts.
    without_news_at
        When ``until`` is enough without any news, seconds; infinite: never.
    """

    revision: int
    until: float
    times: int
    or_news_of: int | None = None
    without_news_at: float = math.inf


@dataclass(frozen=True)
class Backoff:
    """Pauses grow with every failure in a row, and with the size of the gang, since searches for large gangs cost most.

    Attributes
    ----------
    first_s, cap_s
        The shortest and the longest pause of a single task.
    seed
        Seed of the jitter, which keeps gangs that failed together from coming back together.
    epoch
        Epoch of the rows; in another epoch every gang group is new.
    pauses
        Pauses by gang group.
    avoided
        Nodes that are closed to all podgroups, and until when (seconds).
    """

    first_s: float = 0.2
    cap_s: float = 10.0
    seed: int = 0
    epoch: int = -1
    pauses: Mapping[GangGroup, Pause] = field(default_factory=dict)
    avoided: frozenset[tuple[int, float]] = frozenset()

    def is_paused(self, gang_group: GangGroup, snapshot: Snapshot, now: float) -> bool:
        """Whether it is too early to search for the gang group again."""
        found = self.pauses.get(gang_group) if snapshot.epoch == self.epoch else None
        if found is None or (found.or_news_of is not None and snapshot.revision > found.or_news_of):
            return False
        return now < found.until or (snapshot.revision <= found.revision and now < found.without_news_at)

    def held(self, snapshot: Snapshot, now: float) -> list[GangGroup]:
        """The gang groups for which it is too early."""
        return [gang_group for gang_group in self.pauses if self.is_paused(gang_group, snapshot, now)]

    def unplaced(
        self, gang_group: GangGroup, tasks: int, snapshot: Snapshot, now: float, opens_at: float = math.inf
    ) -> "Backoff":
        """After a search on this snapshot that found nothing for a gang group of ``tasks`` tasks.

        ``opens_at`` is when there may be something without any news, seconds.
        """
        paused = self._paused(gang_group, tasks, snapshot, snapshot.revision, now)
        pause = replace(paused.pauses[gang_group], without_news_at=opens_at)
        return replace(paused, pauses={**paused.pauses, gang_group: pause})

    def refused(self, gang_group: GangGroup, tasks: int, snapshot: Snapshot, now: float) -> "Backoff":
        """After a plan made on this snapshot was refused: on newer news the first time, after a pause if it goes on."""
        paused = self._paused(gang_group, tasks, snapshot, snapshot.revision - 1, now)
        pause = paused.pauses[gang_group]
        if pause.times > 1:
            return paused
        return replace(paused, pauses={**paused.pauses, gang_group: replace(pause, or_news_of=snapshot.revision)})

    def kept(self, gang_groups: Collection[GangGroup]) -> "Backoff":
        """With these gang groups only: the others no longer starve, or got what they needed."""
        pauses = {one: found for one, found in self.pauses.items() if one in gang_groups}
        return self if len(pauses) == len(self.pauses) else replace(self, pauses=pauses)

    def with_closed(self, overdue: Collection[tuple[int, float]]) -> "Backoff":
        """With these nodes closed to all podgroups. When one of them opens again, that is news for every gang group."""
        if not overdue and not self.avoided:
            return self
        still = self.avoided <= set(overdue)
        return replace(self, avoided=frozenset(overdue), pauses=self.pauses if still else {})

    def next_at(self, snapshot: Snapshot) -> float | None:
        """When there may be something to do without any news, seconds.

        A gang group that has had its news may be searched for again, or a node that was closed to all opens.
        """
        pauses = self.pauses.values() if snapshot.epoch == self.epoch else ()
        times = [one.until for one in pauses if one.revision < snapshot.revision]
        times += [max(one.until, one.without_news_at) for one in pauses if one.without_news_at < math.inf]
        return min((*times, *(until for _, until in self.avoided)), default=None)

    def _paused(self, gang_group: GangGroup, tasks: int, snapshot: Snapshot, revision: int, now: float) -> "Backoff":
        before = self.pauses if snapshot.epoch == self.epoch else {}
        times = before[gang_group].times + 1 if gang_group in before else 1
        scale = 1.0 + math.log2(max(1, tasks)) / 4.0
        pause_s = min(self.first_s * 2.0 ** min(times - 1, _MOST_DOUBLINGS), self.cap_s) * scale
        jitter = crc32(f"{self.seed} {gang_group} {times}".encode()) / 2**32
        pause = Pause(revision, now + pause_s * (1.0 + _JITTER * jitter), times)
        return replace(self, epoch=snapshot.epoch, pauses={**before, gang_group: pause})
