"""Fleets for measurements in which more than resources matter: shapes, roles, subgroups, cards, anti-affinity.

Each function makes one generated fleet from another: something in the fleet has it, and with ``gang`` the gang that
waits has it too.
"""

from collections.abc import Callable, Mapping

import numpy as np

from actors.fleets.generated import LEVELS, RESOURCES, GeneratedFleet
from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen, with_rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Roles, Shapes, Subgroups
from pipeline.cluster.vocabulary import HOSTNAME, AntiAffinity, Constraint
from pipeline.records import replace

_DEVICES, _MEMORY = RESOURCES.index("nvidia.com/gpu"), RESOURCES.index("memory")
#: By at most this many KiB tasks ask for different amounts of memory.
_LESS = 1_000
#: Where the second and the third of the gang's shapes or roles begin, as parts of its tasks.
_CUTS = (1 / 64, 1 / 8)
#: In how many subgroups the gang is divided, each in one rack; and the part of other podgroups that have two.
_SUBGROUPS, _DIVIDED = 8, 0.1
#: Cards of a node, what each has, and how much of one a task asks for.
_CARDS, _CARD, _PART = 8, 100, 50
#: The part of the nodes on which a task runs that repels others like it, and what these are called.
_REPELLING, _LABEL = 0.1, ("app", "noisy")


def with_shapes(fleet: GeneratedFleet, *, gang: bool) -> GeneratedFleet:
    """The gang: a few tasks without a device, some with two, the others with one. The fleet has 33 shapes anyway."""
    if not gang:
        return fleet
    snapshot, rows = fleet.snapshot, _waiting(fleet)
    own, many = int(snapshot.tasks.shape[rows[0]]), len(snapshot.shapes)
    request = np.repeat(snapshot.shapes.request[own : own + 1], 2, axis=0)
    request[:, _DEVICES] = 0, 2
    shape = np.array([many, many + 1, own])[_thirds(len(rows))]
    tasks = replace(snapshot.tasks, shape=with_rows(snapshot.tasks.shape, rows, shape))
    return _fleet(fleet, replace(snapshot, tasks=tasks, shapes=_with_more(snapshot.shapes, request, constraint=0)))


def with_amounts(fleet: GeneratedFleet, many: int) -> GeneratedFleet:
    """Podgroups that run ask for a little less memory, by different amounts, so that there are ``many`` shapes or less.

    It changes next to nothing about what fits where.
    """
    snapshot, draw = fleet.snapshot, np.random.default_rng(1)
    tasks, table, each = snapshot.tasks, snapshot.shapes, max(many // len(snapshot.shapes), 1)
    variant = draw.integers(0, each, len(snapshot.podgroups))
    variant[fleet.gang] = 0
    kinds, shape = np.unique(tasks.shape * each + variant[tasks.podgroup], return_inverse=True)
    request = table.request[kinds // each].copy()
    request[:, _MEMORY] -= np.where(kinds % each > 0, draw.integers(0, _LESS, len(kinds)) << 10, 0)
    columns = table.constraint[kinds // each], table.on_card[kinds // each]
    shapes = Shapes(frozen(request, np.int64), frozen(columns[0], np.int32), frozen(columns[1], np.int64))
    return _fleet(fleet, replace(snapshot, tasks=replace(tasks, shape=frozen(shape, np.int32)), shapes=shapes))


def with_roles(fleet: GeneratedFleet, *, gang: bool) -> GeneratedFleet:
    """The gang: three roles, each with a minimum. The podgroups of the fleet have one to three anyway."""
    if not gang:
        return fleet
    snapshot, rows = fleet.snapshot, _waiting(fleet)
    of, many = _thirds(len(rows)), len(snapshot.roles)
    roles = Roles(
        frozen(np.append(snapshot.roles.podgroup, [fleet.gang] * 3), np.int32),
        frozen(np.append(snapshot.roles.min_available, np.bincount(of)), np.int32),
    )
    tasks = replace(snapshot.tasks, role=with_rows(snapshot.tasks.role, rows, many + of))
    return _fleet(fleet, replace(snapshot, tasks=tasks, roles=roles))


def with_subgroups(fleet: GeneratedFleet, *, gang: bool) -> GeneratedFleet:
    """A tenth of the podgroups have two subgroups, one half of their tasks each; the gang eight, each in one rack."""
    snapshot, tasks = fleet.snapshot, fleet.snapshot.tasks
    sizes = np.bincount(tasks.podgroup, minlength=fleet.gang + 1)
    first = np.cumsum(sizes) - sizes  # tasks are in the order of their podgroups
    divided = np.arange(fleet.gang)[_some(fleet.gang, _DIVIDED) & (sizes[: fleet.gang] > 1)]
    owner, part = np.repeat(divided, 2), np.tile([0, 1], len(divided))
    count = (sizes[owner] + part) // 2
    least = np.minimum(count, snapshot.podgroups.min_available[owner] // 2)
    level, begin = np.full(len(owner), NONE), first[owner] + part * (sizes[owner] // 2)
    if gang:
        each = np.full(_SUBGROUPS, sizes[fleet.gang] // _SUBGROUPS)
        owner, count, least = np.append(owner, each * 0 + fleet.gang), np.append(count, each), np.append(least, each)
        level = np.append(level, each * 0 + LEVELS.index("rack"))
        begin = np.append(begin, first[fleet.gang] + np.arange(_SUBGROUPS) * each)
    rows = np.repeat(begin - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(count.sum())
    subgroup = with_rows(tasks.subgroup, rows, np.repeat(np.arange(len(count)), count))
    none = frozen(np.full(len(count), NONE), np.int32)
    table = Subgroups(
        frozen(owner, np.int32), none, frozen(least, np.int32), none, frozen(level, np.int32), none
    )  # fmt: skip
    return _fleet(fleet, replace(snapshot, subgroups=table, tasks=replace(tasks, subgroup=subgroup)))


def with_shapes_in_subgroups(fleet: GeneratedFleet, *, gang: bool) -> GeneratedFleet:
    """Both: the tasks of the gang's subgroups are of three shapes."""
    return with_shapes(with_subgroups(fleet, gang=gang), gang=gang)


def with_cards(fleet: GeneratedFleet, *, gang: bool) -> GeneratedFleet:
    """Nodes have eight cards; tasks of one of the shapes with one device, and the gang's, hold half a card each."""
    snapshot, tasks = fleet.snapshot, fleet.snapshot.tasks
    own = int(tasks.shape[_waiting(fleet)[0]])
    asking = int(np.flatnonzero(snapshot.shapes.request[:, _DEVICES] == 1)[0])
    amounts = np.zeros(len(snapshot.shapes), np.int64)
    amounts[[asking, own] if gang else [asking]] = _PART
    rows = np.flatnonzero((tasks.shape == asking) & (tasks.node != NONE))
    rows = rows[np.argsort(tasks.node[rows], kind="stable")]
    node = tasks.node[rows]
    rank = np.arange(len(rows)) - np.searchsorted(node, node)  # at most eight on a node
    nodes = replace(
        snapshot.nodes,
        cards=frozen(np.full((len(snapshot.nodes), _CARDS), _CARD), np.int64),
        card_set=frozen(np.ones(len(snapshot.nodes)), np.int32),
    )
    vocabulary = replace(snapshot.vocabulary, card_sets=((), tuple(map(str, range(_CARDS)))))
    shapes = replace(snapshot.shapes, on_card=frozen(amounts, np.int64))
    tasks = replace(tasks, card=with_rows(tasks.card, rows, rank))
    return _fleet(fleet, replace(snapshot, nodes=nodes, vocabulary=vocabulary, shapes=shapes, tasks=tasks))


def with_anti_affinity(fleet: GeneratedFleet, *, gang: bool) -> GeneratedFleet:
    """On a tenth of the nodes a task repels others like it; the gang is repelled by them too."""
    snapshot, tasks = fleet.snapshot, fleet.snapshot.tasks
    many, own = len(snapshot.shapes), int(tasks.shape[_waiting(fleet)[0]])
    running = np.flatnonzero(tasks.node != NONE)
    first = running[np.unique(tasks.node[running], return_index=True)[1]]
    rows = first[_some(len(first), _REPELLING)]
    repels = Constraint(anti_affinity=(AntiAffinity(HOSTNAME, (_LABEL,)),))
    constraint = np.zeros(many, np.int32)
    constraint[own] = 1 if gang else 0
    shapes = replace(snapshot.shapes, constraint=frozen(constraint, np.int32))
    # Each shape once more, for tasks that repel others.
    shapes = _with_more(shapes, snapshot.shapes.request, constraint=1)
    vocabulary = replace(
        snapshot.vocabulary, constraints=(*snapshot.vocabulary.constraints, repels), label_sets=((), (_LABEL,))
    )
    tasks = replace(
        tasks,
        shape=with_rows(tasks.shape, rows, tasks.shape[rows] + many),
        label_set=with_rows(tasks.label_set, rows, 1),
    )
    budgets = replace(snapshot.budgets, covers=frozen(np.zeros((0, 2)), np.bool_))
    return _fleet(fleet, replace(snapshot, vocabulary=vocabulary, shapes=shapes, tasks=tasks, budgets=budgets))


#: What a fleet and its gang can have, by name.
MIXED: Mapping[str, Callable[..., GeneratedFleet]] = {
    "shapes": with_shapes,
    "roles": with_roles,
    "subgroups": with_subgroups,
    "subgroup_shapes": with_shapes_in_subgroups,
    "cards": with_cards,
    "affinity": with_anti_affinity,
}


def _fleet(fleet: GeneratedFleet, snapshot: Snapshot) -> GeneratedFleet:
    return GeneratedFleet(snapshot, fleet.gang)


def _waiting(fleet: GeneratedFleet) -> Rows:
    """int64[K]: the tasks of the gang."""
    return np.flatnonzero(fleet.snapshot.tasks.podgroup == fleet.gang)


def _thirds(many: int) -> Rows:
    """int64[K]: for each of the gang's tasks 0, 1 or 2: in which of three unequal parts it is."""
    return np.searchsorted(np.array(_CUTS) * many, np.arange(many), side="right")


def _some(many: int, part: float) -> Bools:
    """bool[M]: about this part of ``many`` rows, spread evenly."""
    every = np.floor(np.arange(many + 1) * part)
    return np.asarray(every[1:] > every[:-1])


def _with_more(shapes: Shapes, request: Longs, *, constraint: int) -> Shapes:
    """The table with more shapes at its end, all with one constraint and without a card."""
    more = len(request)
    return Shapes(
        frozen(np.concatenate([shapes.request, request]), np.int64),
        frozen(np.append(shapes.constraint, [constraint] * more), np.int32),
        frozen(np.append(shapes.on_card, [0] * more), np.int64),
    )
