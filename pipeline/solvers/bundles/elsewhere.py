"""Victims outside the domain: they bring the gang no room, but free quota that it lacks, or do not repel it any more.

A gang that must stay in one domain may find room there while its queue is full, or while a task in another domain
repels its tasks. Volcano looks for victims in one domain at a time ("Gang-Aware Preemption and Reclaim", section
3.4.1), so it finds none that help, or takes more of those in the domain than it needs. Here such work may go wherever
it runs.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows, distinct, is_among
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Reason
from pipeline.decision.headroom import line_limits
from pipeline.decision.plan import NoPlan, Plan, making_room, plan_of, prices_in_one_unit
from pipeline.decision.price import lost_work, price_of
from pipeline.decision.statement import Statement, statement
from pipeline.placement.feasibility import asked, feasible, leftover
from pipeline.placement.need import need_of
from pipeline.placement.outranked import Searched, spares_work
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.records import replace

#: Why a domain fell if anti-affinity may be an obstacle.
_REPELLED = frozenset({Reason.REPELLED, Reason.NO_PACKING})


def or_elsewhere(attempt: Attempt, host: Host, found: Plan | NoPlan, searched: Searched) -> Plan | NoPlan:
    """What was found, or a plan with victims outside the domain where that is cheaper and the queue lacks quota.

    That is sought where the nodes would have room, or where a podgroup goes that they do not need; or where none was
    found and tasks are repelled. First room is sought anywhere, with the quota. Then it is sought in the gang's domains
    as if the victims had gone, and those return that are not needed. The plan has no lower bound.

    Parameters
    ----------
    searched
        The search in the attempt's domains.
    """
    confined = (attempt.snapshot.podgroups.required_level[list(attempt.podgroups)] != NONE).any()
    if not attempt.policy.cheapest_set or not confined or not (_repelled(found) or _lacks_quota(attempt, host, found)):
        return found
    if isinstance(found, Plan):
        sought = _frees_quota_alone(attempt.snapshot, found.statement)
    else:
        sought = found.explanation.reason is not Reason.BOUND
    if not sought:
        return found
    anywhere = searched(replace(attempt, domains=np.array([ROOT], np.int64), survey=None), host)
    if isinstance(anywhere, NoPlan):
        return found
    gone = anywhere.statement.evictions
    after = carried_out(statement(attempt.action, evictions=gone), attempt.snapshot, attempt.now)
    inside = searched(replace(attempt, snapshot=after, survey=None), host.on(after, gone))
    if isinstance(inside, NoPlan):
        return found
    other = _of_both(attempt, host, inside, gone)
    if other is None or not isinstance(found, Plan):
        return found if other is None else other
    leaving, taking = prices_in_one_unit([(attempt, found), (attempt, other)], host)
    return other if spares_work(taking, leaving) else found


def _repelled(found: Plan | NoPlan) -> bool:
    return isinstance(found, NoPlan) and any(one.reason in _REPELLED for one in found.explanation.tried)


def _lacks_quota(attempt: Attempt, host: Host, found: Plan | NoPlan) -> bool:
    snapshot, limits = attempt.snapshot, line_limits(host, attempt.podgroups[0])
    if isinstance(found, Plan):
        wanted = snapshot.request_of(found.statement.placed).sum(axis=0)
    else:
        wanted = need_of(snapshot, attempt.podgroups, surplus=False).total
    return limits.counted and not limits.take(wanted, snapshot, NO_ROWS)


def _frees_quota_alone(snapshot: Snapshot, made: Statement) -> bool:
    """Whether some podgroup loses tasks, though the nodes need none of its to have room for what is placed."""
    tasks, left = snapshot.tasks, leftover(snapshot, made, made.places)
    victims = made.evictions[is_among(tasks.node[made.evictions], left.node)]
    many = len(snapshot.nodes)
    each, of = unique_inverse(tasks.podgroup[victims].astype(np.int64) * many + tasks.node[victims])
    held = np.zeros((len(each), left.room.shape[1]), np.int64)
    np.add.at(held, of, asked(snapshot, victims, tasks.card[victims]))
    needed = (held > left.room[left.node.searchsorted(each % many)]).any(axis=1)
    return not is_among(tasks.podgroup[made.evictions], each[needed] // many).all()


def _of_both(attempt: Attempt, host: Host, inside: Plan, gone: Rows) -> Plan | None:
    """The plan ``inside``, made as if ``gone`` had gone, with those of them that it needs; None if not lawful."""
    snapshot, made = attempt.snapshot, inside.statement
    wanted = snapshot.request_of(made.nominated).sum(axis=0)
    preemptor, limits = Preemptor(attempt.podgroups, wanted, attempt.purpose), line_limits(host, attempt.podgroups[0])

    def of(victims: Rows) -> Statement:
        return making_room(attempt, victims, made.nominated, made.nominated_node, made.nominated_card)

    def works(victims: Rows) -> bool:
        enough = limits.take(wanted, snapshot, victims) and feasible(snapshot, of(victims))
        return enough and host.validate_set(preemptor, victims)

    victims = distinct(np.concatenate([gone, made.evictions]))
    owner = snapshot.tasks.podgroup
    mine = distinct(owner[gone])
    mine = mine[~is_among(mine, owner[made.evictions])]
    for podgroup in mine[np.argsort(host.job_rank[mine], kind="stable")].tolist():
        left = victims[owner[victims] != podgroup]
        victims = left if works(left) else victims
    if not works(victims) or not host.keeps_pace(victims):
        return None
    rank = host.price_rank(attempt.purpose, attempt.podgroups[0])
    price = price_of(snapshot, victims, wanted, lost_work(snapshot, attempt.now), rank, inside.domain)
    why = replace(inside.explanation, tried=(), lower_bound=None, bundles=(), given_back=0)
    return plan_of(attempt, of(victims), price, why)
