"""What a decision changes, followed in columns.

The room of its node and how tasks of a kind stand to it, what the podgroups and queues of its victims can lose, and the
nodes from which anti-affinity keeps tasks away.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bytes, Ids, Longs, Rows
from pipeline.cluster.counted.minima import parts_reach
from pipeline.cluster.rules.sparing import Entitled, charge
from pipeline.kernels import inlined, kernel, linked
from pipeline.solvers.tasks.sweeping.columns import (
    FITTING_LATER,
    FITTING_NOW,
    FOLLOWED,
    FULL,
    LATER,
    NOW,
    UNSCORED,
    Decisions,
    FixedColumns,
    Fleet,
    TaskKind,
    candidates_on,
    released_on,
)


@linked
def follow(facts: FixedColumns, fleet: Fleet, kind: TaskKind, decisions: Decisions) -> None:
    """Bring the fleet and a kind up to the last decision."""
    while decisions.many[1] < decisions.many[0]:
        at = decisions.many[1]
        victims = decisions.victims[decisions.first_victim[at] : decisions.first_victim[at + 1]]
        _move(facts, fleet, kind.counts, kind.entitled, kind.limited, kind.parent, decisions, at)
        _lose(facts, fleet, kind, victims)
        decisions.many[1] += 1
    known, last = kind.many[FOLLOWED], decisions.many[0]
    if known == last:
        return
    if len(kind.repels):
        _repel(kind.repels, kind.domain, kind.repelled, decisions, max(known, 0))
    for at in range(max(known, 0), last):
        kind.scored[decisions.node[at]] = False
        for k in range(decisions.first_released[at], decisions.first_released[at + 1]):
            for w in range(len(kind.releasable)):
                if kind.releasable[w] == decisions.released[k]:
                    kind.released_from[w] = NONE
    if known == NONE:
        _look(facts, fleet, kind, np.arange(len(kind.allowed)))
    else:
        _look(facts, fleet, kind, decisions.node[known:last])
    kind.many[FOLLOWED] = last


@linked
def _move(
    facts: FixedColumns, fleet: Fleet, counts: bool, entitled: Entitled, limited: bool, parent: Ids,
    decisions: Decisions, at: int,
) -> None:  # fmt: skip
    """Victims and tasks whose nominations are withdrawn give back room of their node and queues; the task claims it.

    The arguments beside facts, fleet and decisions are columns of a kind by those names.
    """
    node, asks, first, withdrawn = decisions.node[at], facts.asks, decisions.first_victim, decisions.first_released
    victims, moves = first[at + 1] - first[at], first[at + 1] - first[at] + withdrawn[at + 1] - withdrawn[at] + 1
    for k in range(moves):
        row, card, gives = decisions.task[at], decisions.card[at], -1
        if k < victims:
            row, gives = decisions.victims[first[at] + k], 1
            card = np.int64(facts.card[row])
        elif k < moves - 1:
            row, gives = decisions.released[withdrawn[at] + k - victims], 1
            card = np.int64(facts.nominated_card[row])
        shape = facts.shape[row]
        for r in range(asks.shape[1]):
            fleet.future[node, r] += gives * asks[shape, r]
        if card != NONE:
            fleet.cards[node, card] += gives * facts.on_card[shape]
        queue = facts.queue[facts.podgroup[row]]
        if counts:
            charge(asks[shape], queue, fleet.left, entitled, gives)
        while limited and queue != NONE:
            for r in range(asks.shape[1]):
                fleet.held[queue, r] -= gives * asks[shape, r]
            queue = parent[queue]


@linked
def _lose(facts: FixedColumns, fleet: Fleet, kind: TaskKind, victims: Rows) -> None:
    """Victims are on their way out: their podgroups have fewer tasks, and budgets let fewer go."""
    have, says_ready = fleet.have, fleet.says_ready
    for row in victims:
        group, role, part = facts.podgroup[row], facts.role[row], facts.subgroup[row]
        fleet.gone[row] = True
        fleet.ready[group] -= 1
        have.group[group] -= 1
        if role != NONE:
            have.role[role] -= 1
        if part != NONE:
            have.leaf[part] -= 1
        ready = have.group[group] >= facts.minima.least[group] and parts_reach(facts.minima, have, group)
        for key in range(len(says_ready)):
            if says_ready[key]:
                kind.victim_order.jobs[key, group] = int(ready)
        for budget in range(len(fleet.allowed)):
            covered = kind.namespace[budget] == facts.namespace[group] and kind.covers[budget, facts.label_set[row]]
            fleet.allowed[budget] = max(fleet.allowed[budget] - int(covered), 0)


@linked
def _repel(repels: Bytes, domain: Longs, repelled: Longs, decisions: Decisions, first: int) -> None:
    """Tasks that came to nodes keep others away from their domains, and those that left do not any more.

    The first arguments are columns of a kind by those names; ``first`` is the first decision to follow.
    """
    for at in range(first, decisions.many[0]):
        node = decisions.node[at]
        for term in range(len(repels)):
            more = int(repels[term, decisions.task[at]])
            for k in range(decisions.first_victim[at], decisions.first_victim[at + 1]):
                more -= int(repels[term, decisions.victims[k]])
            for k in range(decisions.first_released[at], decisions.first_released[at + 1]):
                more -= int(repels[term, decisions.released[k]])
            if more != 0 and domain[term, node] != NONE:
                for other in range(domain.shape[1]):
                    if domain[term, other] == domain[term, node]:
                        repelled[other] += more


@linked
def _look(facts: FixedColumns, fleet: Fleet, kind: TaskKind, nodes: Rows) -> None:
    """How the task stands to some nodes: whether it fits, and whether it could with all candidates gone."""
    request, part, many, fits = kind.request, kind.part, kind.many, kind.fits
    for node in nodes:
        if fits[node] != FULL:
            many[FITTING_NOW if fits[node] == NOW else FITTING_LATER] -= 1
        fits[node], kind.hopeful[node] = FULL, False
        if not kind.allowed[node]:
            continue
        room, cards = fleet.future[node].copy(), fleet.cards[node].copy()
        if _takes(request, part, room, cards):
            now = _takes(request, part, fleet.idle[node], np.minimum(cards, fleet.idle_cards[node]))
            fits[node] = NOW if now else LATER
            many[FITTING_NOW if now else FITTING_LATER] += 1
        some = candidates_on(facts.start, facts.resident, kind.may, fleet.gone, node)
        released = released_on(kind.releasable, kind.released_from, node)
        if not kind.withheld[node] and len(some) + len(released) > 0:
            free_on(facts.asks, facts.on_card, facts.shape, facts.card, some, room, cards)
            free_on(facts.asks, facts.on_card, facts.shape, facts.nominated_card, released, room, cards)
            kind.hopeful[node] = _takes(request, part, room, cards)
        if (kind.hopeful[node] or fits[node] != FULL) and not kind.scored[node]:
            kind.unscored[many[UNSCORED]] = node
            many[UNSCORED] += 1


@inlined
def _takes(request: Longs, part: int, room: Longs, cards: Longs) -> bool:
    """Whether a node with ``room``, and one of its cards, has what a task asks for."""
    for r in range(len(request)):
        if request[r] > 0 and room[r] < request[r]:
            return False
    return bool(part == 0 or (cards >= part).any())


@inlined
def free_on(asks: Longs, on_card: Longs, shape: Ids, card: Ids, rows: Rows, room: Longs, cards: Longs) -> None:
    """Add to ``room`` and ``cards`` of a node what tasks hold there, or are promised, in place."""
    for row in rows:
        for r in range(len(room)):
            room[r] += asks[shape[row], r]
        if card[row] != NONE:
            cards[card[row]] += on_card[shape[row]]


@kernel
def freed(facts: FixedColumns, fleet: Fleet, kind: TaskKind) -> tuple[Longs, Longs]:
    """int64[N, R] and int64[N, D]: what all candidates of each node hold, of its cards too, and nominations."""
    room, cards, released = np.zeros_like(fleet.future), np.zeros_like(fleet.cards), kind.releasable
    for node in range(len(room)):
        some = candidates_on(facts.start, facts.resident, kind.may, fleet.gone, node)
        free_on(facts.asks, facts.on_card, facts.shape, facts.card, some, room[node], cards[node])
    for at in range(len(released)):
        node, one = kind.released_from[at], released[at : at + 1]
        if node != NONE:
            free_on(facts.asks, facts.on_card, facts.shape, facts.nominated_card, one, room[node], cards[node])
    return room, cards
