"""Which of several ways to make up the minimum of a gang are searched for."""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.cluster.arrays import Rows
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import LowerBound
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import NO_PRIORITY, Price
from pipeline.placement.compositions import asks_less
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import Need
from pipeline.plugins.host import Host
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.lower_bounds import bounds_with_levels, least_of_all


def over_compositions(
    attempt: Attempt, host: Host, needs: list[Need],
    search: Callable[[Attempt, Host, Need, Sequence[Plan]], Plan | NoPlan],
) -> list[Plan | NoPlan]:  # fmt: skip
    """The outcomes of several ways to make up the minimum, less those that cannot be expected to cost less than others.

    What asks for less costs no more. So a way that asks for more than one with a plan, whose leading level no plan can
    better, is looked at only if the victims of that plan make room for it too. ``search`` is given the plans so far.
    """
    snapshot, policy, found = attempt.snapshot, attempt.policy, dict[int, Plan | NoPlan]()
    below = [[at for at, less in enumerate(needs) if asks_less(snapshot, less, need, host.allowed)] for need in needs]
    for at in sorted(range(len(needs)), key=lambda at: len(below[at])):
        plans = [one for less in below[at] if isinstance(one := found.get(less), Plan) and _leads(one)]
        if policy.first_fit or policy.max_domains or all(_makes_room(attempt, host, plan, needs[at]) for plan in plans):
            found[at] = search(attempt, host, needs[at], [one for one in found.values() if isinstance(one, Plan)])
    return [found[at] for at in sorted(found)]


def _leads(plan: Plan) -> bool:
    """Whether no plan for its need has a lower leading level."""
    least = plan.explanation.lower_bound
    return least is not None and _leading(plan.price) == _leading(least)


def _leading(one: Price | LowerBound) -> tuple[int, int]:
    """What a price begins with: the rank of a queue, and the highest level that loses podgroups."""
    return one.queue_rank, one.broken[0][0] if one.broken else NO_PRIORITY


def costs_more(search: BundleSearch, domains: Rows, plans: Sequence[Plan]) -> bool:
    """Whether no plan leads with as little as some plan for another way to make up the minimum does.

    Works of several ways are in units of what each asks for; what a price leads with has no unit.
    """
    least = least_of_all(bounds_with_levels(search, domains, heads_only=True)[0], search) if plans else None
    return least is not None and any(_leading(least) > _leading(plan.price) for plan in plans)


def _makes_room(attempt: Attempt, host: Host, plan: Plan, need: Need) -> bool:
    """Whether the victims of a plan make room for another need in its domain."""
    snapshot, victims = attempt.snapshot, plan.statement.evictions
    first, last = snapshot.topology.slice_of(plan.domain)
    node = snapshot.tasks.node[victims].astype(np.int64) - first
    here, room = (node >= 0) & (node < last - first), snapshot.room.future[first:last].copy()
    snapshot.add_requests(victims[here], room, node[here])
    return Packings(need, host.allowed(need.shapes), snapshot).on(first, last).places(room, victims) is not None
