"""References within a cluster file: every name that is used exists, no name is given twice, no tree has a cycle."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from actors.cluster_file.bounds import too_large
from actors.cluster_file.documents import (
    ClusterDocument,
    DomainDocument,
    GatheredLevels,
    PodgroupDocument,
    SubgroupDocument,
    TaskDocument,
    TopologyDocument,
    WantedLevels,
)
from actors.cluster_file.task_documents import expanded
from actors.documents.model import Location, Offence
from actors.documents.quantities import card_units
from actors.documents.state_limits import StateLimits

#: The root of the tree of queues, which need not be described.
ROOT_QUEUE = "root"
#: Priority classes that every cluster has.
SYSTEM_CLASSES: Mapping[str, int] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_SHOWN = 8


def offences(cluster: ClusterDocument, most: StateLimits | None, *, living: bool = False) -> Iterator[Offence]:
    """The offences among the names of a cluster file whose parts are valid by themselves, and in its size.

    Parameters
    ----------
    living
        Whether it is the list or the state of a live fleet, where a gang group may name a podgroup that has left or is
        yet to come.
    """
    excess = [*too_large(cluster, most)] if most is not None else []
    if excess:  # looking at all its tasks would take the memory that the bound protects
        yield from excess
        return
    names, cards = cluster.nodes.column("name"), [[card.name for card in kind.cards] for kind in cluster.nodes.kinds]
    nodes = dict(zip(names, map(cards.__getitem__, cluster.nodes.kind), strict=True))
    yield from _twice("nodes", names)
    if cluster.topology is not None and cluster.topology.domains is not None:
        yield from _domain_offences(cluster.topology, nodes)
    yield from _queue_offences(cluster)
    yield from _twice("priority_classes", (known.name for known in cluster.priority_classes))
    yield from _twice("podgroups", (podgroup.full_name for podgroup in cluster.podgroups))
    nameable = Nameable(
        queues={queue.name for queue in cluster.queues},
        classes={known.name for known in cluster.priority_classes},
        levels=cluster.topology.levels if cluster.topology is not None else (),
        podgroups=None if living else {podgroup.full_name for podgroup in cluster.podgroups},
        cards=nodes,
    )
    yield from podgroup_offences(cluster.podgroups, nameable)
    for at, one in enumerate(cluster.recent_evictions):
        if one.queue is not None and one.queue not in nameable.queues:
            yield unknown(("recent_evictions", at, "queue"), "queue", one.queue, nameable.queues)
    yield from _twice(
        "disruption_budgets", (f"{budget.namespace}/{budget.name}" for budget in cluster.disruption_budgets)
    )


def overfilled(cluster: ClusterDocument) -> Iterator[Offence]:
    """An offence for each task that holds more of a card than its capacity leaves; nominations may wait for room.

    Only files are checked that are not of a live fleet, since that reports what is. A card with a capacity of 0 keeps
    the tasks that hold it.
    """
    if not any(node.cards for node in cluster.nodes.kinds):
        return  # nor does any task hold one
    capacity = {(node.name, card.name): card_units(card.capacity) for node in cluster.nodes for card in node.cards}
    held: Counter[tuple[str, str]] = Counter()
    for at, podgroup in enumerate(cluster.podgroups):
        if not any(kind.on_card for kind in podgroup.tasks.kinds):
            continue
        for position, task in enumerate(podgroup.tasks):
            if task.node is None or task.card is None:
                continue
            spot = task.node, task.card
            held[spot] += task.on_card * (task.count or 1)
            if capacity[spot] and held[spot] > capacity[spot]:
                expected = f"expected at most {capacity[spot]} of this card of {task.node} to be held"
                yield Offence(("podgroups", at, "tasks", position, "card"), expected, held[spot])


def _twice(section: str, names: Iterable[str]) -> Iterator[Offence]:
    listed = list(names)
    if len(set(listed)) == len(listed):
        return
    seen: set[str] = set()
    for at, name in enumerate(listed):
        if name in seen:
            yield Offence((section, at, "name"), "expected each name once", name)
        seen.add(name)


def unknown(where: Location, kind: str, found: str, known: Iterable[str]) -> Offence:
    """The offence of a name that does not exist."""
    some = sorted(known)
    listed = ", ".join(some[:_SHOWN]) + (", …" if len(some) > _SHOWN else "")
    return Offence(where, f"expected the name of a {kind} ({listed or f'there is no {kind}'})", found)


def _domain_offences(topology: TopologyDocument, nodes: Mapping[str, object]) -> Iterator[Offence]:
    domains = topology.domains or ()
    levels = {level: row for row, level in enumerate(topology.levels)}
    by_name = {domain.name: domain for domain in domains}
    seen: set[str] = set()
    placed: dict[str, str] = {}
    inside = [node for domain in domains for node in domain.nodes]
    each_placed_once = len(distinct := set(inside)) == len(inside) and distinct <= nodes.keys()
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
            # Levels get narrower downwards, so there can be no cycle.
            yield Offence((*here, "parent"), f"expected a domain of a wider level than {domain.level}", domain.parent)
        if not each_placed_once:
            yield from _home_offences(here, domain, nodes, placed)


def _home_offences(
    here: Location, domain: DomainDocument, nodes: Mapping[str, object], placed: dict[str, str]
) -> Iterator[Offence]:
    """An offence for each node of a domain that does not exist, or is in an earlier one; adds to ``placed``."""
    for position, node in enumerate(domain.nodes):
        if node not in nodes:
            yield unknown((*here, "nodes", position), "node", node, nodes)
        elif node in placed:
            yield Offence(
                (*here, "nodes", position), f"expected each node in one domain (it is in {placed[node]})", node
            )
        placed[node] = domain.name


def _queue_offences(cluster: ClusterDocument) -> Iterator[Offence]:
    # Of two queues with the same name the second is the offence, so the first one counts.
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


@dataclass(frozen=True, slots=True)
class Nameable:
    """The names that podgroups may refer to.

    Attributes
    ----------
    classes
        Priority classes beside those that every cluster has.
    podgroups
        Possible members of a gang group; None: any, since they may come later.
    cards
        Names of the cards of each node; None: places of tasks are checked elsewhere.
    """

    queues: Collection[str]
    classes: Collection[str]
    levels: Collection[str]
    podgroups: Collection[str] | None = None
    cards: Mapping[str, Sequence[str]] | None = None


def podgroup_offences(podgroups: Sequence[PodgroupDocument], nameable: Nameable) -> Iterator[Offence]:
    """The offences among the names in podgroups, tasks included."""
    seen: set[str] | None = None if _each_once(podgroups) else set()
    if nameable.cards is not None and _places_exist(podgroups, nameable.cards):
        nameable = replace(nameable, cards=None)
    for at, podgroup in enumerate(podgroups):
        yield from _Podgroup(podgroup, ("podgroups", at), nameable, seen).offences()


def _each_once(podgroups: Sequence[PodgroupDocument]) -> bool:
    """Whether no two tasks of a namespace have one name."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    tasks = 0
    for podgroup in podgroups:
        new, _, _ = expanded(podgroup.tasks)
        tasks += len(new)
        names[podgroup.namespace].update(new)
    return sum(map(len, names.values())) == tasks


class _Podgroup:
    """Checks one podgroup; ``seen`` has the names of tasks of earlier ones. None: no name is there twice."""

    def __init__(self, podgroup: PodgroupDocument, here: Location, nameable: Nameable, seen: set[str] | None) -> None:
        self._podgroup, self._here, self._nameable, self._seen = podgroup, here, nameable, seen

    def offences(self) -> Iterator[Offence]:
        """The offences among its names."""
        podgroup, here, nameable = self._podgroup, self._here, self._nameable
        if podgroup.queue not in nameable.queues:
            yield unknown((*here, "queue"), "queue", podgroup.queue, nameable.queues)
        given = podgroup.priority_class
        if given is not None and given not in nameable.classes and given not in SYSTEM_CLASSES:
            yield unknown((*here, "priority_class"), "priority class", given, {*nameable.classes, *SYSTEM_CLASSES})
        for at, member in enumerate(podgroup.gang_group):
            if nameable.podgroups is not None and member not in nameable.podgroups:
                yield unknown((*here, "gang_group", at), "podgroup", member, nameable.podgroups)
        if podgroup.topology is not None:
            yield from self._level_offences(here, podgroup.topology)
            yield from self._gather_offences(here, podgroup.topology)
        leaves: dict[str, bool] = {}
        if podgroup.subgroups:
            yield from self._subgroup_offences((*here, "subgroups"), podgroup.subgroups, leaves)
        yield from self._task_offences(leaves)

    def _level_offences(self, here: Location, wanted: WantedLevels | None) -> Iterator[Offence]:
        if wanted is not None:
            for key, level in (("required", wanted.required), ("preferred", wanted.preferred)):
                if level is not None and level not in self._nameable.levels:
                    yield unknown((*here, "topology", key), "level", level, self._nameable.levels)

    def _gather_offences(self, here: Location, wanted: GatheredLevels) -> Iterator[Offence]:
        named: list[tuple[str, str | int, str]] = [("layers", at, level) for at, level in enumerate(wanted.layers)]
        named += [("multiples", level, level) for level in wanted.multiples]
        for key, at, level in named:
            if level not in self._nameable.levels:
                yield unknown((*here, "topology", key, at), "level", level, self._nameable.levels)

    def _subgroup_offences(
        self, here: Location, subgroups: tuple[SubgroupDocument, ...], leaves: dict[str, bool]
    ) -> Iterator[Offence]:
        """The offences among the names of subgroups; adds to ``leaves`` each name and whether it is a leaf."""
        for at, subgroup in enumerate(subgroups):
            if subgroup.name in leaves:
                yield Offence((*here, at, "name"), "expected each name once in its podgroup", subgroup.name)
            leaves[subgroup.name] = subgroup.children is None
            yield from self._level_offences((*here, at), subgroup.topology)
            yield from self._subgroup_offences((*here, at, "children"), subgroup.children or (), leaves)

    def _task_offences(self, leaves: Mapping[str, bool]) -> Iterator[Offence]:
        """The offences among the names in tasks. Any role is allowed: one that only tasks name has no minimum."""
        if self._seen is not None:
            yield from self._twice_offences(self._seen)
        cards, tasks = self._nameable.cards, self._podgroup.tasks
        wrong_part = [one.subgroup is not None and not leaves.get(one.subgroup, False) for one in tasks.kinds]
        if not any(wrong_part) and (cards is None or _places_exist([self._podgroup], cards)):
            return
        for at, (task, kind) in enumerate(zip(tasks, tasks.kind, strict=True)):
            here = (*self._here, "tasks", at)
            if wrong_part[kind]:
                known = [name for name, leaf in leaves.items() if leaf]
                yield unknown((*here, "subgroup"), "subgroup without children", str(task.subgroup), known)
            if cards is not None:
                yield from _place_offences(here, task, cards)

    def _twice_offences(self, before: set[str]) -> Iterator[Offence]:
        """The offences of names that a task of the namespace had before; adds to ``before``."""
        namespace, tasks = self._podgroup.namespace, self._podgroup.tasks
        names, _, _ = expanded(tasks)
        new = {f"{namespace}/{name}" for name in names}
        if len(new) < len(names) or not new.isdisjoint(before):
            seen = before.copy()
            for at, task in enumerate(tasks):
                for name, _ in task.expanded():
                    if f"{namespace}/{name}" in seen:
                        expected = f"expected each task once in namespace {namespace}"
                        yield Offence((*self._here, "tasks", at, "name"), expected, name)
                    seen.add(f"{namespace}/{name}")
        before |= new


def _places_exist(podgroups: Sequence[PodgroupDocument], cards: Mapping[str, Sequence[str]]) -> bool:
    """Whether every node that tasks name exists, and none of them names a card."""
    places: set[str | None] = {None}
    for tasks in (podgroup.tasks for podgroup in podgroups):
        places.update(tasks.column("node"), tasks.column("nominated_node"))
        if any(one.card is not None or one.nominated_card is not None for one in tasks.kinds):
            return False
    return places - {None} <= cards.keys()


def _place_offences(here: Location, task: TaskDocument, cards: Mapping[str, Sequence[str]]) -> Iterator[Offence]:
    for key, node, card in (
        ("node", task.node, task.card),
        ("nominated_node", task.nominated_node, task.nominated_card),
    ):
        if node is not None and node not in cards:
            yield unknown((*here, key), "node", node, cards)
        elif node is not None and card is not None and card not in cards[node]:
            yield unknown((*here, key.replace("node", "card")), f"card of {node}", card, cards[node])
