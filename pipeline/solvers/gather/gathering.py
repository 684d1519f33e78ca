"""Gathering some tasks: a vertex for them and a node for each."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.rules.anti_affinity import concerned
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.topology_packing import pack
from pipeline.placement.need import Need, all_of
from pipeline.records import replace
from pipeline.solvers.gather.choice import candidates
from pipeline.solvers.gather.dealing import dealt
from pipeline.solvers.gather.multiples import Steps
from pipeline.solvers.gather.offers import kinds_of, offers_of
from pipeline.solvers.gather.tree import tree_of


@dataclass(frozen=True)
class GatherSite:
    """Where a need is gathered.

    Attributes
    ----------
    room: int64[N, R]
        What the nodes have for it, victims already gone.
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use.
    existing: int64[N]
        Existing tasks, near which it should be.
    leaving: int64[V]
        Victims.
    steps
        The multiples in which domains take its tasks; None if any number will do.
    """

    snapshot: Snapshot
    need: Need
    room: Longs
    allowed: Bools
    existing: Longs
    leaving: Rows
    steps: Steps | None = None


@dataclass(frozen=True)
class Gathered:
    """Where tasks (int64[K], rows) went: ``node`` int64[K], all below one vertex, whose height is ``tier``."""

    tasks: Rows
    node: Rows
    tier: int


def in_rank_order(snapshot: Snapshot, rows: Rows) -> Rows:
    """int64[K]: ``rows`` by index; those without one come last, by podgroup, role and the number that ends the name."""
    tasks = snapshot.tasks
    index, number, owner = tasks.index[rows], tasks.number[rows], tasks.podgroup[rows]
    keys = (
        tasks.order[rows],
        number,
        number == NONE,
        tasks.role[rows],
        snapshot.seniority[owner],
        index,
        index == NONE,
    )
    return rows[np.lexsort(keys)]


def gathered(site: GatherSite, rows: Rows, outer: Rows) -> Gathered | None:
    """Gather the tasks ``rows`` of the need within one of the domains ``outer`` (of one height); None if it cannot be.

    Tasks that repel one another, hold cards or have parts with a layer of their own are packed in the vertex, not dealt
    out in rank order.
    """
    snapshot, tree = site.snapshot, site.snapshot.once(tree_of)
    kinds = kinds_of(snapshot, in_rank_order(snapshot, rows), site.allowed, site.need.shapes)
    if site.steps is not None and len(rows) % site.steps.whole:
        return None
    offers = offers_of(tree, kinds, site.room, site.existing, site.steps)
    entangled = is_entangled(snapshot, site.need, rows)
    for vertex in candidates(tree, offers, outer):
        if entangled:
            order, node = rows, _packed(site, rows, *tree.slice(vertex))
        else:
            order, node = kinds.rows, dealt(tree, offers, kinds, site.room, vertex, site.steps)
        if node is not None and (site.steps is None or site.steps.kept(tree, node)):
            return Gathered(order, node, int(tree.tier[vertex]))
    return None


def most(site: GatherSite, rows: Rows, outer: Rows) -> int:
    """How many of the tasks ``rows`` one of the domains offers slots for, at most."""
    tree = site.snapshot.once(tree_of)
    kinds = kinds_of(site.snapshot, in_rank_order(site.snapshot, rows), site.allowed, site.need.shapes)
    slots = offers_of(tree, kinds, site.room, site.existing, site.steps).slots[outer]
    many = min(int(slots.max(initial=0)), len(rows))
    return many if site.steps is None else many // site.steps.whole * site.steps.whole


def is_entangled(snapshot: Snapshot, need: Need, rows: Rows) -> bool:
    """Whether anything besides slots decides where the tasks of a need fit."""
    shape = snapshot.tasks.shape[rows]
    inner = any(
        part.subgroup != NONE and (part.required_level, part.preferred_level) != (NONE, NONE) for part in need.parts
    )
    carded = bool(snapshot.shapes.on_card[shape].any())
    return (
        inner
        or carded
        or bool(concerned(snapshot, snapshot.shapes.constraint[shape], snapshot.tasks.label_set[rows]).any())
    )


def first_of(need: Need, many: int) -> Need:
    """The need for its first ``many`` tasks, which include the whole minimum or are a part of it."""
    return replace(
        need, tasks=need.tasks[:many], shape=need.shape[:many], part=need.part[:many], minimum=min(need.minimum, many)
    )


def of_some(need: Need, some: Bools) -> Need:
    """The need for ``some`` (bool[K]) of its tasks; none of them belongs to the minimum."""
    return need if some.all() else replace(need, tasks=need.tasks[some], shape=need.shape[some], part=need.part[some])


def _packed(site: GatherSite, rows: Rows, start: int, stop: int) -> Rows | None:
    """int64[K]: a node for each of ``rows``, which lead the need's tasks."""
    need = all_of(first_of(site.need, len(rows)))
    return pack(need, site.allowed[:, start:stop], site.room[start:stop], start, stop, site.snapshot, site.leaving)
