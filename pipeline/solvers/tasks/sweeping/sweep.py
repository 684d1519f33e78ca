"""The search for places as loops over columns: tasks of one kind, one after the other, each decided on the one before.

Free room comes first. Then the nodes whose candidates could free enough, best-scored first: the plugins' quotas are
counted along a node's candidates in victim order, and the first node on which room can be made is taken. In a
simulation the nodes are compared by what they lose.

What a decision changes is followed (`following`), and nothing else is looked at again. Scores are the plugins'; where
these do not tell what they follow from, the sweep stops if a node that matters needs a new one.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bytes, Floats, Ids, Longs, Rows
from pipeline.cluster.cards import best_card
from pipeline.cluster.counted.node_scores import score_of
from pipeline.cluster.rules.quota import rank_losers
from pipeline.kernels import inlined, kernel, linked, writing
from pipeline.solvers.tasks.sweeping.columns import (
    FITTING_LATER,
    FITTING_NOW,
    FULL,
    NOW,
    RANKED,
    UNSCORED,
    Decisions,
    FixedColumns,
    Fleet,
    TaskKind,
    candidates_on,
    decide,
    released_on,
)
from pipeline.solvers.tasks.sweeping.following import follow, free_on
from pipeline.solvers.tasks.sweeping.one_node import (
    MAKES_ROOM,
    WITHHELD,
    NodeCase,
    candidates_making_room,
    cards_without,
    loss,
    reprieve_order,
    shortest,
    still_needed,
)
from pipeline.solvers.tasks.sweeping.victim_order import in_victim_order

#: How many nodes a simulation compares at most (Volcano's limit): the best-scored ones; Volcano starts at a random one.
COMPARED = 100
#: If more nodes than these have new scores, all are ranked anew.
_ONE_BY_ONE = 4


@writing("fleet", "kind", "decisions")
def sweep(
    facts: FixedColumns, fleet: Fleet, kind: TaskKind, decisions: Decisions,
    tasks: Rows, region: tuple[int, int], free: bool, evicts: bool,
) -> int:  # fmt: skip
    """Decide where tasks of a kind go, within nodes ``region`` (start, stop), up to one without a place; how many do.

    Parameters
    ----------
    tasks: int64[K]
        Task rows, in order.
    free, evicts
        Whether room without victims may be used, as far as the queue's limits are not counted, and whether room may be
        made.
    """
    at = 0
    while True:
        follow(facts, fleet, kind, decisions)
        if at == len(tasks):
            return at
        ranked = _scored(facts, fleet, kind)
        if kind.ranks:
            rank_losers(kind.losing, fleet.held, kind.victim_order.queue_rank)
        _rank(kind, ranked, region)
        node, short = NONE, _is_short(kind.request, kind.ceiling, kind.above, fleet.held)
        if free and not short:
            node = _free_node(kind.order, kind.fits, kind.repelled, kind.many)
        if node != NONE:
            there = fleet.cards[node]
            if kind.fits[node] == NOW:
                there = np.minimum(fleet.idle_cards[node], there)
            no_victims = kind.releasable[:0]
            decide(decisions, tasks[at], node, best_card(kind.part, there, kind.spreads), no_victims, no_victims)
        elif not evicts or not _made(facts, fleet, kind, decisions, tasks[at], short):
            return at
        at += 1


@inlined
def _is_short(request: Longs, ceiling: Longs, above: Rows, held: Longs) -> bool:
    """Whether the queue or one of its ancestors may not take the request as it is."""
    for queue in above:
        for r in range(len(request)):
            if request[r] > 0 and ceiling[queue, r] < UNLIMITED and ceiling[queue, r] - held[queue, r] < request[r]:
                return True
    return False


@inlined
def _free_node(order: Rows, fits: Bytes, repelled: Longs, many: Longs) -> int:
    """The best node that takes the task without victims: of those that do so now, else of the others; or NONE."""
    later = NONE
    if many[FITTING_NOW] + many[FITTING_LATER] == 0:
        return later
    for at in range(many[RANKED]):
        node = order[at]
        if fits[node] == FULL or repelled[node] > 0:
            continue
        if fits[node] == NOW or many[FITTING_NOW] == 0:
            return int(node)
        if later == NONE:
            later = node
    return later


@linked
def _scored(facts: FixedColumns, fleet: Fleet, kind: TaskKind) -> Rows:
    """Score the nodes that need it; returns them, int64[M]."""
    nodes, many = np.empty(kind.many[UNSCORED], np.int64), 0
    for at in range(len(nodes)):
        node = kind.unscored[at]
        if not kind.scored[node]:  # it may be among them twice
            used = facts.allocatable[node] - np.minimum(fleet.idle[node], fleet.future[node])
            kind.score[node] = score_of(kind.terms, kind.request, used, facts.allocatable[node])
            kind.scored[node], nodes[many] = True, node
            many += 1
    kind.many[UNSCORED] = 0
    return nodes[:many]


@linked
def _rank(kind: TaskKind, ranked: Rows, region: tuple[int, int]) -> None:
    """Bring the order up to date: for another region as a whole, else where nodes have new scores."""
    if kind.region[0] != region[0] or kind.region[1] != region[1] or len(ranked) > _ONE_BY_ONE:
        kind.region[0], kind.region[1] = region
        start, stop = region
        nodes = start + np.flatnonzero((kind.fits[start:stop] != FULL) | kind.hopeful[start:stop])
        kind.order[: len(nodes)] = nodes[np.argsort(-kind.score[nodes], kind="mergesort")]
        kind.many[RANKED] = len(nodes)
    elif len(ranked) > 0:
        _move(kind.order, kind.score, kind.many, ranked, region)


@linked
def _move(order: Rows, score: Floats, many: Longs, ranked: Rows, region: tuple[int, int]) -> None:
    """Put some nodes where they belong in the order, after their scores have changed."""
    kept = 0
    for at in range(many[RANKED]):
        stays = True
        for node in ranked:
            stays &= node != order[at]
        order[kept] = order[at]
        kept += stays
    for node in ranked:
        at = kept
        if region[0] <= node < region[1]:
            while at > 0:
                other = order[at - 1]
                if score[other] > score[node] or (score[other] == score[node] and other < node):
                    break
                order[at] = other
                at -= 1
            order[at] = node
            kept += 1
    many[RANKED] = kept


# -- with victims ------------------------------------------------------------------------------------------------------


@linked
def _made(facts: FixedColumns, fleet: Fleet, kind: TaskKind, decisions: Decisions, task: int, short: bool) -> bool:
    """Decide on a node on which room is made for a task, if there is one; ``short``: its queue needs room as well.

    The first one on which it can be, or, of those compared, the one that loses least.
    """
    found, best, card = 0, NONE, NONE
    victims = released = kind.releasable[:0]
    least = loss(0, victims, facts.priority, facts.created, NONE)
    for at in range(kind.many[RANKED]):
        node = kind.order[at]
        if not kind.hopeful[node] or kind.withheld[node]:
            continue
        rows, unpromised, case = case_of(facts, fleet, kind, node, short)
        verdict, gone = _verdict(case, kind.sets, kind.simulated, facts.priority[rows])
        if verdict == WITHHELD:
            kind.withheld[node] = True
        if verdict != MAKES_ROOM or len(gone) + len(unpromised) == 0:
            continue
        mine = _ascending(rows[gone])
        cost = loss(0, mine, facts.priority, facts.created, node)
        if found == 0 or cost < least:
            least, best, victims, released = cost, node, mine, unpromised
            card = best_card(kind.part, cards_without(case, gone), kind.spreads)
        found += 1
        if not kind.simulated or found == COMPARED:
            break
    if found > 0:
        decide(decisions, task, best, card, victims, released)
    return found > 0


@linked
def _verdict(case: NodeCase, sets: Longs, simulated: bool, priority: Ids) -> tuple[int, Rows]:
    """A verdict on a node, and the candidates that go; ``priority`` int32[C] is that of each candidate."""
    verdict, gone = candidates_making_room(case, np.arange(len(priority)), sets)
    if verdict == MAKES_ROOM and simulated:
        gone = still_needed(case, gone, reprieve_order(gone, priority))
    elif verdict == MAKES_ROOM:
        gone = shortest(case, gone)
    return verdict, gone


@inlined
def _ascending(rows: Rows) -> Rows:
    for many in range(1, len(rows)):
        row, at = rows[many], many
        while at > 0 and rows[at - 1] > row:
            rows[at] = rows[at - 1]
            at -= 1
        rows[at] = row
    return rows


@kernel
def case_of(facts: FixedColumns, fleet: Fleet, kind: TaskKind, node: int, short: bool) -> tuple[Rows, Rows, NodeCase]:
    """The candidates of a node in victim order, the tasks that lose nominations to it, and the node as a case.

    ``short``: the limits of queues count.
    """
    rows = in_victim_order(kind.victim_order, candidates_on(facts.start, facts.resident, kind.may, fleet.gone, node))
    released, shape = released_on(kind.releasable, kind.released_from, node), facts.shape[rows]
    room, cards = fleet.future[node].copy(), fleet.cards[node].copy()
    repelled, repels = kind.repelled[node], np.zeros(len(rows), np.int64)
    free_on(facts.asks, facts.on_card, facts.shape, facts.nominated_card, released, room, cards)
    for term in range(len(kind.repels)):
        if kind.domain[term, node] != NONE:
            for row in released:
                repelled -= kind.repels[term, row]
            for at in range(len(rows)):
                repels[at] += kind.repels[term, rows[at]]
    owner, surplus = facts.podgroup[rows], np.empty(len(rows), np.int64)
    for at in range(len(rows)):
        surplus[at] = fleet.ready[owner[at]] - facts.minima.least[owner[at]]
    covered = np.zeros((len(rows), len(fleet.allowed)), np.bool_)
    for at in range(len(rows) if len(fleet.allowed) else 0):
        for budget in range(len(fleet.allowed)):
            mine = kind.namespace[budget] == facts.namespace[owner[at]]
            covered[at, budget] = mine and kind.covers[budget, facts.label_set[rows[at]]]
    limit, meets = _limits(facts, fleet, kind, rows, released) if short else (fleet.held[:0].copy(), repels)
    case = NodeCase(
        request=kind.request,
        room=room,
        part=kind.part,
        cards=cards,
        repelled=repelled,
        holds=facts.asks[shape],
        card=facts.card[rows],
        part_held=facts.on_card[shape],
        repels=repels,
        limit=limit,
        meets=meets,
        owner=owner,
        queue=facts.queue[owner],
        spares=kind.spares,
        surplus=surplus,
        minima=facts.minima,
        have=fleet.have,
        role=facts.role[rows],
        subgroup=facts.subgroup[rows],
        counts=kind.counts,
        strict=kind.strict,
        left=fleet.left,
        entitled=kind.entitled,
        asking=kind.asking,
        covered=covered,
        allowed=fleet.allowed,
    )
    return rows, released, case


@inlined
def _limits(facts: FixedColumns, fleet: Fleet, kind: TaskKind, rows: Rows, released: Rows) -> tuple[Longs, Rows]:
    """``limit`` and ``meets`` of a case, where released nominations have come free."""
    limit, meets = np.full((len(kind.above), len(kind.request)), UNLIMITED, np.int64), np.empty(len(rows), np.int64)
    for above in range(len(kind.above)):
        queue = kind.above[above]
        for r in range(len(kind.request)):
            if kind.ceiling[queue, r] < UNLIMITED:
                limit[above, r] = kind.ceiling[queue, r] - fleet.held[queue, r]
                for row in released:
                    limit[above, r] += facts.asks[facts.shape[row], r]
    for at in range(len(rows)):
        queue, meets[at] = facts.queue[facts.podgroup[rows[at]]], len(kind.above)
        while queue != NONE and meets[at] == len(kind.above):
            for above in range(len(kind.above)):
                if kind.above[above] == queue:
                    meets[at] = above
            queue = kind.parent[queue]
    return limit, meets
