"""What the nodes lack, whichever victims go: none admits the tasks, none is large enough, or only not together.

Each thing that binds tasks is left out in turn: what stands in the way is that without which there would be places.
Counting slots takes time in proportion to the nodes; a layout is only tried where it is small.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen
from pipeline.cluster.resources import slots
from pipeline.cluster.rules.anti_affinity import concerns, exclusions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.cluster.vocabulary import HARD_EFFECTS
from pipeline.decision.explanation import Reason
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import Need
from pipeline.placement.reasons.question import Question
from pipeline.records import replace

#: A layout is tried for at most this many tasks on this many nodes.
_TASKS, _NODES = 512, 4096
#: The law refuses, and not the nodes.
_LAWFUL_PLACES = (Reason.ILLEGAL, Reason.VETOED, Reason.QUOTA, Reason.BUDGET, Reason.ENDING)


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
    after = _Slots.of(asked, allowed, asked.room_after)
    if len(after.enough(asked.domains)):
        bound = [] if asked.reason in _LAWFUL_PLACES else list(_together(asked, allowed))
        yield from bound
        room = asked.room_after if bound else asked.snapshot.room.future
        yield from (one for one, enough in _closed_nodes(asked, allowed, room) if bound or enough)
        return
    closed = list(_closed_nodes(asked, allowed, asked.room_after))
    sufficient = any(enough for _, enough in closed)
    yield from (one for one, enough in closed if enough or not sufficient)
    if single:
        return
    empty, root = _Slots.of(asked, allowed, asked.room_at_most), np.array([ROOT], np.int64)
    if not len(empty.enough(root)):
        yield from _short(asked, Cause.CLUSTER, root, empty)
    elif len(after.enough(root)):
        yield from _short(asked, Cause.WIDTH, asked.domains, after)
    elif not len(empty.enough(asked.domains)):
        yield from _short(asked, Cause.WIDTH, asked.domains, empty)


def free_room(asked: Question) -> Iterator[Obstacle]:
    """For a purpose that only moves tasks: resources that all nodes together have too little of."""
    snapshot, total = asked.snapshot, asked.need.total
    if not _any_node(snapshot):
        yield Obstacle(Cause.NO_NODE)
        return
    free = snapshot.room.free
    for row in np.flatnonzero(total > free).tolist():
        what = snapshot.vocabulary.resources[row]
        yield Obstacle(Cause.FREE, what=what, wanted=float(total[row]), found=float(free[row]))


def _any_node(snapshot: Snapshot) -> bool:
    """Whether there is a node; one that has left is closed and holds nothing."""
    return bool(snapshot.nodes.allocatable.any())


def _alone(asked: Question, allowed: Bools, shape: int) -> Iterator[Obstacle]:
    """A shape that no node admits, or that is larger than any node that does."""
    snapshot, task = asked.snapshot, _first(asked.need, shape)
    if not allowed[shape].any():
        yield Obstacle(Cause.NODES, task=task, wanted=1)
        return
    request = asked.need.request[shape]
    for row in np.flatnonzero(request > 0).tolist():
        most = int(snapshot.nodes.allocatable[:, row].max(where=allowed[shape], initial=0))
        if request[row] > most:
            what = snapshot.vocabulary.resources[row]
            yield Obstacle(Cause.SIZE, task=task, what=what, wanted=float(request[row]), found=float(most))


def _first(need: Need, shape: int) -> int:
    """The task that stands for a shape."""
    return int(need.tasks[np.argmax(need.shape == shape)])


# -- slots -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slots:
    """How many tasks of each shape of the need fit, each shape by itself, with one room of the nodes.

    Attributes
    ----------
    running: int64[S, N + 1]
        Sums over the nodes before each.
    """

    asked: Question
    running: Longs

    @classmethod
    def of(cls, asked: Question, allowed: Bools, room: Longs) -> "_Slots":
        """Count on the nodes that are allowed (bool[S, N]), with a room of int64[N, R]."""
        slots, _ = node_slots(asked.need.request, asked.need.count, allowed, 0, room)
        running = np.zeros((len(slots), len(room) + 1), np.int64)
        slots.cumsum(axis=1, out=running[:, 1:])
        return cls(asked, running)

    def reach(self, domains: Rows) -> Longs:
        """int64[D, S]: how many tasks of each shape the domains take."""
        topology = self.asked.snapshot.topology
        return np.asarray((self.running[:, topology.stop[domains]] - self.running[:, topology.start[domains]]).T)

    def enough(self, domains: Rows) -> Rows:
        """int64[E]: the domains that have enough slots for each shape."""
        return np.asarray(domains[(self.reach(domains) >= self.asked.need.count).all(axis=1)])


def _short(asked: Question, cause: Cause, domains: Rows, there: _Slots) -> Iterator[Obstacle]:
    """The shape that lacks most in the domain that comes closest, what it lacks, and the level of the domains."""
    reach, count = there.reach(domains), asked.need.count
    if len(domains) == 0:
        return
    best = int(np.argmin(np.maximum(count - reach, 0).max(axis=1)))
    shape = int(np.argmax(count - reach[best]))
    level = int(asked.snapshot.topology.level[domains[best]])
    what = "" if level == NONE else asked.snapshot.vocabulary.levels[level]
    wanted, found = int(count[shape]), int(reach[best, shape])
    yield Obstacle(cause, task=_first(asked.need, shape), what=what, wanted=wanted, found=found)


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
            node = int(np.argmax(helps[shape]))
            what = _taints(asked.snapshot, node) if cause is Cause.TAINTED else ""
            enough = _Slots.of(asked, open_to | allowed, room).enough(asked.domains)
            told = Obstacle(cause, task=_first(asked.need, shape), what=what, found=int(helps[shape].sum()))
            yield told, len(enough) > 0


def _relaxed(asked: Question) -> dict[Cause, Bools]:
    """bool[S, N] by cause: nodes that would admit the shapes without cordons, taints or selectors."""
    snapshot, nodes, words = asked.snapshot, asked.snapshot.nodes, asked.snapshot.vocabulary
    anywhere = tuple(replace(one, node_selector=(), node_affinity=()) for one in words.constraints)
    present = nodes.allocatable.any(axis=1)  # as in `_any_node`
    states = {
        Cause.CORDONED: replace(nodes, schedulable=frozen(present, np.bool_)),
        Cause.TAINTED: replace(nodes, taint_set=frozen(np.zeros(len(nodes)), np.int32)),
        Cause.UNSELECTED: nodes,
    }
    result = {}
    for cause, table in states.items():
        vocabulary = replace(words, constraints=anywhere) if cause is Cause.UNSELECTED else words
        result[cause] = asked.host.on(replace(snapshot, nodes=table, vocabulary=vocabulary)).allowed(asked.need.shapes)
    return result


def _taints(snapshot: Snapshot, node: int) -> str:
    """What a node is tainted with, as ``kubectl`` writes it."""
    taints = snapshot.vocabulary.taint_sets[int(snapshot.nodes.taint_set[node])]
    return ", ".join(f"{one.key}={one.value}:{one.effect}" for one in taints if one.effect in HARD_EFFECTS)


# -- together ----------------------------------------------------------------------------------------------------------


def _together(asked: Question, allowed: Bools) -> Iterator[Obstacle]:
    """Anti-affinity, cards or levels of parts: each that stands in the way by itself, else all that bind the tasks.

    Nothing if all tasks have places once all candidates have gone: then the law is in the way, unless the solver says
    that what it leaves has slots enough.
    """
    present = {cause: told for cause, told in _bindings(asked, allowed) if told is not None}
    shapes = len(asked.need.shapes) > 1 and not asked.by_task
    tried = asked.need.minimum <= _TASKS and (shapes or len(present) > 0)
    if tried and asked.reason is not Reason.NO_ARRANGEMENT and _placed(asked, allowed):
        return
    if len(present) > 1 and tried:
        alone = {cause: told for cause, told in present.items() if _placed(asked, allowed, loose=cause)}
        present = alone or present
    yield from present.values()
    if shapes and not present:
        yield Obstacle(
            Cause.SHAPES, task=_first(asked.need, 0), wanted=asked.need.minimum, found=len(asked.need.shapes)
        )


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


def _placed(asked: Question, allowed: Bools, *, loose: Cause | None = None) -> bool:
    """Whether the minimum has places in some domain; with ``loose``, once that no longer binds it."""
    snapshot, need = asked.snapshot, asked.need
    if loose is Cause.REPELLED:
        words = snapshot.vocabulary
        free = tuple(replace(one, anti_affinity=()) for one in words.constraints)
        snapshot = replace(snapshot, vocabulary=replace(words, constraints=free))
    elif loose is Cause.CARDS:
        nothing = frozen(np.zeros(len(snapshot.shapes)), np.int64)
        snapshot = replace(snapshot, shapes=replace(snapshot.shapes, on_card=nothing))
    elif loose is not None:
        parts = tuple(part._replace(required_level=NONE) if part.subgroup != NONE else part for part in need.parts)
        need = replace(need, parts=parts)
    start, stop, packings = snapshot.topology.start, snapshot.topology.stop, Packings(need, allowed, snapshot)
    for domain in _Slots.of(asked, allowed, asked.room_after).enough(asked.domains).tolist():
        first, last = int(start[domain]), int(stop[domain])
        if last - first > _NODES:
            continue
        if packings.on(first, last).places(asked.room_after[first:last].copy(), asked.candidates) is not None:
            return True
    return False
