"""The groups of a gang, each in one region, where slots do not say whether they fit: tried out, over columns.

See ``topology_packing`` for the order in which groups and regions are tried. What is inside a group is placed as soon
as its region is chosen, so the search is a walk down and up the tree of groups.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Longs, Rows
from pipeline.kernels import linked, shared, writing
from pipeline.placement.layout.placed_before import PlacedBefore, nothing_placed, place_as_before
from pipeline.placement.layout.region_slots import to_front
from pipeline.placement.layout.regions_of_parts import AskedOfRegions
from pipeline.placement.layout.room_left import AskedOfRoom, RoomLeft, count_slots, share

#: In a list of what to place inside a group: its tasks that are in no inner group.
OWN = -1


class GroupTree(NamedTuple):
    """Groups; the first one is the gang in the whole slice, and a group comes after the one around it.

    Attributes
    ----------
    own, total: int64[G, M]
        Tasks of each kind that are in no inner group, and all of them.
    todo: int64[T]
        What is to be placed inside each group: inner groups as they come, then OWN.
    begin: int64[G + 1]
        Where the ``todo`` of each group begins.
    region: int64[P, 2]
        Regions, from the first node up to the last: for each group those of the level that it prefers, then those of
        the one that it requires; both in the order of the nodes.
    edge: int64[2 * G + 1]
        Where each of these lists begins.
    depth
        How many groups lie around each other at most.
    """

    own: Longs
    total: Longs
    todo: Rows
    begin: Rows
    region: Longs
    edge: Rows
    depth: int


_NO_TASKS = np.zeros((0, 0), np.int64)
#: Of a gang that is not placed.
NO_TREE = GroupTree(
    _NO_TASKS, _NO_TASKS, NO_ROWS, np.zeros(1, np.int64), np.zeros((0, 2), np.int64), np.zeros(1, np.int64), 0
)


class AskedPlaces(NamedTuple):
    """What a gang asks of a slice of nodes, if nothing but resources, cards, nodes and regions matters to its tasks.

    Attributes
    ----------
    first
        The slice begins at this node.
    usable: bool[S, n]
        Nodes that each shape may use.
    regions
        What its parts ask of regions.
    tree
        Its groups.
    room
        Its tasks by shape.
    trials
        How many regions may be tried for all groups together.
    """

    first: int
    usable: Bools
    regions: AskedOfRegions
    tree: GroupTree
    room: AskedOfRoom
    trials: int


class _GroupWalk(NamedTuple):
    """The groups on the way from the gang to the group that is placed, by depth.

    Attributes
    ----------
    group, first, last, at: int64[depth]
        The group, its region, and how many of its ``todo`` are placed.
    order: int64[depth, T]
        Its ``todo`` in the order that is tried.
    moved: bool[depth, G + 1]
        Which of these moved to the front; the last column is OWN.
    region: int64[depth, P, 2]
        Regions for the next inner group.
    many, tried: int64[depth]
        How many these are, NONE while they are not known; how many were tried.
    chosen: int64[G, 2]
        The region in which each group was last begun: its first node, and the one after its last.
    left, usable, cards_left, held, slots
        The room before anything of the group was placed, see ``RoomLeft``.
    """

    group: Rows
    first: Rows
    last: Rows
    at: Rows
    order: Longs
    moved: Bools
    region: Longs
    many: Rows
    tried: Rows
    chosen: Longs
    left: Longs
    usable: Bools
    cards_left: Longs
    held: Longs
    slots: Longs


@shared
def no_groups_placed(tree: GroupTree, asked: AskedOfRoom) -> PlacedBefore:
    """Nothing is known yet of what becomes of groups in regions; of the gang itself nothing is noted."""
    return nothing_placed(tree.region[tree.edge[min(2, len(tree.edge) - 1)] :], asked)


@writing("room", "before")
def settled(tree: GroupTree, room: RoomLeft, trials: int, before: PlacedBefore) -> tuple[Longs, Longs]:
    """How many tasks of each kind of each group go to each node, int64[G, M, n]; no rows if no way was found.

    Also the region of each group, int64[G, 2]: its first node, and the one after its last.

    Parameters
    ----------
    room
        Of the slice; its slots are counted. It is changed where a way was found.
    trials
        How many regions may be tried for all groups together.
    before
        What became of groups in earlier calls for the same tree; more is noted.
    """
    tree = _in_order(tree, share(room.request, room.left))
    count_slots(room)
    walk, depth = _begun(tree, room), 0
    taken = np.zeros((len(tree.own), len(room.request), len(room.left)), np.int64)
    _enter(walk, 0, 0, 0, len(room.left), tree, room)
    while True:
        group, at = walk.group[depth], walk.at[depth]
        if at == tree.begin[group + 1] - tree.begin[group]:  # all inside the group is placed
            if depth == 0:
                return taken, walk.chosen
            depth -= 1
            walk.at[depth] += 1
            walk.many[depth] = NONE
            continue
        inner, first, last = walk.order[depth, at], walk.first[depth], walk.last[depth]
        if inner == OWN:
            taken[group] = 0
            if place_as_before(room, tree.own[group], first, last, taken[group], before):
                walk.at[depth] += 1
                continue
        else:
            if walk.many[depth] == NONE:
                walk.many[depth], walk.tried[depth] = _regions(inner, first, last, tree, room, walk.region[depth]), 0
            if walk.tried[depth] < walk.many[depth] and trials > 0:
                lower, upper = walk.region[depth, walk.tried[depth]]
                walk.tried[depth] += 1
                trials -= 1
                depth += 1
                _enter(walk, depth, inner, lower, upper, tree, room)
                continue
        _restore(walk, depth, room)
        if walk.moved[depth, inner] or trials <= 0 or _are_alike(walk.order[depth, : at + 1], tree):
            if depth == 0:
                return taken[:0], walk.chosen
            depth -= 1  # to the next region of the group
            continue
        walk.moved[depth, inner] = True
        to_front(walk.order[depth], at)
        walk.at[depth], walk.many[depth] = 0, NONE


@linked
def _are_alike(some: Rows, tree: GroupTree) -> bool:
    """Whether all of some things to place inside a group ask for the same, so that their order means nothing."""
    alike = True
    for one in some:
        alike &= one == some[0] or _is_like(some[0], one, tree)
    return alike


@linked
def _is_like(one: int, other: int, tree: GroupTree) -> bool:
    """Whether two groups without inner ones ask for the same tasks in the same regions."""
    for group in (one, other):
        if group == OWN or tree.begin[group + 1] - tree.begin[group] != 1 or tree.todo[tree.begin[group]] != OWN:
            return False
    if not (tree.own[one] == tree.own[other]).all():
        return False
    for which in range(2):
        at, to = tree.edge[2 * one + which], tree.edge[2 * other + which]
        many = tree.edge[2 * one + which + 1] - at
        if tree.edge[2 * other + which + 1] - to != many:
            return False
        if not (tree.region[at : at + many] == tree.region[to : to + many]).all():
            return False
    return True


@linked
def _in_order(tree: GroupTree, size: Floats) -> GroupTree:
    """The tree; of siblings, the one that asks for the largest part of the room comes first.

    ``size`` float64[M]: the share of the room that a task of each kind takes.
    """
    todo, asked = tree.todo.copy(), np.zeros(len(tree.own))
    for group in range(len(asked)):
        for kind in range(len(size)):
            asked[group] += tree.total[group, kind] * size[kind]
    for group in range(len(asked)):
        for begin in range(tree.begin[group] + 1, tree.begin[group + 1]):
            one, at = todo[begin], begin
            while one != OWN and at > tree.begin[group] and asked[todo[at - 1]] < asked[one]:
                todo[at] = todo[at - 1]
                at -= 1
            todo[at] = one
    return GroupTree(tree.own, tree.total, todo, tree.begin, tree.region, tree.edge, tree.depth)


@linked
def _begun(tree: GroupTree, room: RoomLeft) -> _GroupWalk:
    """Columns for a walk."""
    deep, groups, widest = tree.depth, len(tree.own), 0
    kinds, nodes = room.usable.shape
    for group in range(groups):
        widest = max(widest, tree.edge[2 * group + 2] - tree.edge[2 * group])
    # Without anti-affinity nodes stay open, and without cards none is held: nothing to keep.
    shut = kinds if len(room.domains) > 0 else 0
    parts = nodes if len(room.carded) > 0 else 0
    return _GroupWalk(
        group=np.zeros(deep, np.int64),
        first=np.zeros(deep, np.int64),
        last=np.zeros(deep, np.int64),
        at=np.zeros(deep, np.int64),
        order=np.zeros((deep, groups + 1), np.int64),
        moved=np.zeros((deep, groups + 1), np.bool_),
        region=np.zeros((deep, widest, 2), np.int64),
        many=np.zeros(deep, np.int64),
        tried=np.zeros(deep, np.int64),
        chosen=np.zeros((groups, 2), np.int64),
        left=np.empty((deep, nodes, room.left.shape[1]), np.int64),
        usable=np.empty((deep, shut, nodes), np.bool_),
        cards_left=np.empty((deep, parts, room.cards.shape[1]), np.int64),
        held=np.empty((deep, parts, kinds), np.int64),
        slots=np.empty((deep, kinds, nodes), np.int64),
    )


@linked
def _enter(walk: _GroupWalk, depth: int, group: int, first: int, last: int, tree: GroupTree, room: RoomLeft) -> None:
    """Begin with a group in a region; the room is kept."""
    begin, end = tree.begin[group], tree.begin[group + 1]
    walk.group[depth], walk.first[depth], walk.last[depth] = group, first, last
    walk.at[depth], walk.many[depth] = 0, NONE
    walk.chosen[group, 0], walk.chosen[group, 1] = first, last
    walk.order[depth, : end - begin] = tree.todo[begin:end]
    walk.moved[depth] = False
    walk.left[depth, first:last] = room.left[first:last]
    walk.slots[depth, :, first:last] = room.slots[:, first:last]
    if len(room.domains) > 0:
        walk.usable[depth] = room.usable
    if len(room.carded) > 0:
        walk.cards_left[depth, first:last] = room.cards_left[first:last]
        walk.held[depth, first:last] = room.held[first:last]


@linked
def _restore(walk: _GroupWalk, depth: int, room: RoomLeft) -> None:
    """Undo all that was placed of a group and inside it."""
    first, last = walk.first[depth], walk.last[depth]
    room.left[first:last] = walk.left[depth, first:last]
    room.slots[:, first:last] = walk.slots[depth, :, first:last]
    if len(room.domains) > 0:
        room.usable[:] = walk.usable[depth]
    if len(room.carded) > 0:
        room.cards_left[first:last] = walk.cards_left[depth, first:last]
        room.held[first:last] = walk.held[depth, first:last]


@linked
def _regions(group: int, first: int, last: int, tree: GroupTree, room: RoomLeft, found: Longs) -> int:
    """Regions inside ``first:last`` that might take a group; how many of ``found`` (int64[P, 2]) they are.

    Those of the preferred level come before those of the required one; of each the tightest first.
    """
    many, upto = 0, np.full(last - first, NONE, np.int64)
    for which in (2 * group, 2 * group + 1):
        some = tree.region[tree.edge[which] : tree.edge[which + 1]]
        have = np.empty(len(some), np.int64)
        for at in range(len(some)):
            lower, upper = max(some[at, 0], first), min(some[at, 1], last)
            have[at] = NONE
            if lower < upper and upto[lower - first] != upper:  # else none, or one that is there already
                have[at] = _slots(tree.total[group], lower, upper, room)
        for at in np.argsort(have, kind="mergesort"):
            if have[at] != NONE:
                lower, upper = max(some[at, 0], first), min(some[at, 1], last)
                found[many, 0], found[many, 1], upto[lower - first] = lower, upper, upper
                many += 1
    return many


@linked
def _slots(count: Longs, lower: int, upper: int, room: RoomLeft) -> int:
    """Slots of the nodes ``lower:upper`` for the biggest kind of those that are counted; NONE if a kind has too few."""
    biggest = NONE
    for kind in room.biggest:
        if count[kind] > 0:
            there = 0
            for n in range(lower, upper):
                if room.usable[kind, n]:
                    there += room.slots[kind, n]
            if there < count[kind]:
                return NONE
            biggest = there if biggest == NONE else biggest
    return biggest
