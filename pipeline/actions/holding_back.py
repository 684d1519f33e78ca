"""Starts that are held back: what others would take at once does not start first.

A podgroup that finds no room in ``allocate`` may take, later in the same cycle, what a less important one was given
there. KAI Scheduler starts that one and evicts it again. Here it does not start: the cycle begins anew without it.
"""

from collections.abc import Callable
from dataclasses import replace

from pipeline.actions.progress import Progress


def without_retaken(run: Callable[[Progress], Progress], fresh: Progress) -> Progress:
    """What comes of the actions with every start held back that a later one of them would take.

    Where that serves nobody better, because the one that would have taken it gets nothing then, nothing is held back
    and nothing that starts is taken. What starts where it was promised room before is never taken.
    """
    if not fresh.policy.takes_back_starts:
        return run(fresh)
    held, takers = fresh.held, set[int]()
    done = run(replace(fresh, takes_back=True))
    while len(done.retaken):
        held |= set(fresh.snapshot.tasks.podgroup[done.retaken].tolist())
        takers.add(done.taker)
        done = run(replace(fresh, takes_back=True, held=held))
    if takers <= {made.preemptor for made in done.statements}:
        return done
    return run(fresh)
