"""A fault schedule: what goes wrong in one run, where and when, drawn from a seed; the same seed, the same run."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What goes wrong. The first four strike at a step of a role, the others at a turn."""

    KILL = "dies"
    UNREACHABLE = "finds no broker"
    FREEZE = "freezes, and thaws when another has taken over"
    PAUSE = "is slow"
    LOSE_BATCH = "a searcher is lost with its batch"
    LOSE_ANSWERS = "the committer's answers are lost"
    OFFER_AGAIN = "old offers come again"
    HOLD_OFFERS = "offers are on their way for long"
    BEHIND = "news does not reach the role"
    NO_NEWS = "the ingestor is down for a while"
    AWAY = "the fleet's connector is away"
    CONNECTOR_DIES = "the connector dies before it acknowledges"
    DUPLICATE = "events come twice"
    REORDER = "events change places"
    POISON = "an event is poison"
    GAP = "entries are lost while the ingestor is down"
    HOLE = "an entry of the fleet never comes"
    LOSE_NODE = "a node is lost"
    REMOVE_GANG = "a gang is removed"
    LATE_DEATHS = "victims end late"
    LOSE_LIST = "a full list never comes"
    LOSE_REQUEST = "a request for a list never comes"
    POWER_LOSS = "the broker's machine loses its power"
    SAME_MOMENT = "all roles act in the same millisecond"
    CLOCK_JUMP = "the broker's clock jumps"
    HOST_CLOCK = "the clock of a committer's machine jumps"
    COPY = "a copy of the broker is made"
    RESTORE = "the broker becomes an older copy of itself"
    DISK_FULL = "the broker's disk is full"
    DROP_REPLIES = "the broker's answers to a role are dropped"
    REPEAT = "a role asks twice, and the second answer comes"
    DELAY = "the network takes half a second"


#: Every step of a port at which a role can be struck: before it takes effect, or after.
STEPS: dict[str, tuple[str, ...]] = {
    "committer": (
        "commit asked", "commit answered", "record before", "record after", "withdraw before", "withdraw after",
        "recover before", "acquire before", "acquire after", "renew before", "renew after",
    ),
    "dispatcher": ("search before", "commit before", "commit after"),
    "ingestor": (
        "follow events before", "follow decisions before", "read events after", "bury before", "bury after",
        "publish snapshots before", "publish snapshots after", "cover events before", "cover events after",
        "trim events after", "trim decisions before", "trim decisions after", "publish decisions before",
        "publish decisions after", "newest snapshots before",
    ),
}  # fmt: skip
_WEIGHTS = {
    Kind.KILL: 10, Kind.UNREACHABLE: 6, Kind.FREEZE: 6, Kind.PAUSE: 2, Kind.LOSE_BATCH: 2, Kind.LOSE_ANSWERS: 3,
    Kind.OFFER_AGAIN: 3, Kind.HOLD_OFFERS: 3, Kind.BEHIND: 3, Kind.NO_NEWS: 2, Kind.AWAY: 2, Kind.CONNECTOR_DIES: 2,
    Kind.DUPLICATE: 2, Kind.REORDER: 2, Kind.POISON: 2, Kind.GAP: 1, Kind.HOLE: 1, Kind.LOSE_NODE: 1,
    Kind.REMOVE_GANG: 2, Kind.LATE_DEATHS: 2,
}  # fmt: skip
#: What befalls the broker and the way to it, drawn apart, so that a seed without it stays what it was.
_OF_BROKER = {
    Kind.LOSE_LIST: 2, Kind.LOSE_REQUEST: 2, Kind.POWER_LOSS: 4, Kind.SAME_MOMENT: 3, Kind.CLOCK_JUMP: 3,
    Kind.DISK_FULL: 3, Kind.DROP_REPLIES: 4, Kind.REPEAT: 4, Kind.DELAY: 3,
}  # fmt: skip
_ROLES = ("committer", "committer", "ingestor")
#: At most how often the clocks of the roles' machines jump, where that is asked for.
_JUMPS = 3
#: How often a connector notices by itself that the broker is a copy.
_NOTICES = 0.7
#: A commit is where most can go wrong: its steps are drawn so much more often.
_COMMITTER_SHARE = 0.6


#: Of all schedules so many hold a storm, in which what is dangerous together comes together.
_STORMS = 0.3


#: Of a schedule where nothing else is asked for.
TURNS, FAULTS = 24, 7


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Attributes
    ----------
    turn
        From when on.
    role, step
        Where, for what strikes at a step: at its occurrence ``skip`` + 1.
    lasts
        For how many turns, or how many calls.
    """

    kind: Kind
    turn: int
    role: str = ""
    step: str = ""
    skip: int = 0
    lasts: int = 1

    def __str__(self) -> str:
        where = f" [{self.role}: {self.step}, {self.skip} skipped]" if self.step else f" [{self.role}]"
        return f"turn {self.turn}: {self.kind.value}{where if self.role else ''} ({self.lasts})"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that is drawn but the work: faults by turn, how the ingestor is paced, and what fleet it is.

    ``apart`` is the part of gangs whose tasks must lie on different nodes.
    """

    seed: int
    faults: tuple[Fault, ...]
    turns: int
    entries_per_read: int = 100
    checkpoint_every_s: float = 5.0
    racks: int = 2
    apart: float = 0.0

    def at(self, turn: int) -> list[Fault]:
        """The faults that begin at a turn."""
        return [fault for fault in self.faults if fault.turn == turn]


@dataclass(slots=True)
class Outcome:
    """What a run came to: one sentence for each thing that must never be, and how often what was done.

    ``history`` is a digest of all that ever stood in the streams, traces apart: the same seed, the same bytes.
    """

    schedule: Schedule
    broken: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    history: str = ""

    def __str__(self) -> str:
        lines = [f"seed {self.schedule.seed}", *(f"  {fault}" for fault in self.schedule.faults)]
        return "\n".join([*lines, *(f"  BROKEN {sentence}" for sentence in self.broken)])


def drawn(
    seed: int,
    *,
    turns: int = TURNS,
    most: int = FAULTS,
    broker: bool = True,
    hosts: bool = False,
    restored: bool = False,
) -> Schedule:
    """The schedule of a seed: so many turns, and from three to so many faults, not counting a storm's.

    With ``broker`` there are up to half as many besides, which befall the broker and the way to it, and half of the
    fleets are small. With ``hosts`` the clocks of the roles' machines jump as well, and with
    ``restored`` the broker becomes an older copy of itself, once.
    """
    draw, others = random.Random(seed), random.Random(f"{seed} broker")
    faults = [_fault(draw, draw.randrange(1, turns)) for _ in range(draw.randint(3, most))]
    if draw.random() < _STORMS:
        faults += _storm(draw, draw.randrange(2, turns // 2))
    if broker:
        faults += [_of_broker(others, others.randrange(1, turns)) for _ in range(others.randint(0, most // 2))]
    if hosts:
        clocks = random.Random(f"{seed} hosts")
        faults += [
            Fault(
                Kind.HOST_CLOCK,
                clocks.randrange(1, turns),
                clocks.choice(("first", "second")),
                lasts=clocks.randint(1, 4),
            )
            for _ in range(clocks.randint(1, _JUMPS))
        ]
    if restored:
        faults += _restored(random.Random(f"{seed} restored"), turns)
    racks, apart = (others.choice((1, 2)), 0.2) if broker else (2, 0.0)
    return Schedule(
        seed,
        tuple(sorted(faults, key=lambda fault: fault.turn)),
        turns,
        entries_per_read=draw.choice((1, 3, 100)),
        checkpoint_every_s=draw.choice((2.0, 6.0, 1e6)),
        racks=racks,
        apart=apart,
    )


def _restored(draw: random.Random, turns: int) -> list[Fault]:
    """A copy of the broker, and up to nine turns later the broker is that copy; most often the fleet lists again."""
    copied = draw.randrange(2, turns - 4)
    later = draw.randrange(copied + 1, min(turns - 2, copied + 10))
    return [Fault(Kind.COPY, copied), Fault(Kind.RESTORE, later, "fleet" if draw.random() < _NOTICES else "")]


def _storm(draw: random.Random, turn: int) -> list[Fault]:
    """Another committer takes over and hears no news, while offers older than all it knows are on their way."""
    return [
        Fault(Kind.HOLD_OFFERS, turn, lasts=draw.randint(1, 2)),
        Fault(Kind.NO_NEWS, turn + draw.randint(1, 3), lasts=9),
        Fault(Kind.KILL, turn + draw.randint(2, 3), "committer", draw.choice(("commit answered", "renew before"))),
    ]


def _fault(draw: random.Random, turn: int) -> Fault:
    (kind,) = draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    if kind is Kind.BEHIND:
        return Fault(kind, turn, draw.choice(("committer", "dispatcher")), lasts=draw.randint(1, 6))
    if kind not in (Kind.KILL, Kind.UNREACHABLE, Kind.FREEZE, Kind.PAUSE):
        return Fault(kind, turn, lasts=draw.randint(1, 4))
    frozen_or_slow = kind in (Kind.FREEZE, Kind.PAUSE)
    role = (
        "committer" if frozen_or_slow or draw.random() < _COMMITTER_SHARE else draw.choice(("dispatcher", "ingestor"))
    )
    return Fault(
        kind, turn, role, draw.choice(STEPS[role]), skip=draw.choice((0, 0, 0, 1, 2)), lasts=draw.randint(1, 4)
    )


def _of_broker(draw: random.Random, turn: int) -> Fault:
    (kind,) = draw.choices(list(_OF_BROKER), list(_OF_BROKER.values()))
    lasts, role = draw.randint(1, 4), draw.choice(_ROLES)
    if kind is Kind.POWER_LOSS:
        return Fault(kind, turn, role, draw.choice(STEPS[role]), skip=draw.choice((0, 0, 1)), lasts=lasts)
    return Fault(kind, turn, role if kind in (Kind.DROP_REPLIES, Kind.REPEAT) else "", lasts=lasts)
