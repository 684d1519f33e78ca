"""The table of actions: all that a policy may name, and what each one does.

A new action is a file in this folder and a row here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pipeline.actions.allocate import allocate
from pipeline.actions.backfill import backfill
from pipeline.actions.enqueue import enqueue
from pipeline.actions.evict import evict
from pipeline.actions.progress import Progress
from pipeline.actions.stale_gang_eviction import NAME as CLEARING
from pipeline.actions.stale_gang_eviction import next_grace_over, stale_gang_eviction
from pipeline.cluster.snapshot import Snapshot
from pipeline.errors import PolicyRefused
from pipeline.placement.serving_order import QUEUE_DEPTH
from pipeline.plugins.arguments import COUNT, SWITCH, Kind
from pipeline.policy import Policy, Purpose
from pipeline.solvers.registry import BY_PARTS, MOVING


def _never(_snapshot: Snapshot, _policy: Policy, _now: float) -> float | None:
    """The ``due`` of an action that only news can give something to do."""
    return None


@dataclass(frozen=True)
class Action:
    """One action.

    Attributes
    ----------
    name
        As a policy names it.
    purpose
        ALLOCATE places without evicting; CLEAR evicts for no podgroup; the others make room for podgroups that starve.
    run
        What it does to the progress of a cycle.
    due
        When it next has something to do, even without news, after a cycle at the given time; seconds, None: never.
    whole_gangs
        Whether its victims and preemptors are always whole gangs; else the policy says.
    in_turns
        Whether it serves only podgroups that have a turn (``Progress.turns``).
    arguments
        The arguments that a policy may give it.
    """

    name: str
    purpose: Purpose
    run: Callable[[Progress], Progress]
    due: Callable[[Snapshot, Policy, float], float | None] = _never
    whole_gangs: bool = False
    in_turns: bool = False
    arguments: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def makes_room(self) -> bool:
        """Whether it takes room from others for podgroups that starve."""
        return self.purpose not in (Purpose.ALLOCATE, Purpose.CLEAR)


def _evicting(name: str, purpose: Purpose, *, whole_gangs: bool = False, **arguments: Kind) -> Action:
    run, arguments = partial(evict, action=name, purpose=purpose), arguments | {QUEUE_DEPTH: COUNT}
    return Action(name, purpose, run, whole_gangs=whole_gangs, in_turns=True, arguments=arguments)


ACTIONS = (
    Action("enqueue", Purpose.ALLOCATE, enqueue),
    Action("allocate", Purpose.ALLOCATE, allocate, in_turns=True, arguments={QUEUE_DEPTH: COUNT}),
    Action("backfill", Purpose.ALLOCATE, backfill),
    _evicting("consolidation", Purpose.CONSOLIDATE),
    _evicting("preempt", Purpose.PREEMPT, topology_aware=SWITCH, gang_aware=SWITCH),
    _evicting("reclaim", Purpose.RECLAIM, gang_aware=SWITCH),
    _evicting("gangpreempt", Purpose.PREEMPT, whole_gangs=True),
    _evicting("gangreclaim", Purpose.RECLAIM, whole_gangs=True),
    Action(CLEARING, Purpose.CLEAR, stale_gang_eviction, next_grace_over),
)
NAMES = tuple(action.name for action in ACTIONS)
_BY_NAME = {action.name: action for action in ACTIONS}


def actions_of(names: Sequence[str]) -> tuple[Action, ...]:
    """The actions of these names, in this order.

    Raises
    ------
    PolicyRefused
        For a name that is unknown.
    """
    for name in names:
        if name not in _BY_NAME:
            raise PolicyRefused(f"policy.actions: expected some of {', '.join(NAMES)}, found {name!r}")
    return tuple(_BY_NAME[name] for name in names)


def check_solvers(policy: Policy, ceilings: Sequence[str]) -> None:
    """Refuse a solver that moves no tasks for consolidation, and solvers that let victims return beside some plugins.

    Parameters
    ----------
    ceilings
        The names of plugins whose ceilings hold by what goes (`plugins.registry.ceilings`).

    Raises
    ------
    PolicyRefused
        For the first action with such a solver. Consolidation takes no victims: all of them move.
    """
    for action in actions_of(policy.actions):
        if action.purpose is Purpose.CONSOLIDATE and (solver := policy.solver(action.name)) not in MOVING:
            raise PolicyRefused(
                f"policy.solvers.{action.name}: expected a solver that moves tasks, {' or '.join(sorted(MOVING))}, "
                f"found {solver!r}"
            )
        takes = action.purpose in (Purpose.PREEMPT, Purpose.RECLAIM)
        if ceilings and takes and (solver := policy.solver(action.name)) in BY_PARTS:
            raise PolicyRefused(
                f"policy.solvers.{action.name}: expected another solver beside the plugin {ceilings[0]!r}, under whose "
                f"ceilings fewer victims may not be enough, found {solver!r}"
            )
