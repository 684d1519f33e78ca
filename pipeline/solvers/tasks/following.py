"""What a decision changes, followed in columns: its node's room, its victims' podgroups and queues, the nodes' outlook."""

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.rules.minimum import parts_reach
from pipeline.cluster.rules.sparing import charge
from pipeline.kernels import kernel
from pipeline.solvers.tasks.columns import (
    FITTING_LATER,
    FITTING_NOW,
    FOLLOWED,
    FULL,
    LATER,
    NOW,
    UNSCORED,
    Decisions,
    Facts,
    Fleet,
    TaskKind,
    candidates_on,
    released_on,
)


@kernel
def follow(facts: Facts, fleet: Fleet, kind: TaskKind, decisions: Decisions) -> None:
    """Bring the fleet and a kind up to the last decision."""
    while decisions.many[1] < decisions.many[0]:
        _carry_out(facts, fleet, kind, decisions, decisions.many[1])
        decisions.many[1] += 1
    known, last = kind.many[FOLLOWED], decisions.many[0]
    if known == last:
        return
    if len(kind.repels):
        _repel(kind, decisions, max(known, 0), last)
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


@kernel
def _carry_out(facts: Facts, fleet: Fleet, kind: TaskKind, decisions: Decisions, at: int) -> None:
    """Victims are on their way out, nominations withdrawn, and the task is promised its place."""
    node, asks = decisions.node[at], facts.asks
    first, last = decisions.first_victim[at], decisions.first_victim[at + 1]
    withdrawn, end = decisions.first_released[at], decisions.first_released[at + 1]
    for k in range(last - first + end - withdrawn + 1):
        row, gives = decisions.task[at], -1
        if k < last - first:
            row, gives = decisions.victims[first + k], 1
        elif k < last - first + end - withdrawn:
            row, gives = decisions.released[withdrawn + k - (last - first)], 1
        card = decisions.card[at] if gives < 0 else np.int64(facts.card[row])
        shape = facts.shape[row]
        for r in range(asks.shape[1]):
            fleet.future[node, r] += gives * asks[shape, r]
        if card != NONE:
            fleet.cards[node, card] += gives * facts.on_card[shape]
        if kind.limited:
            queue = facts.queue[facts.podgroup[row]]
            while queue != NONE:
                for r in range(asks.shape[1]):
                    fleet.held[queue, r] -= gives * asks[shape, r]
                queue = kind.parent[queue]
        if kind.counts:
            charge(asks[shape], facts.queue[facts.podgroup[row]], fleet.left, kind.entitled, gives)
    have, jobs, says_ready = fleet.have, kind.victim_order.jobs, fleet.says_ready
    for k in range(first, last):
        row = decisions.victims[k]
        group = facts.podgroup[row]
        fleet.gone[row] = True
        fleet.ready[group] -= 1
        have.group[group] -= 1
        if facts.role[row] != NONE:
            have.role[facts.role[row]] -= 1
        if facts.subgroup[row] != NONE:
            have.leaf[facts.subgroup[row]] -= 1
        ready = have.group[group] >= facts.minima.least[group] and parts_reach(facts.minima, have, group)
        for key in range(len(says_ready)):
            if says_ready[key]:
                jobs[key, group] = int(ready)


@kernel
def _repel(kind: TaskKind, decisions: Decisions, first: int, last: int) -> None:
    """Tasks that came to nodes keep others away from their domains, and those that left do not any more."""
    domain, repels = kind.domain, kind.repels
    for at in range(first, last):
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
                        kind.repelled[other] += more


@kernel
def _look(facts: Facts, fleet: Fleet, kind: TaskKind, nodes: Rows) -> None:
    """How the task stands to some nodes: whether it fits, and whether it could with all candidates gone."""
    request, part, many, future, idle = kind.request, kind.part, kind.many, fleet.future, fleet.idle
    fits, hopeful, shapes, asks = kind.fits, kind.hopeful, facts.shape, facts.asks
    for node in nodes:
        if fits[node] != FULL:
            many[FITTING_NOW if fits[node] == NOW else FITTING_LATER] -= 1
        fits[node], hopeful[node] = FULL, False
        if not kind.allowed[node]:
            continue
        now = later = True
        for r in range(len(request)):
            if request[r] > 0:
                later &= future[node, r] >= request[r]
                now &= idle[node, r] >= request[r]
        some = candidates_on(facts.start, facts.resident, kind.may, fleet.gone, node)
        released = released_on(kind.releasable, kind.released_from, node)
        could = not kind.withheld[node] and len(some) + len(released) > 0
        for r in range(len(request)):
            if could and request[r] > 0:
                room = future[node, r]
                for row in some:
                    room += asks[shapes[row], r]
                for row in released:
                    room += asks[shapes[row], r]
                could = room >= request[r]
        if part > 0:
            cards, large, empty = fleet.cards[node].copy(), False, False
            for card in range(len(cards)):
                large |= cards[card] >= part
                empty |= min(cards[card], fleet.idle_cards[node, card]) >= part
            for row in some:
                if facts.card[row] != NONE:
                    cards[facts.card[row]] += facts.on_card[shapes[row]]
            for row in released:
                if facts.card[row] != NONE:
                    cards[facts.card[row]] += facts.on_card[shapes[row]]
            later, now, could = later & large, now & empty, could and cards.max() >= part
        if later:
            fits[node] = NOW if now else LATER
            many[FITTING_NOW if now else FITTING_LATER] += 1
        hopeful[node] = could
        if (later or could) and not kind.scored[node]:
            kind.unscored[many[UNSCORED]] = node
            many[UNSCORED] += 1
