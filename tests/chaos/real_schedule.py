"""What goes wrong in one run, drawn from a seed: the same seed, the same faults in the same order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

ROLES = ("ingestor", "dispatcher", "searcher", "committer")


class Moment(StrEnum):
    """When a fault strikes, counted from the arrival of the gang that it is meant to hit."""

    RANDOM = "after a while"
    RECORDED = "as the next decision appears in the broker"
    SAVED = "as the next checkpoint appears in the broker"
    OFFERED = "with commands held in the broker, which takes them once the fault has struck"


class Kind(StrEnum):
    """What goes wrong."""

    KILL = "kill a worker process"
    FREEZE = "freeze a worker process, then thaw it"
    PAUSE_BROKER = "freeze the broker, then thaw it"
    PAUSE_CLIENTS = "the broker keeps every client waiting for longer than a lease"
    KILL_BROKER = "kill the broker; another starts on its append-only log"
    LOSE_POWER = "the broker's machine loses its power: what no sync has put on the disk is gone"
    CUT = "every connection to the broker is cut, again and again"
    RIVAL = "somebody else takes the lease while the committer is frozen, and gives it back"
    DUPLICATE = "events come twice"
    REORDER = "events change places"
    DELAY = "events come late"
    POISON = "what cannot be read stands between the events"
    LOSE_NODE = "the fleet loses a node"
    FREEZE_RAYLET = "freeze the raylet under the committer until Ray has started a second one, then thaw it"
    KILL_RAYLET = "lose the raylet under a worker, and all its others"
    KILL_LEADER = "kill every process of the service that leads; its standby takes over"
    FREEZE_LEADER = "freeze every process of the service that leads until its standby decides, then thaw it"
    STOP_LEADER = "tell the service that leads to stop; its standby takes over"


class Standby(StrEnum):
    """Where a second service waits."""

    NONE = "none"
    OWN_RAY = "on a Ray of its own"
    SAME_RAY = "on the leader's Ray"


#: How often each is drawn; raylets are a choice of the whole schedule.
_WEIGHTS = {
    Kind.KILL: 8, Kind.FREEZE: 4, Kind.PAUSE_BROKER: 2, Kind.PAUSE_CLIENTS: 2, Kind.KILL_BROKER: 2, Kind.CUT: 2,
    Kind.LOSE_POWER: 3, Kind.RIVAL: 3, Kind.DUPLICATE: 2, Kind.REORDER: 2, Kind.DELAY: 2, Kind.POISON: 1,
    Kind.LOSE_NODE: 1,
}  # fmt: skip
_RAYLET_KINDS = (Kind.FREEZE_RAYLET, Kind.KILL_RAYLET)
#: A committer that hears nothing for 3 s gives its lease back (twice its length here, and a second).
_FROZEN_S = 4.0
#: Some victims take longer than this to end.
_SHORT_DEADLINE_S = 1.0
#: Of so many seeds in a row one is about raylets, one about a standby, and in one the power is lost again and again.
RAYLETS_EVERY = 10
_STANDBY_AT, _POWER_AT = 5, 8
_LOSSES = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Attributes
    ----------
    role
        Whose process; empty where no role is meant.
    after_s, for_s
        How long after the gang's arrival, where the moment is random, and for how long, where it passes.
    """

    kind: Kind
    role: str = ""
    moment: Moment = Moment.RANDOM
    after_s: float = 0.0
    for_s: float = 0.0

    def __str__(self) -> str:
        whose = f" ({self.role})" if self.role else ""
        when = f"{self.after_s:.2f} s after the arrival" if self.moment is Moment.RANDOM else self.moment.value
        return f"{self.kind.value}{whose}, {when}" + (f", for {self.for_s:.2f} s" if self.for_s else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything about a run that is drawn; ``raylets`` beside the head's, ``deadline_s`` of victims."""

    seed: int
    faults: tuple[Fault, ...]
    raylets: int = 0
    deadline_s: float = 120.0
    standby: Standby = Standby.NONE


def drawn(seed: int) -> Schedule:
    """The schedule of a seed."""
    draw = random.Random(seed)
    if seed % RAYLETS_EVERY == 0:
        kind = _RAYLET_KINDS[seed // RAYLETS_EVERY % len(_RAYLET_KINDS)]
        role = "committer" if kind is Kind.FREEZE_RAYLET else draw.choice(ROLES)
        return Schedule(seed, (Fault(kind, role, after_s=draw.uniform(0.0, 0.2)), _fault(draw)), raylets=2)
    if seed % RAYLETS_EVERY == _STANDBY_AT:
        return _of_standby(seed, draw)
    if seed % RAYLETS_EVERY == _POWER_AT:
        return Schedule(seed, tuple(_power_loss(draw) for _ in range(_LOSSES)))
    faults = tuple(_fault(draw) for _ in range(draw.randint(3, 4)))
    return Schedule(seed, faults, deadline_s=draw.choice((_SHORT_DEADLINE_S, 120.0, 120.0)))


def _of_standby(seed: int, draw: random.Random) -> Schedule:
    """The leader is killed, then frozen or stopped; something else goes wrong between."""
    turn = seed // RAYLETS_EVERY
    standby = (Standby.OWN_RAY, Standby.SAME_RAY)[turn % 2]
    second = (Kind.FREEZE_LEADER, Kind.STOP_LEADER)[turn // 2 % 2]
    between = _fault(draw)
    while between.kind is Kind.RIVAL:  # the standby is one
        between = _fault(draw)
    moments = draw.choices((Moment.RANDOM, Moment.RECORDED), k=2)
    first = Fault(Kind.KILL_LEADER, "", moments[0], draw.uniform(0.0, 0.6))
    last = Fault(second, "", moments[1], draw.uniform(0.0, 0.6), draw.uniform(0.5, 2.0))
    return Schedule(seed, (first, between, last), standby=standby)


def _power_loss(draw: random.Random) -> Fault:
    moment = draw.choice((Moment.RANDOM, Moment.RECORDED))
    return Fault(Kind.LOSE_POWER, "", moment, draw.uniform(0.0, 0.6), draw.uniform(0.1, 2.0))


def _fault(draw: random.Random) -> Fault:
    (kind,) = draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    after_s = draw.uniform(0.0, 0.6)
    if kind is Kind.KILL:
        role = draw.choice(ROLES)
        moments = [one for one in Moment if one is not Moment.SAVED or role == "ingestor"]
        return Fault(kind, role, draw.choice(moments), after_s)
    if kind is Kind.FREEZE:
        role = draw.choice(("searcher", "committer", *ROLES))
        return Fault(kind, role, draw.choice((Moment.RANDOM, Moment.RECORDED)), after_s, draw.uniform(0.3, _FROZEN_S))
    if kind in (Kind.PAUSE_BROKER, Kind.KILL_BROKER, Kind.LOSE_POWER):
        return Fault(kind, "", draw.choice((Moment.RANDOM, Moment.RECORDED)), after_s, draw.uniform(0.1, 2.0))
    if kind is Kind.PAUSE_CLIENTS:
        return Fault(kind, "", Moment.RANDOM, after_s, draw.uniform(1.1, 2.0))
    if kind is Kind.RIVAL:
        return Fault(kind, "committer", draw.choice((Moment.RANDOM, Moment.RECORDED)), after_s, draw.uniform(0.2, 1.0))
    if kind is Kind.LOSE_NODE:
        return Fault(kind, "", Moment.RANDOM, after_s)
    return Fault(kind, "", Moment.RANDOM, 0.0, draw.uniform(0.5, 2.0))
