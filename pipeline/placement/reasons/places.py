"""What the nodes lack, whichever victims go: none admits the tasks, none is large enough, or only not together.

Each thing that binds tasks is left out in turn: what stands in the way is that without which there would be places.
Counting slots takes time in proportion to the nodes; a layout is only tried where it is small.
"""

from collections.abc import Collection, Iterator

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, distinct, frozen
from pipeline.cluster.resources import fits, slots
from pipeline.cluster.rules.anti_affinity import concerns, exclusions, states_terms
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.cluster.vocabulary import HARD_EFFECTS, Vocabulary
from pipeline.decision.explanation import Reason
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.reasons.question import Question
from pipeline.placement.reasons.slots import ShapeSlots, first_of_shape
from pipeline.records import replace

#: A layout is tried for at most this many tasks on this many nodes.
_TASKS, _NODES = 512, 4096
#: The law refuses, and not the nodes.
_LAWFUL_PLACES = (Reason.ILLEGAL, Reason.VETOED, Reason.QUOTA, Reason.BUDGET, Reason.ENDING)
#: There would be no places even if all other work were gone.
NO_PLACES_EVER = frozenset((Cause.NO_NODE, Cause.NODES, Cause.SIZE, Cause.CLUSTER, Cause.TOTAL, Cause.MIXED))
#: What binds tasks beside resources and nodes.
_BINDINGS = frozenset((Cause.REPELLED, Cause.CARDS, Cause.TORN))


def places(asked: Question) -> Iterator[Obstacle]:
    """What keeps the tasks of the minimum from having places even if all candidates go."""
    need = asked.need
    if need.minimum == 0:
        return
    if not _any_node(asked.snapshot):
        yield Obstacle(Cause.NO_NODE)
        return
    allowed = asked.host.allowed(need.shapes)
    single = [one for shape in range(len(need.shapes)) for one in _alone(asked, allowed, shape)]
    yield from single
    after = ShapeSlots.of(asked, allowed, asked.room_after)
    if len(after.enough(asked.domains)):
        bound = [] if asked.reason in _LAWFUL_PLACES else list(_together(asked, allowed))
        yield from bound
        ever = not any(one.cause in NO_PLACES_EVER for one in bound)
        room = asked.snapshot.room.future if not bound else asked.room_after if ever else asked.room_at_most
        yield from (one for one, enough in _closed_nodes(asked, allowed, room) if bound or enough)
        return
    empty = ShapeSlots.of(asked, allowed, asked.room_at_most)
    never = [] if single else list(_never(asked, allowed, empty))
    room = asked.room_at_most if never else asked.room_after
    closed = list(_closed_nodes(asked, allowed, room))
    sufficient = any(enough for _, enough in closed)
    yield from (one for one, enough in closed if enough or not sufficient)
    yield from never
    if not single and not never and len(after.enough(np.array([ROOT], np.int64))):
        yield from _short(asked, Cause.WIDTH, asked.domains, after)


def beyond_the_cluster(asked: Question) -> Iterator[Obstacle]:
    """Resources that the minimum asks more of than all nodes together have."""
    yield from _beyond(asked, Cause.TOTAL, asked.snapshot.capacity)


def free_room(asked: Question) -> Iterator[Obstacle]:
    """For a purpose that only moves tasks: resources that all nodes together have too little of."""
    if not _any_node(asked.snapshot):
        yield Obstacle(Cause.NO_NODE)
        return
    yield from _beyond(asked, Cause.FREE, asked.snapshot.room.free)


def _any_node(snapshot: Snapshot) -> bool:
    """Whether there is a node; one that has left is closed and holds nothing."""
    return bool(snapshot.nodes.allocatable.any())


def _alone(asked: Question, allowed: Bools, shape: int) -> Iterator[Obstacle]:
    """A shape that no node admits, or that is larger than any node that does."""
    snapshot, task = asked.snapshot, first_of_shape(asked.need, shape)
    if not allowed[shape].any():
        yield Obstacle(Cause.NODES, task=task, wanted=1)
        return
    request = asked.need.request[shape]
    for row in np.flatnonzero(request > 0).tolist():
        most = int(snapshot.nodes.allocatable[:, row].max(where=allowed[shape], initial=0))
        if request[row] > most:
            what = snapshot.vocabulary.resources[row]
            yield Obstacle(Cause.SIZE, task=task, what=what, wanted=float(request[row]), found=float(most))


def _short(asked: Question, cause: Cause, domains: Rows, there: ShapeSlots) -> Iterator[Obstacle]:
    """The shape that lacks most in the domain that comes closest, what it lacks, and the level of the domains."""
    reach, count = there.reach(domains), asked.need.count
    if len(domains) == 0:
        return
    best = int(np.argmin(np.maximum(count - reach, 0).max(axis=1)))
    shape = int(np.argmax(count - reach[best]))
    wanted, found, what = int(count[shape]), int(reach[best, shape]), _level_of(asked, int(domains[best]))
    yield Obstacle(cause, task=first_of_shape(asked.need, shape), what=what, wanted=wanted, found=found)


def _level_of(asked: Question, domain: int) -> str:
    """The name of the level of a domain; empty for the whole cluster."""
    level = int(asked.snapshot.topology.level[domain])
    return "" if level == NONE else asked.snapshot.vocabulary.levels[level]


# -- without any other work --------------------------------------------------------------------------------------------


def _never(asked: Question, allowed: Bools, empty: ShapeSlots) -> Iterator[Obstacle]:
    """What lacks even if all other work were gone: slots for one shape, or room for all shapes together."""
    root = np.array([ROOT], np.int64)
    if not len(empty.enough(root)):
        yield from _short(asked, Cause.CLUSTER, root, empty)
    elif not len(empty.enough(asked.domains)):
        yield from _short(asked, Cause.WIDTH, asked.domains, empty)
    elif len(asked.need.shapes) > 1:
        yield from _never_together(asked, allowed)


def _never_together(asked: Question, allowed: Bools) -> Iterator[Obstacle]:
    """What lacks for tasks of several shapes that have slots enough, each by itself: resources in sum, or a layout."""
    need, room = asked.need, asked.room_at_most
    short = list(_beyond(asked, Cause.TOTAL, np.maximum(room[allowed.any(axis=0)], 0).sum(axis=0)))
    yield from short
    if short or need.minimum > _TASKS or _placed(asked, asked.domains, allowed, room, NO_ROWS, _BINDINGS):
        return
    root = np.array([ROOT], np.int64)
    domains = asked.domains if _placed(asked, root, allowed, room, NO_ROWS, _BINDINGS) else root
    start, stop = asked.snapshot.topology.start, asked.snapshot.topology.stop
    most, best, taken = -1, NONE, np.zeros_like(need.count)
    for domain in domains.tolist():
        here = slice(start[domain], stop[domain])
        placed = place_classes(need.request, need.count, np.ascontiguousarray(allowed[:, here]), room[here])
        if placed.sum() > most:
            most, best, taken = int(placed.sum()), domain, placed.sum(axis=1)
    if most < need.minimum:
        task = first_of_shape(need, int(np.argmax(need.count - taken)))
        yield Obstacle(Cause.MIXED, task=task, what=_level_of(asked, best), wanted=need.minimum, found=most)


def _beyond(asked: Question, cause: Cause, there: Longs) -> Iterator[Obstacle]:
    """Resources that the minimum asks more of than there is (int64[R])."""
    total = asked.need.total
    for row in np.flatnonzero(total > there).tolist():
        what = asked.snapshot.vocabulary.resources[row]
        yield Obstacle(cause, what=what, wanted=float(total[row]), found=float(there[row]))


# -- nodes that would help ---------------------------------------------------------------------------------------------


def _closed_nodes(asked: Question, allowed: Bools, room: Longs) -> Iterator[tuple[Obstacle, bool]]:
    """Nodes with room (int64[N, R]) that are cordoned, tainted or not selected, and whether they would be enough."""
    if allowed.all():
        return
    # Of a shape that no node admits, whichever node could take it helps.
    rooms = [room if row.any() else asked.snapshot.nodes.allocatable for row in allowed]
    fits = [slots(request, there) > 0 for request, there in zip(asked.need.request, rooms, strict=True)]
    closed: Bools = np.asarray(np.stack(fits) & ~allowed)
    if not closed.any():
        return
    for cause, open_to in _relaxed(asked).items():
        helps = closed & open_to
        if helps.any():
            shape = int(np.argmax(helps.any(axis=1)))
            what = _taints(asked.snapshot, np.flatnonzero(helps[shape])) if cause is Cause.TAINTED else ""
            enough = ShapeSlots.of(asked, open_to | allowed, room).enough(asked.domains)
            found = Obstacle(cause, task=first_of_shape(asked.need, shape), what=what, found=int(helps[shape].sum()))
            yield found, len(enough) > 0


def _relaxed(asked: Question) -> dict[Cause, Bools]:
    """bool[S, N] by cause: nodes that would admit the shapes without cordons, taints or selectors."""
    snapshot, nodes, words = asked.snapshot, asked.snapshot.nodes, asked.snapshot.vocabulary
    anywhere = list(words.constraints)
    for row in distinct(snapshot.shapes.constraint[asked.need.shapes]).tolist():  # there may be thousands of others
        anywhere[row] = replace(anywhere[row], node_selector=(), node_affinity=())
    present = nodes.allocatable.any(axis=1)  # as in `_any_node`
    states = {
        Cause.CORDONED: replace(nodes, schedulable=frozen(present, np.bool_)),
        Cause.TAINTED: replace(nodes, taint_set=frozen(np.zeros(len(nodes)), np.int32)),
        Cause.UNSELECTED: nodes,
    }
    result = {}
    for cause, table in states.items():
        vocabulary = replace(words, constraints=tuple(anywhere)) if cause is Cause.UNSELECTED else words
        result[cause] = asked.host.on(replace(snapshot, nodes=table, vocabulary=vocabulary)).allowed(asked.need.shapes)
    return result


def _taints(snapshot: Snapshot, nodes: Rows) -> str:
    """What some nodes are tainted with, as ``kubectl`` writes it: different ones beside each other."""
    sets = [snapshot.vocabulary.taint_sets[row] for row in distinct(snapshot.nodes.taint_set[nodes]).tolist()]
    written = ((f"{one.key}={one.value}:{one.effect}" for one in some if one.effect in HARD_EFFECTS) for some in sets)
    return " or ".join(dict.fromkeys(map(", ".join, written)))


# -- together ----------------------------------------------------------------------------------------------------------


def _together(asked: Question, allowed: Bools) -> Iterator[Obstacle]:
    """Anti-affinity, cards or levels of parts: each that stands in the way by itself, else all that bind the tasks.

    Nothing if all tasks have places once all candidates have gone: then the law is in the way, unless the solver says
    that what it leaves has slots enough.
    """
    need, room, leaving = asked.need, asked.room_after, asked.candidates
    present = {cause: found for cause, found in _bindings(asked, allowed) if found is not None}
    shapes = len(need.shapes) > 1 and not asked.by_task
    several = Obstacle(Cause.SHAPES, task=first_of_shape(need, 0), wanted=need.minimum, found=len(need.shapes))
    tried = need.minimum <= _TASKS and (shapes or len(present) > 0)
    if tried and asked.reason is not Reason.NO_PACKING and _placed(asked, asked.domains, allowed, room, leaving):
        if shapes and len(leaving) == 0 and fits(need.total, asked.host.headroom_of(asked.attempt.podgroups[0])):
            yield several  # nothing has to go for it, and yet it was not placed: in order they take each other's room
        return
    never = list(_never_together(asked, allowed)) if shapes else []
    if never:
        yield from never
        return
    if len(present) > 1 and tried:
        loosened = (cause for cause in present if _placed(asked, asked.domains, allowed, room, leaving, {cause}))
        present = {cause: present[cause] for cause in loosened} or present
    yield from present.values()
    if shapes and not present:
        yield several


def _bindings(asked: Question, allowed: Bools) -> Iterator[tuple[Cause, Obstacle | None]]:
    """What binds the tasks beside slots."""
    snapshot, need = asked.snapshot, asked.need
    rows = need.tasks[: need.minimum]
    if concerns(snapshot, rows):
        constraint = snapshot.shapes.constraint[snapshot.tasks.shape[rows[:1]]]
        found = exclusions(snapshot, constraint, snapshot.tasks.label_set[rows[:1]], asked.candidates).excluded[0]
        yield Cause.REPELLED, Obstacle(Cause.REPELLED, task=int(rows[0]), found=int((found & allowed[0]).sum()))
    carded = rows[snapshot.shapes.on_card[snapshot.tasks.shape[rows]] > 0]
    if len(carded):
        wanted = float(snapshot.shapes.on_card[snapshot.tasks.shape[carded]].max())
        yield Cause.CARDS, Obstacle(Cause.CARDS, task=int(carded[0]), wanted=wanted)
    inner = [part for part in need.parts if part.subgroup != NONE or len(need.podgroups) > 1]
    for part in [one for one in inner if one.required_level != NONE]:
        inside = need.inside[need.parts.index(part)]
        mine = rows[inside[inside < need.minimum]]
        if len(mine):
            level = snapshot.vocabulary.levels[part.required_level]
            first = int(mine[0])
            yield Cause.TORN, Obstacle(Cause.TORN, podgroup=part.podgroup, task=first, what=level, wanted=len(mine))
            return


def _placed(
    asked: Question, domains: Rows, allowed: Bools, room: Longs, leaving: Rows, loose: Collection[Cause] = frozenset()
) -> bool:  # fmt: skip
    """Whether the minimum has places in some domain, in a room of int64[N, R]; what is ``loose`` does not bind it."""
    snapshot, need = asked.snapshot, asked.need
    if Cause.REPELLED in loose and states_terms(snapshot):
        snapshot = replace(snapshot, vocabulary=snapshot.vocabulary.once(_without_terms))
    if Cause.CARDS in loose and snapshot.shapes.on_card.any():
        nothing = frozen(np.zeros(len(snapshot.shapes)), np.int64)
        snapshot = replace(snapshot, shapes=replace(snapshot.shapes, on_card=nothing))
    if Cause.TORN in loose:
        need = replace(need, parts=tuple(part._replace(required_level=NONE) for part in need.parts))
    start, stop, packings = snapshot.topology.start, snapshot.topology.stop, Packings(need, allowed, snapshot)
    for domain in ShapeSlots.of(asked, allowed, room).enough(domains).tolist():
        first, last = int(start[domain]), int(stop[domain])
        if last - first > _NODES:
            continue
        if packings.on(first, last).places(room[first:last].copy(), leaving) is not None:
            return True
    return False


def _without_terms(words: Vocabulary) -> Vocabulary:
    """The vocabulary with constraints that repel nothing."""
    return replace(words, constraints=tuple(replace(one, anti_affinity=()) for one in words.constraints))
