"""A plan: a statement, its assumptions, its price and its explanation. ``propose`` answers Plan or NoPlan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, Rows, sealed
from pipeline.cluster.orders import unique_counts
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation, Reason, VictimBundle, victim_bundles
from pipeline.decision.price import NO_VICTIMS, Price, lost_work, price_of
from pipeline.decision.statement import Statement, statement
from pipeline.keeping import cached_property
from pipeline.kernels import kernel
from pipeline.plugins.host import Host
from pipeline.records import replace


@dataclass(frozen=True)
class Assumptions:
    """What must still hold when the plan is judged.

    Attributes
    ----------
    epoch, revision
        Epoch and revision of the snapshot on which it was made; rows are those of the epoch.
    incarnation: int64[V]
        Incarnations of the victims, in the order of the statement's evictions.
    promised: int32[P]
        Where its nominated tasks were promised a node already, in the order of the statement's nominations.
    nodes: int64[M]
        Node rows that the plan touches, ascending.
    node_revision: int64[M]
    policy
        Digest of the policy.
    """

    epoch: int
    revision: int
    incarnation: Longs
    promised: Ids
    nodes: Rows
    node_revision: Longs
    policy: str


@dataclass(frozen=True)
class Plan:
    """A way to make room for one preemptor.

    Attributes
    ----------
    statement, assumes, explanation
        What it does, what it assumes, and why it is as it is.
    price
        What it costs.
    expires_at
        Seconds on the caller's clock after which it must not be committed.
    """

    statement: Statement
    assumes: Assumptions
    price: Price
    expires_at: float
    explanation: Explanation

    @property
    def domain(self) -> int:
        """Row of the domain in which it places the preemptor."""
        return self.price.domain


@dataclass(frozen=True)
class NoPlan:
    """There is no plan; the explanation says why.

    Attributes
    ----------
    explanation
        Without what stands in the way where ``in_full`` has to find that.
    explain
        Finds the whole explanation; None if it is whole. It keeps the state that was searched.
    """

    explanation: Explanation
    explain: Callable[[], Explanation] | None = None

    @cached_property
    def in_full(self) -> Explanation:
        """The explanation with what stands in the way."""
        return self.explanation if self.explain is None else self.explain()


def plan_of(attempt: Attempt, made: Statement, price: Price, why: Explanation) -> Plan:
    """The plan of a statement that was found for an attempt."""
    return Plan(made, assumptions(attempt, made), price, attempt.now + attempt.policy.plan_ttl_s, why)


Found = TypeVar("Found", Plan, NoPlan, Plan | NoPlan)


def unproved(outcome: Found) -> Found:
    """The outcome without a lower bound: that holds for one need on one snapshot, and others were looked at as well."""
    why = outcome.explanation
    return outcome if why.lower_bound is None else replace(outcome, explanation=replace(why, lower_bound=None))


def making_room(attempt: Attempt, evictions: Rows, rows: Rows, nodes: Rows, cards: Rows) -> Statement:
    """The statement that evicts, and promises the tasks ``rows`` their nodes and cards, for an attempt's preemptor."""
    return statement(
        attempt.action, attempt.podgroups[0], purpose=attempt.purpose, evictions=evictions, nominated=rows,
        nominated_node=nodes, nominated_card=cards,
    )  # fmt: skip


def assumptions(attempt: Attempt, made: Statement) -> Assumptions:
    """What the statement assumes of the attempt's snapshot."""
    return assumptions_of(attempt, [made])[0]


def assumptions_of(attempt: Attempt, some: Sequence[Statement]) -> list[Assumptions]:
    """What each of several statements assumes of the attempt's snapshot."""
    snapshot, tasks, policy = attempt.snapshot, attempt.snapshot.tasks, attempt.policy.digest
    columns = [(made.evictions, made.nominated, made.nominated_node, made.bound_node) for made in some]
    evicted, nominated, promised, bound = zip(*columns, strict=True)
    evicts, promises = [*map(len, evicted)], [*map(len, nominated)]
    gone, placed = np.concatenate(evicted), np.concatenate(nominated)
    size = np.array([*evicts, *promises, *map(len, bound)])
    nodes, start = _touched(np.concatenate([tasks.node[gone], *promised, *bound]), size, len(some))
    lost, before = sealed(tasks.incarnation[gone]), sealed(tasks.nominated[placed])
    nodes, revision = sealed(nodes), sealed(snapshot.nodes.revision[nodes])
    ends = accumulate(evicts, initial=0), accumulate(promises, initial=0), start.tolist()
    return [
        Assumptions(snapshot.epoch, snapshot.revision, lost[a:b], before[c:d], nodes[e:f], revision[e:f], policy)
        for (a, b), (c, d), (e, f) in zip(*map(pairwise, ends), strict=True)
    ]


@kernel
def _touched(node: Longs, size: Longs, many: int) -> tuple[Rows, Longs]:
    """The nodes of each statement, ascending, one statement after the other, and where those of each begin.

    ``node`` int64[K], NONE for none, are of what each evicts, then of what each promises, then of what each binds:
    ``size`` int64[3 S] says how many. ``many`` is S.
    """
    stop, found, start, at = size.cumsum(), np.empty(len(node), np.int64), np.zeros(many + 1, np.int64), 0
    for one in range(many):
        first = at
        for run in range(one, len(size), many):
            for n in node[stop[run] - size[run] : stop[run]]:
                if n != NONE:
                    found[at] = n
                    at += 1
        found[first:at].sort()
        last, at = at, first
        for n in found[first:last]:
            if at == first or n != found[at - 1]:
                found[at] = n
                at += 1
        start[one + 1] = at
    return found[:at], start


def explained(attempt: Attempt, minimum: int, reason: Reason, domain: int = NONE) -> Explanation:
    """Why an attempt has a plan, or has none; ``minimum`` is how many tasks its preemptor needs."""
    return Explanation(attempt.purpose.value, attempt.podgroups[0], minimum, reason, domain)


def plan_without_search(attempt: Attempt, made: Statement) -> Plan:
    """The plan of a statement that makes room for no podgroup: it places, or it clears broken gangs."""
    snapshot = attempt.snapshot
    places = made.places[1]
    places = places if len(places) else snapshot.tasks.node[made.evictions].astype(np.int64)
    domain = snapshot.topology.lowest_common(places) if len(places) else ROOT
    minimum = int(snapshot.podgroups.min_available[made.preemptor]) if made.preemptor != NONE else 0
    why = Explanation(
        attempt.purpose.value, made.preemptor, minimum, Reason.CHOSEN, domain, bundles=_cleared(snapshot, made)
    )
    return plan_of(attempt, made, _price(attempt, made, domain), why)


def _cleared(snapshot: Snapshot, made: Statement) -> tuple[VictimBundle, ...]:
    """For each podgroup that loses tasks, its victims."""
    groups, counts = unique_counts(snapshot.tasks.podgroup[made.evictions])
    safe, elsewhere, efficiency = (np.zeros(len(groups), kind) for kind in (np.bool_, np.int64, np.float64))
    return victim_bundles(groups, safe, counts, elsewhere, snapshot.podgroups.priority[groups], efficiency)


def _price(attempt: Attempt, made: Statement, domain: int) -> Price:
    snapshot = attempt.snapshot
    if len(made.evictions) == 0:
        return replace(NO_VICTIMS, tier=int(snapshot.topology.tier[domain]), domain=domain)
    nothing = np.zeros(len(snapshot.vocabulary.resources), np.int64)
    return price_of(snapshot, made.evictions, nothing, lost_work(snapshot, attempt.now), None, domain)


def prices_in_one_unit(plans: Sequence[tuple[Attempt, Plan]], host: Host) -> list[Price]:
    """The prices of plans for one preemptor, each with the attempt that it answers, so that they can be compared.

    A plan's own price is in units of what its tasks ask for. Other tasks may make up the minimum of another plan: the
    most that any of them asks for is the unit of lost work of all.
    """
    snapshot, rank = plans[0][0].snapshot, host.price_rank(plans[0][0].purpose, plans[0][0].podgroups[0])
    tasks, request = snapshot.tasks, snapshot.shapes.request
    asked = np.stack([request[tasks.shape[plan.statement.placed]].sum(axis=0) for _, plan in plans])
    if (asked == asked[0]).all():
        return [plan.price for _, plan in plans]
    most = asked.max(axis=0)
    return [
        price_of(one.snapshot, plan.statement.evictions, most, lost_work(one.snapshot, one.now), rank, plan.domain)
        for one, plan in plans
    ]
