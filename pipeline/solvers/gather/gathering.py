"""Gathering some tasks: a vertex for them and a node for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.need import Need, need_of_all
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.records import replace
from pipeline.solvers.gather.amounts import divided_among_vertices, in_steps
from pipeline.solvers.gather.choice import best_first, inside_domains
from pipeline.solvers.gather.dealing import dealt
from pipeline.solvers.gather.multiples import Steps
from pipeline.solvers.gather.offers import Kinds, kinds_of, offers_of
from pipeline.solvers.gather.tree import Tree


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
    tree, first
        The tree over these nodes, which are those from ``first`` on.
    steps
        The multiples in which domains take its tasks; None if any number will do.
    """

    snapshot: Snapshot
    need: Need
    room: Longs
    allowed: Bools
    existing: Longs
    leaving: Rows
    tree: Tree
    first: int = 0
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
        snapshot.podgroups.order[owner],
        index,
        index == NONE,
    )
    return rows[np.lexsort(keys)]


def gathered(site: GatherSite, rows: Rows, outer: Rows) -> Gathered | None:
    """Gather the tasks ``rows`` of the need in one of the domains ``outer`` (of one height); None if it cannot be."""
    counted = _counted(site, rows)
    kinds = kinds_of(counted, in_rank_order(site.snapshot, rows))
    return gathered_in(site, rows, kinds, inside_domains(site.tree, outer), counted)


def gathered_in(site: GatherSite, rows: Rows, kinds: Kinds, may: Bools, counted: CountedNeed) -> Gathered | None:
    """Gather the tasks ``rows`` in one of the vertices that may take them (bool[V]); ``kinds`` are in rank order.

    Where slots do not decide, tasks are packed in the vertex (see ``CountedNeed``), not dealt out in rank order.
    """
    tree, steps, share, packs = site.tree, site.steps, np.array([], np.int64), not only_slots_decide(counted)
    room = _wide(site, counted)
    offers = offers_of(tree, kinds, room, site.existing, steps)
    for vertex in best_first(tree, offers, may).tolist():
        if packs:
            order, node = rows, _packed(site, counted, room, *tree.slice(vertex))
        else:
            if steps is not None:
                share = divided_among_vertices(tree, steps, offers.slots, offers.existing, vertex, len(rows))
            order, node = kinds.rows, dealt(tree, offers, kinds, room, vertex, share)
        if len(node) and (steps is None or steps.kept(tree, node)):
            return Gathered(order, site.first + node, int(tree.tier[vertex]))
    return None


def numbers_of(site: GatherSite, rows: Rows, outer: Rows, upto: int) -> Sequence[int]:
    """How many of the tasks ``rows``, at most ``upto``, one of the domains ``outer`` may take at a time; ascending.

    Slots are asked only if the gang's tasks are no multiples now, and then each kind as if it were alone.
    """
    per_node = NO_ROWS
    if site.steps is not None and not site.steps.even:
        counted = _counted(site, rows)
        kinds = kinds_of(counted, rows)
        per_node = node_slots(kinds.request, kinds.many, kinds.allowed, 0, _wide(site, counted))[0].sum(axis=0)
    return in_steps(site.tree, site.steps, per_node, outer, upto)


def most_offered(site: GatherSite, rows: Rows, outer: Rows) -> int:
    """How many of the tasks ``rows`` one of the domains offers slots for, at most."""
    counted = _counted(site, rows)
    kinds = kinds_of(counted, in_rank_order(site.snapshot, rows))
    slots = offers_of(site.tree, kinds, _wide(site, counted), site.existing, site.steps).slots[outer]
    return min(int(slots.max(initial=0)), len(rows))


def counted_of(snapshot: Snapshot, need: Need, allowed: Bools, rows: Rows, may_leave: Rows) -> CountedNeed:
    """The need of ``rows``, which lead the tasks of the need.

    ``may_leave`` int64[K]: the tasks that may be victims.
    """
    return CountedNeed(snapshot, need_of_all(need_of_first(need, len(rows))), allowed, may_leave)


def _counted(site: GatherSite, rows: Rows) -> CountedNeed:
    return counted_of(site.snapshot, site.need, site.allowed, rows, site.leaving)


def _wide(site: GatherSite, counted: CountedNeed) -> Longs:
    """int64[N, R]: the room of the nodes in the columns of the need, but for cards."""
    return counted.wide(site.room, site.first, site.leaving)


def need_of_first(need: Need, many: int) -> Need:
    """The need for its first ``many`` tasks, which include the whole minimum or are a part of it."""
    return replace(
        need, tasks=need.tasks[:many], shape=need.shape[:many], part=need.part[:many], minimum=min(need.minimum, many)
    )


def only_slots_decide(counted: CountedNeed) -> bool:
    """Whether only slots decide where the tasks of a need fit."""
    inner = any(
        part.subgroup != NONE and (part.required_level, part.preferred_level) != (NONE, NONE)
        for part in counted.need.parts
    )
    return not inner and counted.counts_all and not counted.columns.cards


def need_of_some(need: Need, some: Bools) -> Need:
    """The need for ``some`` (bool[K]) of its tasks; none of them belongs to the minimum."""
    return need if some.all() else replace(need, tasks=need.tasks[some], shape=need.shape[some], part=need.part[some])


def _packed(site: GatherSite, counted: CountedNeed, room: Longs, start: int, stop: int) -> Rows:
    """int64[K]: a node of the site for each of the tasks; none if they do not fit."""
    first = site.first
    found = counted.packings.on(first + start, first + stop).places(room[start:stop], site.leaving)
    return NO_ROWS if found is None else found - first
