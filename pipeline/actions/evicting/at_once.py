"""The next gang groups of a pass, served at once if they are alike and all of their tasks wait.

Where podgroups of several kinds take turns, they are served kind by kind if each of them gets a plan in that way.

In small fleets a few of one rank, which ask for different things, are enough, if the policy takes the cheapest set. A
few are also served one after the other there, and that counts if less is lost in sum.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import islice, takewhile

import numpy as np

from pipeline.actions.evicting.dealing import can_be_dealt, dealt_plans
from pipeline.actions.evicting.lawful_in_turn import leading_plans
from pipeline.actions.evicting.one_kind import (
    MOST_RANKED,
    as_one,
    by_kind,
    rigid_apart,
    rigid_of_one_rank,
    waiting_of_few_kinds,
    waiting_of_one_kind,
)
from pipeline.actions.evicting.one_pass import Leading, Pass
from pipeline.actions.evicting.other_orders import cheapest_in_sum
from pipeline.actions.evicting.search_cache import SearchCache
from pipeline.actions.progress import Planned, Progress
from pipeline.cluster.arrays import mask_of
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import Price
from pipeline.placement.kinds import kinds_in_turn, podgroup_kind
from pipeline.placement.serving_order import in_serving_order
from pipeline.solvers.registry import BY_PARTS, DEALING

#: Only in fleets of at most this many nodes are gang groups of one rank served at once, and is that compared with one
#: after the other: larger ones suffice for each.
_RANKED_NODES = 256
#: Where one of some podgroups gets no plan kind by kind, the first of these parts of them are tried. Where there are
#: few of each kind, it is asked again this many turns later.
_PARTS, _LATER = 4, 32


def served_at_once(this: Pass, at: int, run: Callable[[Pass], Progress]) -> int:
    """Serve gang groups from a position on at once; how many, 0 if that is not possible.

    Parameters
    ----------
    run
        Serves all gang groups of a pass.
    """
    if this.is_last(at):
        return 0
    ranked = (_served(this, rigid_of_one_rank, at, run) or _in_other_orders(this, at)) if _tries_both(this) else 0
    return ranked or _kind_by_kind(this, at) or _served(this, waiting_of_one_kind, at, run)


def _tries_both(this: Pass) -> bool:
    """Whether two ways of serving a few gang groups are both tried, and the cheaper one counts."""
    return this.progress.policy.cheapest_set and len(this.progress.snapshot.nodes) <= _RANKED_NODES


def _may_cost_less_in_turn(found: Sequence[Plan], of_one: Leading) -> bool:
    """Whether plans found at once are few and evict; of podgroups alike gangs only: a single task breaks little."""
    if not 1 < len(found) <= MOST_RANKED or (of_one is waiting_of_one_kind and len(found[0].statement.placed) == 1):
        return False
    return any(len(plan.statement.evictions) for plan in found)


def _served(this: Pass, of_one: Leading, at: int, run: Callable[[Pass], Progress]) -> int:
    """Serve the leading ones that have something in common at once; how many. No more are tried from then on."""
    some = _leading(this, of_one, at)
    most = _most_at_once(this, some, at)
    if most is None:
        return this.lost()
    found, limit = most
    served = [Planned(plan, one) for plan, one in zip(found, some, strict=False)]
    if _comes_again_first(this, served):
        found, served, limit = [], [], 1
    if _tries_both(this) and _may_cost_less_in_turn(found, of_one):
        cheaper = _cheaper(this, of_one, served, some, at, run)
        if cheaper is None:
            return this.lost()
        served, limit = cheaper, limit if cheaper else 1
    if limit is not None:
        this.together[of_one] = limit
    if served:
        this.take_together(served, at)
    return len(served)


def _comes_again_first(this: Pass, found: Sequence[Planned]) -> bool:
    """Whether the first gang group asks for more, and has another turn before others that get plans with it."""
    if not found[1:] or (first := found[0]).gang_group is None:
        return False
    rows = list(first.gang_group)
    if len(first.plan.statement.placed) == this.progress.snapshot.counts.pending[rows].sum():
        return False
    tried = copy(this)
    tried.take(found[:1])
    if not tried.host.starving[rows].all():
        return False
    every = mask_of([row for one in found for row in one.gang_group or ()], len(tried.host.starving))
    return list(in_serving_order(tried.host, every, evicting=True))[-1] != first.gang_group


def _kind_by_kind(this: Pass, at: int) -> int:
    """Serve the next gang groups of one rank, all of one kind at once; how many.

    Nothing is done unless each of them gets a plan, since a kind would take room before gang groups that come first.
    """
    if at < this.kinds_asked:
        return 0
    some = _leading(this, waiting_of_few_kinds, at)
    while some:
        found = _plans_by_kind(this, some, at)
        if found and _comes_again_first(this, sorted(found, key=lambda one: one.gang_group != some[0])):
            break
        if found:
            this.take_together(found, at)
            return len(found)
        alone = None if found is None else this.alone(at)
        if alone is None:
            return this.lost()
        this.together[waiting_of_few_kinds] = max(len(some) // _PARTS, 1)
        some = _leading(this, waiting_of_few_kinds, at) if isinstance(alone, Plan) else []
    this.kinds_asked = at + _LATER
    return 0


def _plans_by_kind(this: Pass, some: list[GangGroup], at: int) -> list[Planned] | None:
    """A plan for each of some gang groups, kind by kind; none if one gets none; None if a search was lost."""
    tried, found = copy(this), list[Planned]()
    tried.narrow(some, at, waiting_of_few_kinds)
    for mine in by_kind(this.progress.snapshot, some):
        plans = _room_for(tried, mine, 0)
        if plans is None:
            return None
        if len(plans) < len(mine):
            return []
        served = [Planned(plan, one) for plan, one in zip(plans, mine, strict=True)]
        tried.take(served)
        found += served
    return found


def _most_at_once(this: Pass, some: Sequence[GangGroup], at: int) -> tuple[list[Plan], int | None] | None:
    """Plans for as many leading gang groups as have room together, and how many that is; None if a search was lost.

    If there is no room for all of them, then for half of them, and so on, unless there is none for the first alone.
    Where the cheapest set goes, as many as there is room for are found by bisection; else the rest has a turn of its
    own. The number is None if all were served.
    """
    found, least, most, many = list[Plan](), 1, len(some) + 1, len(some)
    while most - least > 1:
        plans = _room_for(this, some[:many], at)
        if plans is None:
            return None
        if not plans and many == len(some) and not isinstance(alone := this.alone(at), Plan):
            return None if alone is None else ([], 1)
        found = max(found, plans, key=len)
        if found and not this.progress.policy.cheapest_set:
            least = many
            break
        least, most = (many, most) if len(plans) == many else (least, many)
        many = (least + most) // 2
    return found, least if most <= len(some) else None


def _leading(this: Pass, of_one: Leading, at: int) -> list[GangGroup]:
    """The next gang groups that can be served at once: at most as many as had room together last time."""
    snapshot, policy, first = this.progress.snapshot, this.progress.policy, this.gang_groups[at]
    dealing, together = DEALING.get(policy.solver(this.action)), this.together[of_one]
    most = 0 if dealing is None or together == 1 else dealing.widest_dealt(policy)
    kind = podgroup_kind(snapshot, first)
    if kind is None or kind.minimum > most or this.key(at) in this.known.unplaced:
        return []
    following: Iterable[GangGroup] = islice(this.following(at), together)
    if of_one is waiting_of_few_kinds:
        known = takewhile(lambda each: each[1] is None or each[1].minimum <= most, kinds_in_turn(snapshot, following))
        following = (one for one, _ in known)
    some = of_one(snapshot, following)
    if this.known.unplaced:  # what has no room alone has none with others
        hopeless = (n for n in range(len(some)) if this.key(at + n) in this.known.unplaced)
        some = some[: next(hopeless, len(some))]
    return some if some and can_be_dealt(snapshot, some) else []


def _room_for(this: Pass, some: Sequence[GangGroup], at: int) -> list[Plan] | None:
    """Plans for gang groups, in turn; none without room for all, None if the search for that was lost."""
    attempt = as_one(some, this.attempt(at))
    found = this.search(attempt)
    if found is None:
        return None
    if isinstance(found, NoPlan) or len(this.progress.retaken_by(found)):
        return []
    plans = dealt_plans(attempt, this.host_of(attempt), found)
    by_parts = this.progress.policy.solver(this.action) in BY_PARTS
    return list(leading_plans(this.progress.snapshot, this.host, plans) if by_parts else plans)


def _cheaper(
    this: Pass, of_one: Leading, found: list[Planned], some: list[GangGroup], at: int, run: Callable[[Pass], Progress]
) -> list[Planned] | None:
    """The plans that were found at once for the leading gang groups, or those that they get one after the other.

    These if they cost less. No plans if another gang group gets one in that way; None if a search was lost.
    """
    tried, before = copy(this), len(this.progress.planned)
    tried.narrow(some[: len(found)] if of_one is waiting_of_one_kind else some, at, of_one)
    done = run(tried)
    others, leading = list(done.planned[before:]), some[: len(found)]
    if done.lost or not {one.gang_group for one in others} <= set(leading):
        return None if done.lost else []
    same = [one.gang_group for one in others] == leading
    return others if same and _in_sum(this, others) < _in_sum(this, found) else found


def _in_sum(this: Pass, served: Sequence[Planned]) -> Price:
    """The price of all victims of some plans, in units of all that they place."""
    plans = [one.plan for one in served]
    placed = np.concatenate([plan.statement.placed for plan in plans])
    return this.in_sum(plans, this.progress.snapshot.request_of(placed).sum(axis=0))


def _in_other_orders(this: Pass, at: int) -> int:
    """Serve the next gangs that each need a domain, in the order in which they lose least in sum; how many.

    They are served up to one that is left out. The next one after it keeps its plan, which holds if none is found for
    the one that was left out; no more than come before that one are tried at once from then on.
    """
    some = [] if at in this.known.found else _leading(this, rigid_apart, at)
    if not some:
        return 0
    searches = SearchCache(this, at, some)
    plans = cheapest_in_sum(searches)
    if searches.lost:
        return this.lost()
    many = next(position for position in range(len(some) + 1) if position not in plans)
    if many == 0:
        this.known.ahead.add(at)
        this.known.found[at] = searches.first
        return 0
    if many < len(plans):
        this.together[rigid_apart] = many
    this.take([Planned(plans[position], some[position]) for position in range(many)])
    this.known.found.update((at + position, plan) for position, plan in plans.items() if position == many + 1)
    return many
