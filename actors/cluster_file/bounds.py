"""Bounds on the size of a fleet. A few bytes of input can ask for much memory, such as a task with a large count.

Each count is bounded, and so are the bytes that they come to together: columns grow with products such as nodes times
resources, which no single count bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from actors.cluster_file.documents import (
    ClusterDocument,
    DisruptionBudgetDocument,
    NodeDocument,
    PodgroupDocument,
    PriorityClassDocument,
    QueueDocument,
    RecentEvictionsDocument,
    TopologyDocument,
)
from actors.cluster_file.task_documents import TaskDocument
from actors.documents.alike import Alike
from actors.documents.model import Offence
from actors.documents.state_limits import StateLimits

_Names = frozenset[str]
_NONE: Final[_Names] = frozenset()
#: Bytes of a row in all its columns of fixed width, with what is carried along for it and its name.
_ROW: Final = {"tasks": 512, "shapes": 256, "podgroups": 1_024, "nodes": 1_024, "queues": 1_024, "domains": 512}
#: How many int64 columns a resource has in the rows of a kind, with what is carried along.
_PER_RESOURCE: Final = {"nodes": 8, "shapes": 2, "podgroups": 4, "queues": 12, "domains": 2}
_WORD, _CODE, _CARD = 8, 4, 16
#: Bytes of a row of recent evictions.
_RECENT: Final = 20


class Size(NamedTuple):
    """The most that a document can add, or what a state has.

    Attributes
    ----------
    tasks, nodes, podgroups, queues, domains, budgets
        Rows of each kind.
    shapes
        Distinct requests, at most.
    label_sets
        Distinct sets of labels of tasks, at most.
    cards
        The most that one node has: every node has room for as many.
    resources, label_keys, namespaces
        Names: each is a column.
    text
        Bytes of what is kept as text.
    """

    tasks: int = 0
    nodes: int = 0
    podgroups: int = 0
    queues: int = 0
    domains: int = 0
    budgets: int = 0
    shapes: int = 0
    label_sets: int = 0
    cards: int = 0
    resources: _Names = _NONE
    label_keys: _Names = _NONE
    namespaces: _Names = _NONE
    text: int = 0

    def and_more(self, other: Size) -> Size:
        """The sum of both."""
        return Size(
            self.tasks + other.tasks, self.nodes + other.nodes, self.podgroups + other.podgroups,
            self.queues + other.queues, self.domains + other.domains, self.budgets + other.budgets,
            self.shapes + other.shapes, self.label_sets + other.label_sets, max(self.cards, other.cards),
            self.resources | other.resources, self.label_keys | other.label_keys, self.namespaces | other.namespaces,
            self.text + other.text,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """About how many bytes it comes to."""
        rows: dict[str, int] = {kind: getattr(self, kind) for kind in _ROW}
        return (
            sum(count * _ROW[kind] for kind, count in rows.items())
            + sum(rows[kind] * columns for kind, columns in _PER_RESOURCE.items()) * len(self.resources) * _WORD
            + self.nodes * (len(self.label_keys) * _CODE + self.cards * _CARD)
            + self.budgets * self.label_sets
            + self.text
        )

    def beyond(self, most: StateLimits) -> tuple[str, int] | None:
        """The first bound that it exceeds, as what was expected and what was found; None if it exceeds none."""
        for what, found, bound in (
            ("tasks", self.tasks, most.tasks), ("names of resources", len(self.resources), most.resources),
            ("queues", self.queues, most.queues), ("domains", self.domains, most.domains),
            ("bytes of state", self.bytes, most.state_bytes),
        ):  # fmt: skip
            if found > bound:
                return f"expected at most {bound} {what} in all", found
        return None


#: Fields that add up.
_COUNTS: Final = tuple(name for name, default in Size._field_defaults.items() if default == 0 and name != "cards")


def size_of(document: object) -> Size:
    """The most that a document can add; zero if it adds no rows and no columns."""
    if isinstance(document, PodgroupDocument):
        kinds = zip(document.tasks.kinds, document.tasks.times, strict=True)
        return _sum([_size_of_podgroup(document), *(_size_of_tasks(kind, times) for kind, times in kinds)])
    if isinstance(document, TaskDocument):
        return _size_of_tasks(document)
    if isinstance(document, NodeDocument):
        return _size_of_nodes(Alike.of((document,)))
    if isinstance(document, QueueDocument):
        amounts = (value for value in document.__dict__.values() if isinstance(value, dict))
        return Size(queues=1, resources=frozenset(str(name) for one in amounts for name in one))
    if isinstance(document, TopologyDocument):
        domains = document.domains or ()
        return Size(domains=len(domains), text=sum(len(one.name) + _text(one.nodes) for one in domains))
    if isinstance(document, DisruptionBudgetDocument):
        return Size(
            budgets=1, namespaces=frozenset((document.namespace,)),
            text=len(document.name) + _labels(document.match_labels),
        )  # fmt: skip
    if isinstance(document, PriorityClassDocument):
        return Size(text=len(document.name))
    if isinstance(document, RecentEvictionsDocument):
        return Size(text=_RECENT)
    return Size()


def _size_of_podgroup(document: PodgroupDocument) -> Size:
    """Without its tasks."""
    return Size(
        podgroups=1, resources=frozenset(document.min_resources), namespaces=frozenset((document.namespace,)),
        text=len(document.name) + _text(document.gang_group) + _as_text(document.subgroups, document.roles),
    )  # fmt: skip


def _sizes_of_tasks(podgroups: Sequence[PodgroupDocument]) -> Iterator[Size]:
    """Of all their tasks; tasks of several podgroups can be of one kind."""
    times: Counter[int] = Counter()
    kinds: dict[int, TaskDocument] = {}
    for podgroup in podgroups:
        for kind, many in zip(podgroup.tasks.kinds, podgroup.tasks.times, strict=True):
            times[id(kind)] += many
            kinds[id(kind)] = kind
    return (_size_of_tasks(kind, times[at]) for at, kind in kinds.items())


def _size_of_tasks(task: TaskDocument, times: int = 1) -> Size:
    """Of ``times`` documents of a kind."""
    return Size(
        times * (1 if task.count is None else task.count), shapes=times, label_sets=times,
        resources=frozenset(task.request),
        text=times * (
            _labels(task.labels) + _labels(task.node_selector)
            + _as_text(task.node_affinity, task.tolerations, task.pod_anti_affinity)
        ),
    )  # fmt: skip


def _size_of_nodes(nodes: Alike[NodeDocument]) -> Size:
    kinds = list(zip(nodes.kinds, nodes.times, strict=True))
    return Size(
        nodes=len(nodes), cards=max((len(node.cards) for node in nodes.kinds), default=0),
        resources=_NONE.union(*(node.allocatable for node in nodes.kinds)),
        label_keys=_NONE.union(*(node.labels for node in nodes.kinds)),
        text=_text(nodes.column("name")) + sum(
            times * (_labels(node.labels) + _as_text(node.taints) + _text(card.name for card in node.cards))
            for node, times in kinds
        ),
    )  # fmt: skip


def size_of_cluster(cluster: ClusterDocument) -> Size:
    """What a whole cluster holds at most."""
    parts = cluster.queues, cluster.disruption_budgets, cluster.priority_classes, cluster.recent_evictions
    return _sum([
        _size_of_nodes(cluster.nodes), *map(_size_of_podgroup, cluster.podgroups), *_sizes_of_tasks(cluster.podgroups),
        *(size_of(document) for part in parts for document in part),
        size_of(cluster.topology), Size(domains=_labelled_domains(cluster)),
    ])  # fmt: skip


def too_large(cluster: ClusterDocument, most: StateLimits) -> Iterator[Offence]:
    """The bound that a whole cluster exceeds, if there is one."""
    excess = size_of_cluster(cluster).beyond(most)
    if excess is not None:
        yield Offence(("podgroups",), *excess)


def _labelled_domains(cluster: ClusterDocument) -> int:
    """Domains of a topology that the nodes' labels say."""
    topology = cluster.topology
    keys = [topology.labels[level] for level in topology.levels] if topology is not None and topology.labels else []
    paths = {tuple(node.labels.get(key) for key in keys) for node in cluster.nodes.kinds}
    return sum(len({path[:depth] for path in paths}) for depth in range(1, len(keys) + 1))


def _sum(sizes: Sequence[Size]) -> Size:
    """Many together, in time proportional to what they name."""
    counted = {name: sum(getattr(one, name) for one in sizes) for name in _COUNTS}
    return Size(
        cards=max(one.cards for one in sizes),
        resources=_NONE.union(*(one.resources for one in sizes)),
        label_keys=_NONE.union(*(one.label_keys for one in sizes)),
        namespaces=_NONE.union(*(one.namespaces for one in sizes)),
        **counted,
    )


def _text(words: Iterable[str]) -> int:
    return sum(map(len, words))


def _labels(labels: Mapping[str, str]) -> int:
    """Twice: as they were said, and among the words of the columns."""
    return 2 * sum(len(key) + len(value) for key, value in labels.items())


def _as_text(*parts: Collection[object]) -> int:
    """Parts that most documents do not have; they are kept twice, too."""
    return 2 * sum(len(repr(part)) for part in parts if part)
