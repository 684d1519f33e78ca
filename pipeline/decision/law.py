"""Whether victims may be taken: what every solver asks, and the law of statements that make room for no podgroup.

`passes`, `victim_point`, `still_lawful`, `lawful` and `whole_or_none` are the answers of solvers that take whole gangs.
They are here because solvers do not import each other.

Clearing ends what is left of gangs that have fallen below their minimum; consolidation moves tasks so that scattered
room comes together. Both ask the plugins which tasks are protected, as every eviction does.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Rows, distinct
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.headroom import queues_take
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Purpose

#: Why victims may not go that exceed what may end at one time, or be evicted in a window of time.
TOO_FAST = "the policy lets no more tasks be evicted now"
#: Purposes whose statements are judged by ``why_unlawful``; those of other purposes are judged by their solver.
UPKEEP = (Purpose.CONSOLIDATE, Purpose.CLEAR)


def why_not_taken(host: Host, preemptor: Preemptor, victims: Rows, counted: Rows) -> str | None:
    """Why victims may not be taken for a preemptor now, or None. Asked even if nothing changed: quotas span decisions.

    Parameters
    ----------
    victims: int64[V]
        Each must be a candidate.
    counted: int64[K]
        Victims that count as taken; they must be lawful as a set.
    """
    if not host.keeps_pace(victims):
        return TOO_FAST
    if not host.may_go(preemptor, victims).all():
        return "a victim may not be evicted any more"
    if not host.validate_set(preemptor, counted):
        return "the victims are not lawful together any more"
    if preemptor.purpose is Purpose.RECLAIM and not host.preemptive(preemptor):
        return "the queue may not take more"
    return None


def passes(_purpose: Purpose) -> tuple[bool, ...]:
    """`Solver.passes` of solvers that take whole gangs: always one pass, for a gang never takes from itself."""
    return (False,)


def victim_point(_purpose: Purpose) -> ExtensionPoint:
    """`Solver.victim_point` of solvers that take whole gangs: for every purpose plugins are asked about gangs."""
    return ExtensionPoint.EVICTABLE


def still_lawful(host: Host, preemptor: Preemptor, made: Statement, _unchanged: bool) -> str | None:
    """`Solver.still_lawful` of solvers that take whole gangs."""
    return why_not_taken(host, preemptor, made.evictions, made.evictions)


def lawful(host: Host, preemptor: Preemptor, victims: Rows) -> bool:
    """`Solver.lawful` of solvers that take whole gangs: whether all plugins agree to the victims as a set."""
    return host.validate_set(preemptor, victims)


def whole_or_none(snapshot: Snapshot, podgroups: Rows, victims: Rows) -> Bools:
    """`Solver.whole_or_none` where gangs that are broken anyway go task by task: those that the victims break."""
    return breaks_without(snapshot, podgroups, victims)


def why_unlawful(host: Host, made: Statement) -> str | None:
    """Why the victims of a statement that clears or consolidates may not be taken, or None."""
    snapshot = host.context.snapshot
    nothing = np.zeros(len(snapshot.vocabulary.resources), np.int64)
    none = Preemptor((), nothing, made.purpose)
    refused = why_not_taken(host, none, made.evictions, made.evictions)
    if refused is not None:
        return refused
    if made.purpose is Purpose.CLEAR:
        owners = distinct(snapshot.tasks.podgroup[made.evictions]).tolist()
        whole = any(has_minimum(snapshot, podgroup) for podgroup in owners)
        return "a gang has its minimum again" if whole else None
    if len(made.moved) < len(made.evictions):
        return "a task would be left without a place"
    return None if queues_take(host, made.placed) else "the queue may not take more"
