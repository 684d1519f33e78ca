"""Starts that are held back: a task that another podgroup would evict in the same cycle does not start first.

A podgroup that finds no room in ``allocate`` may take, later in the same cycle, the room that a podgroup of lower
priority was given there. KAI Scheduler starts that one and evicts it again. Here it does not start: the cycle begins
anew without it. The same holds for a podgroup for which one action evicts and whose room a later action takes
(`undone`).
"""

from collections.abc import Callable

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NONE, Ids
from pipeline.cluster.rules.gang_groups import starting_with
from pipeline.records import replace


def without_retaken(run: Callable[[Progress], Progress], fresh: Progress) -> Progress:
    """The outcome of the actions, with every start held back that a later action would take.

    If the podgroup that would have taken the room gets nothing then, what starts elsewhere than at first is held back
    as well. If it still gets nothing, nothing is held back, and no start is taken. A task that starts on promised room
    is never taken. Podgroups are held back with all that start only with them. Each turn holds back a podgroup more, so
    there is a last one; if an action started what is held back all the same, nothing would be held back.
    """
    if not fresh.policy.takes_back_starts:
        return run(fresh)
    owner, held, takers = fresh.snapshot.tasks.podgroup, fresh.held, set[int]()
    done = first = run(replace(fresh, takes_back=True))
    while not held.issuperset(more := _to_hold_back(owner, done, first, takers)):
        held |= starting_with(fresh.snapshot, more)
        takers |= {done.taker} - {NONE}
        done = run(replace(fresh, takes_back=True, held=held))
    if len(done.retaken) == 0 and _serves(done, takers):
        return done
    return run(fresh)


def _to_hold_back(owner: Ids, done: Progress, first: Progress, takers: set[int]) -> list[int]:
    """The podgroups of what was taken again; if a taker gets nothing then, of what starts elsewhere than at first."""
    if len(done.retaken) or _serves(done, takers):
        return list(owner[done.retaken].tolist())
    return [int(owner[row]) for row, _ in sorted(_starts(done) - _starts(first))]


def _starts(done: Progress) -> set[tuple[int, int]]:
    """Tasks that start, each with its node."""
    return {
        pair
        for made in done.statements
        for pair in zip(made.bound.tolist(), made.bound_node.tolist(), strict=True)
    }  # fmt: skip


def _serves(done: Progress, takers: set[int]) -> bool:
    """Whether all of some podgroups are served."""
    return takers <= {made.preemptor for made in done.statements}
