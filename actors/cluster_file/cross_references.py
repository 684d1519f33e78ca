"""Whether the names in a cluster file meet: everything named exists, nothing is named twice, no tree has a cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from actors.cluster_file.documents import (
    ClusterDocument,
    PodgroupDocument,
    SubgroupDocument,
    TopologyDocument,
    WantedLevels,
)
from actors.documents.model import Location, Offence
from actors.documents.quantities import card_units

#: The top of the queues' tree, which need not be described.
ROOT_QUEUE = "root"
#: Priority classes that every cluster has.
SYSTEM_CLASSES: Mapping[str, int] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_SHOWN = 8


def offences(cluster: ClusterDocument) -> Iterator[Offence]:
    """What is wrong with the names of a cluster file whose parts are right each by itself."""
    nodes = {node.name: [card.name for card in node.cards] for node in cluster.nodes}
    yield from _twice("nodes", (node.name for node in cluster.nodes))
    if cluster.topology is not None and cluster.topology.domains is not None:
        yield from _domain_offences(cluster.topology, nodes)
    yield from _queue_offences(cluster)
    yield from _twice("priority_classes", (known.name for known in cluster.priority_classes))
    yield from _twice("podgroups", (podgroup.full_name for podgroup in cluster.podgroups))
    names = _Names(cluster, nodes)
    for at, podgroup in enumerate(cluster.podgroups):
        yield from names.podgroup_offences(("podgroups", at), podgroup)
    yield from _twice(
        "disruption_budgets", (f"{budget.namespace}/{budget.name}" for budget in cluster.disruption_budgets)
    )


def overfilled(cluster: ClusterDocument) -> Iterator[Offence]:
    """Cards of a file of which tasks hold more than there is; promises may wait for room.

    A fleet says what is so. A card of no capacity keeps who holds it.
    """
    capacity = {(node.name, card.name): card_units(card.capacity) for node in cluster.nodes for card in node.cards}
    held: Counter[tuple[str, str]] = Counter()
    for at, podgroup in enumerate(cluster.podgroups):
        for position, task in enumerate(podgroup.tasks):
            if task.node is None or task.card is None:
                continue
            spot = task.node, task.card
            held[spot] += task.on_card * (task.count or 1)
            if capacity[spot] and held[spot] > capacity[spot]:
                expected = f"expected at most {capacity[spot]} of this card of {task.node} to be held"
                yield Offence(("podgroups", at, "tasks", position, "card"), expected, held[spot])


def _twice(section: str, names: Iterable[str]) -> Iterator[Offence]:
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            yield Offence((section, at, "name"), "expected each name once", name)
        seen.add(name)


def unknown(where: Location, kind: str, found: str, known: Iterable[str]) -> Offence:
    """An offence over a name that is not there."""
    some = sorted(known)
    listed = ", ".join(some[:_SHOWN]) + (", …" if len(some) > _SHOWN else "")
    return Offence(where, f"expected the name of a {kind} ({listed or f'there is no {kind}'})", found)


def _domain_offences(topology: TopologyDocument, nodes: Collection[str]) -> Iterator[Offence]:
    domains = topology.domains or ()
    levels = {level: row for row, level in enumerate(topology.levels)}
    by_name = {domain.name: domain for domain in domains}
    seen: set[str] = set()
    placed: dict[str, str] = {}
    for at, domain in enumerate(domains):
        here: Location = ("topology", "domains", at)
        if domain.name in seen:
            yield Offence((*here, "name"), "expected each name once", domain.name)
        seen.add(domain.name)
        if domain.level not in levels:
            yield unknown((*here, "level"), "level", domain.level, levels)
        parent = by_name.get(domain.parent) if domain.parent is not None else None
        if domain.parent is not None and parent is None:
            yield unknown((*here, "parent"), "domain", domain.parent, by_name)
        elif parent is not None and levels.get(parent.level, -1) >= levels.get(domain.level, len(levels)):
            # Levels get narrower downwards, so this leaves no cycle.
            yield Offence((*here, "parent"), f"expected a domain of a wider level than {domain.level}", domain.parent)
        for position, node in enumerate(domain.nodes):
            if node not in nodes:
                yield unknown((*here, "nodes", position), "node", node, nodes)
            elif node in placed:
                yield Offence(
                    (*here, "nodes", position), f"expected each node in one domain (it is in {placed[node]})", node
                )
            placed[node] = domain.name


def _queue_offences(cluster: ClusterDocument) -> Iterator[Offence]:
    # Of two queues of one name the second is the offence, so the first one counts.
    parents = {queue.name: queue.parent for queue in reversed(cluster.queues)}
    yield from _twice("queues", (queue.name for queue in cluster.queues))
    for at, queue in enumerate(cluster.queues):
        if queue.parent is not None and queue.parent not in parents and queue.parent != ROOT_QUEUE:
            yield unknown(("queues", at, "parent"), "queue", queue.parent, parents)
        elif _own_ancestor(queue.name, parents.get):
            yield Offence(("queues", at, "parent"), "expected a queue that is not below this one", queue.parent)


def _own_ancestor(name: str, parent_of: Callable[[str], str | None]) -> bool:
    seen: set[str] = set()
    ancestor = parent_of(name)
    while ancestor is not None and ancestor != name and ancestor not in seen:
        seen.add(ancestor)
        ancestor = parent_of(ancestor)
    return ancestor == name


class _Names:
    """What podgroups may name, and the tasks named so far."""

    def __init__(self, cluster: ClusterDocument, nodes: Mapping[str, Sequence[str]]) -> None:
        self._nodes = nodes
        self._queues = {queue.name for queue in cluster.queues}
        self._classes = {known.name for known in cluster.priority_classes} | SYSTEM_CLASSES.keys()
        self._levels = cluster.topology.levels if cluster.topology is not None else ()
        self._podgroups = {podgroup.full_name for podgroup in cluster.podgroups}
        self._tasks: set[str] = set()

    def podgroup_offences(self, here: Location, podgroup: PodgroupDocument) -> Iterator[Offence]:
        """What is wrong with the names in one podgroup, tasks included."""
        if podgroup.queue not in self._queues:
            yield unknown((*here, "queue"), "queue", podgroup.queue, self._queues)
        if podgroup.priority_class is not None and podgroup.priority_class not in self._classes:
            yield unknown((*here, "priority_class"), "priority class", podgroup.priority_class, self._classes)
        for at, member in enumerate(podgroup.gang_group):
            if member not in self._podgroups:
                yield unknown((*here, "gang_group", at), "podgroup", member, self._podgroups)
        yield from self._level_offences(here, podgroup.topology)
        leaves: dict[str, bool] = {}
        yield from self._subgroup_offences((*here, "subgroups"), podgroup.subgroups, leaves)
        yield from self._task_offences(here, podgroup, leaves)

    def _level_offences(self, here: Location, wanted: WantedLevels | None) -> Iterator[Offence]:
        if wanted is not None:
            for key, level in (("required", wanted.required), ("preferred", wanted.preferred)):
                if level is not None and level not in self._levels:
                    yield unknown((*here, "topology", key), "level", level, self._levels)

    def _subgroup_offences(
        self, here: Location, subgroups: tuple[SubgroupDocument, ...], leaves: dict[str, bool]
    ) -> Iterator[Offence]:
        """Also notes in ``leaves`` each name, and whether it is a leaf's."""
        for at, subgroup in enumerate(subgroups):
            if subgroup.name in leaves:
                yield Offence((*here, at, "name"), "expected each name once in its podgroup", subgroup.name)
            leaves[subgroup.name] = subgroup.children is None
            yield from self._level_offences((*here, at), subgroup.topology)
            yield from self._subgroup_offences((*here, at, "children"), subgroup.children or (), leaves)

    def _task_offences(
        self, group: Location, podgroup: PodgroupDocument, leaves: Mapping[str, bool]
    ) -> Iterator[Offence]:
        """Names in the tasks; any role will do, since one that only tasks name has no minimum."""
        for at, task in enumerate(podgroup.tasks):
            here = (*group, "tasks", at)
            for name, _ in task.expanded():
                full = f"{podgroup.namespace}/{name}"
                if full in self._tasks:
                    yield Offence((*here, "name"), f"expected each task once in namespace {podgroup.namespace}", name)
                self._tasks.add(full)
            if task.subgroup is not None and not leaves.get(task.subgroup, False):
                known = [name for name, leaf in leaves.items() if leaf]
                yield unknown((*here, "subgroup"), "subgroup without children", task.subgroup, known)
            for key, node, card in (
                ("node", task.node, task.card),
                ("nominated_node", task.nominated_node, task.nominated_card),
            ):
                if node is not None and node not in self._nodes:
                    yield unknown((*here, key), "node", node, self._nodes)
                elif node is not None and card is not None and card not in self._nodes[node]:
                    yield unknown((*here, key.replace("node", "card")), f"card of {node}", card, self._nodes[node])
