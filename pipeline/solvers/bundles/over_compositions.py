"""Which of several ways to make up the minimum of a gang are searched for."""

from collections.abc import Callable

import numpy as np

from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.placement.compositions import asks_less
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import Need
from pipeline.plugins.host import Host


def over_compositions(
    attempt: Attempt, host: Host, needs: list[Need], search: Callable[[Attempt, Host, Need], Plan | NoPlan]
) -> list[Plan | NoPlan]:
    """The outcomes of several ways to make up the minimum, less those that cannot be expected to cost less than others.

    What asks for less costs no more. So a way that asks for more than one with a plan, whose leading level no plan can
    better, is looked at only if the victims of that plan make room for it too.
    """
    snapshot, policy, found = attempt.snapshot, attempt.policy, dict[int, Plan | NoPlan]()
    below = [[at for at, less in enumerate(needs) if asks_less(snapshot, less, need, host.allowed)] for need in needs]
    for at in sorted(range(len(needs)), key=lambda at: len(below[at])):
        plans = [one for less in below[at] if isinstance(one := found.get(less), Plan) and _leads(one)]
        if policy.first_fit or policy.max_domains or all(_makes_room(attempt, host, plan, needs[at]) for plan in plans):
            found[at] = search(attempt, host, needs[at])
    return [found[at] for at in sorted(found)]


def _leads(plan: Plan) -> bool:
    """Whether no plan for its need has a lower leading level."""
    price, bound = plan.price, plan.explanation.bound
    level, least = ([one for one, _ in broken[:1]] for broken in (price.broken, bound.broken if bound else ()))
    return bound is not None and (price.queue_rank, level) == (bound.queue_rank, least)


def _makes_room(attempt: Attempt, host: Host, plan: Plan, need: Need) -> bool:
    """Whether the victims of a plan make room for another need in its domain."""
    snapshot, victims = attempt.snapshot, plan.statement.evictions
    first, last = snapshot.topology.slice_of(plan.domain)
    node = snapshot.tasks.node[victims].astype(np.int64) - first
    here, room = (node >= 0) & (node < last - first), snapshot.room.future[first:last].copy()
    snapshot.add_requests(victims[here], room, node[here])
    return Packings(need, host.allowed(need.shapes), snapshot).on(first, last).places(room, victims) is not None
