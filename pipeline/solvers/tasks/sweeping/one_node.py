"""Which candidates of one node go for a waiting task, and what that costs.

The plugins vote on a node's candidates in victim order. A vote spends what a podgroup, queue or budget can spare on the
first candidates, which may be too small. Where it leaves too little room, other sets of candidates are looked at that
may go together (upstream misses these places). Of those that go, the ones that are not needed are reprieved.

Kernels and Python follow these rules alike. In a kernel a node is a ``NodeCase`` and its questions are answered from
columns; where a plugin has to be asked, it is an `asked_node.AskedNode`, which answers the same questions. Candidates
are numbered in victim order, from 0; a set of them is an array of numbers (int64).
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.minima import Have, Minima, parts_regain, parts_spare
from pipeline.cluster.rules.sparing import Asking, Entitled, charge, may_go
from pipeline.decision.price import NO_PRIORITY
from pipeline.kernels import counted_by, shared

#: Verdicts on a node: its candidates make room; not now; not for any task of this kind any more.
MAKES_ROOM, NOT_NOW, WITHHELD = range(3)


class NodeCase(NamedTuple):
    """A node for one task, in columns over its candidates C.

    Attributes
    ----------
    request, room: int64[R]
        What the task asks for, and what the node will have with all candidates in place.
    part, cards: int, int64[D]
        The same of one card: 0 if it needs none.
    repelled
        How many tasks there keep the task away by anti-affinity.
    holds: int64[C, R], card: int32[C], part_held, repels: int64[C]
        What each candidate holds, on which card (NONE: none) how much, and for how many terms it keeps the task away.
    limit: int64[A, R], meets: int64[C]
        Where the task's queue is short of room: what it and each of its ancestors may still take, and from which of
        these on what a candidate holds comes free for it. Else there are no rows.
    owner, queue: int32[C]
        Its podgroup and queue.
    spares
        Whether podgroups can lose only ``surplus`` (int64[C], of each candidate's podgroup) tasks, and their roles and
        subgroups only what they can spare.
    minima, have, role, subgroup
        What podgroups need and have (charged and restored); role and subgroup of each candidate, int32[C].
    counts
        Whether queues can lose only what is ``left`` to them (int64[Q, R]; charged and restored); ``strict``,
        ``entitled`` and ``asking`` say how.
    covered: bool[C, P], allowed: int64[P]
        Which disruption budgets cover each candidate, and how many tasks each lets go.
    """

    request: Longs
    room: Longs
    part: int
    cards: Longs
    repelled: int
    holds: Longs
    card: Ids
    part_held: Longs
    repels: Longs
    limit: Longs
    meets: Rows
    owner: Ids
    queue: Ids
    spares: bool
    surplus: Longs
    minima: Minima
    have: Have
    role: Ids
    subgroup: Ids
    counts: bool
    strict: bool
    left: Longs
    entitled: Entitled
    asking: Asking
    covered: Bools
    allowed: Longs


#: A ``NodeCase``, or what answers its questions by asking: a kernel knows no union of types.
Case: TypeAlias = Any


# -- questions ---------------------------------------------------------------------------------------------------------


def _count_vote(case: NodeCase, some: Rows) -> Bools:
    may, allowed = np.zeros(len(some), np.bool_), case.allowed.copy()
    for at in range(len(some)):
        mine, taken = some[at], 0
        for before in range(at):
            taken += may[before] and case.owner[some[before]] == case.owner[mine]
        may[at] = not case.spares or case.surplus[mine] > taken
        for budget in range(len(allowed)):
            may[at] &= allowed[budget] > 0 or not case.covered[mine, budget]
        queue, held = case.queue[mine], case.holds[mine]
        if may[at] and case.counts:
            may[at] = may_go(held, queue, case.left, case.entitled, case.asking, case.strict)
        if may[at] and case.spares:
            may[at] = parts_spare(case.minima, case.have, case.owner[mine], case.role[mine], case.subgroup[mine])
        if may[at] and case.counts:
            charge(held, queue, case.left, case.entitled, 1)
        for budget in range(len(allowed)):
            allowed[budget] -= may[at] and case.covered[mine, budget]
    for one in some[may]:
        if case.counts:
            charge(case.holds[one], case.queue[one], case.left, case.entitled, -1)
        if case.spares:
            parts_regain(case.have, case.role[one], case.subgroup[one])
    return may


@counted_by(_count_vote)
def vote(case: Case, some: Rows) -> Bools:
    """bool[len(some)]: which candidates may go, each after those before it that may."""
    return np.asarray(_count_vote(case, some) if isinstance(case, NodeCase) else case.vote(some))


def count_room(case: NodeCase, some: Rows) -> bool:
    """What ``has_room`` says of a node in columns."""
    for r in range(len(case.request)):
        if case.request[r] > 0:
            room = case.room[r]
            for one in some:
                room += case.holds[one, r]
            if room < case.request[r]:
                return False
    return bool(case.part == 0 or (cards_without(case, some) >= case.part).any())


@counted_by(count_room)
def has_room(case: Case, some: Rows) -> bool:
    """Whether the node, and one of its cards, has what the task asks for once ``some`` have gone."""
    return bool(count_room(case, some) if isinstance(case, NodeCase) else case.has_room(some))


def count_fit(case: NodeCase, some: Rows) -> bool:
    """What ``stands`` says of a node in columns."""
    repelled = case.repelled
    for one in some:
        repelled -= case.repels[one]
    return repelled <= 0 and has_room(case, some) and _queue_takes(case, some)


@shared
def _queue_takes(case: NodeCase, some: Rows) -> bool:
    for above in range(len(case.limit)):
        for r in range(len(case.request)):
            if case.request[r] > 0:
                left = case.limit[above, r]
                for one in some:
                    left += case.holds[one, r] if case.meets[one] <= above else 0
                if left < case.request[r]:
                    return False
    return True


@counted_by(count_fit)
def stands(case: Case, some: Rows) -> bool:
    """Whether the task can be placed once ``some`` have gone: the node has the room and admits it, and its queue too.

    Room that is promised to other tasks counts as taken, unless it is released, and they repel as if they ran already.
    Asking again without them, as "Preempt Action Support Topology" does, would change nothing: no constraint here needs
    another task.
    """
    return bool(count_fit(case, some) if isinstance(case, NodeCase) else case.stands(some))


@shared
def cards_without(case: NodeCase, some: Rows) -> Longs:
    """int64[D]: what each card has free once ``some`` have gone.

    A task that returns comes back to exactly the card that it held, so that a victim that was needed stays needed
    ("Preempt Action Support Topology", story 3).
    """
    free = case.cards.copy()
    for one in some:
        if case.card[one] >= 0:
            free[case.card[one]] += case.part_held[one]
    return free


# -- who goes ----------------------------------------------------------------------------------------------------------


@shared
def candidates_making_room(case: Case, every: Rows, sets: Longs) -> tuple[int, Rows]:
    """A verdict, and the candidates that may go together and make room, in victim order; none if there are none.

    Parameters
    ----------
    every: int64[C]
        All candidates.
    sets: int64[1]
        How many more sets of candidates are looked at for the preemptor; counted down.
    """
    may = vote(case, every)
    some = every[may]
    if stands(case, some):
        return MAKES_ROOM, some
    refused = every[~may]
    if len(refused) and vote(case, np.concatenate((refused, some)))[: len(refused)].any():
        return _other_set(case, every, sets) if stands(case, every) else (NOT_NOW, every[:0])
    return (NOT_NOW if has_room(case, some) else WITHHELD), every[:0]  # none of the others may go even alone


@shared
def _other_set(case: Case, every: Rows, sets: Longs) -> tuple[int, Rows]:
    """The same by trying one set after the other; of two sets the one with the earlier candidates comes first."""
    todo, roomy = [(every[:0], 0)], False
    while todo and sets[0] > 0:
        sets[0] -= 1
        chosen, at = todo.pop()
        if stands(case, chosen):
            return MAKES_ROOM, chosen
        roomy |= has_room(case, chosen)
        if at == len(every) or not has_room(case, np.concatenate((chosen, every[at:]))):
            continue
        todo.append((chosen, at + 1))
        more = np.concatenate((chosen, every[at : at + 1]))
        if vote(case, more).all():
            todo.append((more, at + 1))
    return (NOT_NOW if roomy else WITHHELD), every[:0]


@shared
def shortest(case: Case, gone: Rows) -> Rows:
    """The shortest prefix of ``gone`` (int64[C]) that makes room, less what can be reprieved of it, the last first."""
    few, many = -1, len(gone)  # ``many`` suffice, ``few`` do not
    while many - few > 1:
        half = (few + many) // 2
        if stands(case, gone[:half]):
            many = half
        else:
            few = half
    last_first = gone[:many].copy()
    for at in range(many):
        last_first[at] = gone[many - 1 - at]
    return still_needed(case, gone[:many], last_first)


@shared
def still_needed(case: Case, gone: Rows, order: Rows) -> Rows:
    """Those of ``gone`` (int64[C]) that stay gone when each in ``order`` is reprieved if the task still fits."""
    for one in order:
        back = gone[gone != one]
        if stands(case, back):
            gone = back
    return gone


@shared
def reprieve_order(gone: Rows, priority: Ids) -> Rows:
    """Candidates in the order in which a simulation reprieves them: the highest priority of a task first.

    ``priority`` int32[C] is that of each candidate. Of equal ones the last in victim order comes first.
    """
    order = gone.copy()
    for many in range(len(gone)):
        mine, at = gone[len(gone) - 1 - many], many
        while at > 0 and priority[order[at - 1]] < priority[mine]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = mine
    return order


@shared
def loss(violations: int, victims: Rows, priority: Ids, created: Floats, node: int) -> tuple[Any, ...]:
    """The cost of a place, smaller first.

    Exceeded budgets, the highest priority, the sum of priorities, the number of victims, how long the victim of the
    highest priority has run, and the node's row (Kubernetes' criteria, which Volcano took over without budgets).
    ``priority`` and ``created`` are those of all tasks.
    """
    highest, total, oldest = NO_PRIORITY, 0, 0.0
    for row in victims:
        total += priority[row]
        if priority[row] > highest or (priority[row] == highest and created[row] < oldest):
            highest, oldest = priority[row], created[row]
    return violations, np.int64(highest), np.int64(total), len(victims), -oldest, node
