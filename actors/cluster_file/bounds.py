"""How much a fleet may hold in all. Few bytes can ask for much room: a task that stands a million times, a resource.

Memory grows with tasks, and with nodes and shapes times resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from actors.cluster_file.documents import (
    ClusterDocument,
    NodeDocument,
    PodgroupDocument,
    QueueDocument,
    TopologyDocument,
)
from actors.cluster_file.task_documents import TaskDocument
from actors.documents.model import Offence

TASKS: Final = 5_000_000
RESOURCES: Final = 128
QUEUES: Final = 100_000
DOMAINS: Final = 1_000_000


class Size(NamedTuple):
    """What a document adds, or a state has: tasks, names of resources, queues and domains."""

    tasks: int = 0
    resources: frozenset[str] = frozenset()
    queues: int = 0
    domains: int = 0

    def and_more(self, other: Size) -> Size:
        """Both together."""
        return Size(
            self.tasks + other.tasks, self.resources | other.resources, self.queues + other.queues,
            self.domains + other.domains,
        )  # fmt: skip

    def beyond(self) -> tuple[str, int] | None:
        """Which bound it exceeds, as what was expected and what was found; None for none."""
        for what, found, most in (
            ("tasks", self.tasks, TASKS), ("names of resources", len(self.resources), RESOURCES),
            ("queues", self.queues, QUEUES), ("domains", self.domains, DOMAINS),
        ):  # fmt: skip
            if found > most:
                return f"expected at most {most} {what} in all", found
        return None


def size_of(document: object) -> Size:
    """The most that a document adds; nothing for one that adds no rows and no columns."""
    if isinstance(document, PodgroupDocument):
        tasks = document.tasks
        return Size(sum(one.count or 1 for one in tasks), frozenset(name for one in tasks for name in one.request))
    if isinstance(document, TaskDocument):
        return Size(document.count or 1, frozenset(document.request))
    if isinstance(document, NodeDocument):
        return Size(0, frozenset(document.allocatable))
    if isinstance(document, QueueDocument):
        amounts = (value for value in document.__dict__.values() if isinstance(value, dict))
        return Size(0, frozenset(str(name) for one in amounts for name in one), 1)
    if isinstance(document, TopologyDocument):
        return Size(domains=len(document.domains or ()))
    return Size()


def too_large(cluster: ClusterDocument) -> Iterator[Offence]:
    """The bound that a whole cluster exceeds, if there is one."""
    whole = Size()
    resources = set[str]()
    for part in (cluster.nodes, cluster.podgroups, cluster.queues):
        for document in part:
            added = size_of(document)
            resources |= added.resources
            whole = Size(whole.tasks + added.tasks, queues=whole.queues + added.queues)
    if cluster.topology is not None:
        whole = whole.and_more(size_of(cluster.topology))
    excess = whole._replace(resources=frozenset(resources)).beyond()
    if excess is not None:
        yield Offence(("podgroups",), *excess)
