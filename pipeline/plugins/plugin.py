"""A plugin: what it is made from, what it is asked for, and the values of its answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.arguments import Kind
from pipeline.policy import PluginSetting, Policy, Purpose

#: What plugins are asked about: a snapshot, or a what-if on one.
State = Snapshot | WhatIf


@dataclass(frozen=True)
class Context:
    """What a plugin looks at: the snapshot, the policy and the clock (seconds).

    ``starting`` (int64[K]) are the tasks that this cycle binds; they do not run yet and are never victims. ``among``
    (int64[K]) are the only tasks that may be victims; None: all that the plugins let go. Where all queues are
    ``equally_fair``, no plugin is asked from which to take first.
    """

    snapshot: Snapshot
    policy: Policy
    now: float
    starting: Rows = field(default_factory=lambda: NO_ROWS)
    among: Rows | None = None
    equally_fair: bool = False


@dataclass(frozen=True)
class Preemptor:
    """What room is made for: podgroup rows that start together, and what their minimum asks for (int64[R]).

    On the task-centric path ``task`` is the row of the one task for which room is made, and ``request`` is its own;
    ``task`` is NONE for the podgroups as a whole. Clearing and consolidation make room for no podgroup.
    """

    podgroups: tuple[int, ...]
    request: Longs
    purpose: Purpose
    task: int = NONE

    @property
    def asked(self) -> Bools:
        """bool[R]: resources that it asks for, pods left out."""
        asked: Bools = self.request > 0
        asked[PODS] = False
        return asked


class Opinion(IntEnum):
    """An answer about admission: a rejection prevails; an abstention leaves the answer to other plugins."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(frozen=True)
class OfPodgroups:
    """An opinion that is the same for all tasks of a podgroup, bool[G]: there are far fewer podgroups than tasks."""

    may: Bools

    def on(self, podgroup: Ids) -> Bools:
        """bool[T]: the same for each of some tasks, given by their podgroups."""
        return np.asarray(self.may[podgroup])


@dataclass(frozen=True)
class BeyondPace:
    """A bound on evictions in a window of time that some victims exceed.

    Attributes
    ----------
    queue
        Row of the queue that it is about, NONE if it is about all of them.
    window_s
        Length of the window, seconds.
    most, used
        How many evictions there may be in the window, and how many there were.
    leaves
        When the next of them leaves the window, seconds; infinite if there was none.
    """

    queue: int
    window_s: float
    most: int
    used: int
    leaves: float


class Protects(Enum):
    """What a plugin protects where it refuses victims; for reports, nothing is decided by it."""

    NOTHING = "nothing"
    PRIORITY = "work that is as important"
    CRITICAL = "what the cluster needs"
    RUNTIME = "work that has just started, for as long as its queue says"
    COOL_DOWN = "tasks that have just started, for as long as they say"
    MINIMA = "minima of podgroups"
    SHARES = "what queues deserve"
    BRANCHES = "what queues deserve, judged where their branches of the tree part"
    DOMINANT_SHARES = "who holds the smaller dominant share"
    BUDGETS = "disruption budgets"
    PACE = "how many tasks are evicted in a time"


class Follows(Enum):
    """What an order depends on that changes as tasks are placed."""

    NOTHING = "nothing"
    SHARE = "share"
    #: Of podgroups: the key is 1 for one that could run now (`rules.minima_met`), else 0.
    READINESS = "readiness"
    SURPLUS = "surplus"


class Plugin:
    """Base of all plugins.

    Attributes of a plugin follow from nodes, queues, vocabulary and policy. What follows from tasks and podgroups is
    read from ``_snapshot`` when the plugin is asked, or kept as a cached property, which `on` forgets. On a what-if
    ``_snapshot`` is made when it is first read, in time proportional to all tasks. A method that is asked after each of
    many victims therefore reads ``_state``, and ``_base`` for columns that no victim changes.

    Attributes
    ----------
    ARGUMENTS
        The arguments that a policy may give.
    SWITCHES
        Names that ``enabled`` may hold, beside extension points.
    counts_evictions
        Whether it counts tasks that are ending, and so must hear of each eviction (`_carry`).
    PROTECTS
        What it protects where it refuses victims.
    ACCEPTS_PARTS
        Whether it accepts every part of a set of victims that it accepts. It does not where evictions make a request
        lawful in the first place, as under a ceiling.
    """

    ARGUMENTS: ClassVar[Mapping[str, Kind]] = {}
    SWITCHES: ClassVar[tuple[str, ...]] = ()
    PROTECTS: ClassVar[Protects] = Protects.NOTHING
    ACCEPTS_PARTS: ClassVar[bool] = True
    _DERIVED: ClassVar[frozenset[str]] = frozenset()

    counts_evictions: bool = False

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._state: State = context.snapshot
        self._now = context.now

    @property
    def _base(self) -> Snapshot:
        """The snapshot under a what-if, for columns that no what-if changes."""
        return self._state.snapshot if isinstance(self._state, WhatIf) else self._state

    @property
    def _snapshot(self) -> Snapshot:
        return self._state.whole if isinstance(self._state, WhatIf) else self._state

    def _queue_of(self, preemptor: Preemptor) -> int:
        return int(self._base.podgroups.queue[preemptor.podgroups[0]])

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # a plugin that answers questions is no Protocol itself
        derived = (name for base in cls.__mro__ for name, one in vars(base).items() if isinstance(one, cached_property))
        cls._DERIVED = frozenset(derived)

    def on(self, state: State, evicted: Rows) -> Self:
        """The plugin on another state of the same nodes and queues: other tasks run, wait or are promised nodes.

        ``evicted`` int64[V] are the tasks that were evicted since.
        """
        twin, kept = object.__new__(type(self)), self.__dict__.copy()
        for name in self._DERIVED:
            kept.pop(name, None)
        twin.__dict__ = kept
        twin._state = state
        if len(evicted):
            twin._carry(evicted)
        return twin

    def _carry(self, evicted: Rows) -> None:
        """Bring counts of tasks that are ending up to date."""
