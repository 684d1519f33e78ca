"""Evict: every starving podgroup takes the room that it needs from others, in the policy's order.

Preempt takes from work of lower priority in the same queue, reclaim from queues that use more than they deserve
("Gang-Aware Preemption and Reclaim", sections 3.5.2 and 3.5.3). The policy says whether they take whole gangs or single
tasks.

Searching in parallel is speculation on the serial order: the next gang groups are searched for at once on the snapshot
as it is, and an outcome counts only if no plan was taken before its turn came; otherwise it is searched for again. So
the decisions are those of serving one gang group after the other, each on what those before it left.

Gang groups of one kind that follow each other share one search: for room (`evicting`), or why there is none. So do a
few of one rank in a small fleet, which ask for different things. A few in a small fleet are also served one after the
other, and that counts if less is lost in sum. A few that need a domain each are tried in other orders there.
"""

from itertools import islice

from pipeline.actions.evicting.at_once import served_at_once
from pipeline.actions.evicting.one_kind import as_one, of_another, of_one_kind
from pipeline.actions.evicting.one_pass import KindAndClosed, Pass
from pipeline.actions.progress import Progress
from pipeline.actions.searching import Outcome
from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import Plan
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.registry import solver_of

#: Reasons that say something of a podgroup itself, and not of all podgroups of its kind.
_OWN = (Reason.NOTHING_MISSING, Reason.DELAY)


def evict(progress: Progress, action: str, purpose: Purpose) -> Progress:
    """Serve every starving podgroup in each of the action's passes, in order."""
    for within_podgroup in solver_of(progress.policy, action).passes(purpose):
        if not progress.stopped:
            progress = _run(Pass(progress, action, purpose, within_podgroup=within_podgroup))
    return progress


def _run(this: Pass) -> Progress:
    """Serve one gang group after the other; those at once that are alike and need all of their tasks."""
    at = 0
    while at < len(this.gang_groups) and not this.progress.stopped:
        at += served_at_once(this, at, _run) or _served(this, at)
    return this.progress


def _served(this: Pass, at: int) -> int:
    """Serve one gang group."""
    gang_group, key = this.gang_groups[at], this.key(at)
    other = this.known.unplaced.get(key)  # of its kind, that found no room on the same state
    outcome = _outcome(this, at) if other is None else of_another(other, this.progress.snapshot, gang_group[0])
    if outcome is None:
        return this.lost()
    if isinstance(outcome, Plan):
        back = this.progress.retaken_by(outcome)
        if len(back):
            this.progress = replace(this.progress, retaken=back, taker=gang_group[0])
            return 1
        this.take_in_turn(outcome, at)
        this.give_turns_to_losers(at, outcome)
    else:
        this.progress = this.progress.without_plan(gang_group, this.action, outcome)
        if key is not None and outcome.explanation.reason not in _OWN:
            this.known.unplaced[key] = this.progress.unplaced[-1].found
    return 1


def _outcome(this: Pass, at: int) -> Outcome:
    """The outcome of the search for a gang group on the snapshot as it is by now."""
    shared = _shared_victims(this, at)
    if shared is None:
        return None
    if len(shared):
        found = this.search(replace(this.attempt(at), among=shared))
        if found is None or isinstance(found, Plan):
            return found
    if at not in this.known.ahead:
        _look_ahead(this, at)
    return this.known.found[at] if at in this.known.found else this.search(this.attempt(at))


def _shared_victims(this: Pass, at: int) -> Rows | None:
    """int64[K]: victims that make room for this gang group and those of its kind; none if it is served alone.

    None if the search for them was lost.
    """
    gang_group = this.gang_groups[at]
    if this.is_last(at):
        this.victims.setdefault(gang_group, NO_ROWS)
    if gang_group not in this.victims:
        some = of_one_kind(this.progress.snapshot, this.following(at) if this.progress.policy.cheapest_set else ())
        victims = NO_ROWS
        if len(some) > 1:
            found = this.search(as_one(some, this.attempt(at)))
            if found is None:
                return None
            victims = found.statement.evictions if isinstance(found, Plan) else victims
        this.victims.update(dict.fromkeys(some or [gang_group], victims))
    return this.victims[gang_group]


def _look_ahead(this: Pass, at: int) -> None:
    """Search for the next gang groups on one snapshot at once: those with the same closed nodes, one of a kind."""
    known = this.known
    window, known.window = list(islice(this.as_open(at), known.window)), min(known.window * 2, len(this.gang_groups))
    first: dict[KindAndClosed | int, int] = {}
    for one in window:
        first.setdefault(this.key(one) or one, one)
    ahead = list(first.values())
    known.ahead.update(window)
    if len(ahead) > 1:
        attempts = [this.attempt(one) for one in ahead]
        found = this.progress.setup.search.ahead(attempts, this.host_of(attempts[0]))
        known.found.update(zip(ahead, found, strict=False))
