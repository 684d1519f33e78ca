"""The history of the streams as facts by name, folded without any code of the pipeline.

`audit` checks every decision against these facts. They are plain dictionaries on purpose: nothing is shared with the
code that is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from actors.broker.bus import EVENTS, Entry, id_order
from actors.broker.stream_order import merged
from actors.cluster_file.documents import (
    ClusterDocument,
    DomainDocument,
    NodeDocument,
    PodgroupDocument,
    PriorityClassDocument,
    TaskDocument,
    TopologyDocument,
)
from actors.cluster_file.reader import read_leniently
from actors.documents.quantities import base_units, card_units
from actors.protocol.bodies import (
    FleetListed,
    NodeRemoved,
    PodgroupRemoved,
    TaskEnded,
    TaskStarted,
    TaskTerminating,
    TaskUpserted,
    TopologyChanged,
)
from actors.protocol.envelopes import Message, RefusedMessage, decode_decisions, decode_events
from actors.protocol.full_list import Listing
from actors.verification.task_facts import (
    ENDING,
    GONE,
    OVER,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Amounts,
    GroupFact,
    TaskFact,
    TaskFacts,
    card_key,
)

_STATUS = {
    "Pending": PENDING, "Bound": RUNNING, "Running": RUNNING, "Terminating": ENDING, "Succeeded": SUCCEEDED,
}  # fmt: skip
#: What a new description of a task changes.
_DESCRIBED = "role", "priority", "preemptible", "request", "on_card", "gone_when_evicted"


@dataclass(slots=True)
class FleetFacts(TaskFacts):
    """All facts at one point of the history."""

    nodes: dict[str, Amounts] = field(default_factory=dict)
    place: dict[str, dict[str, str]] = field(default_factory=dict)
    groups: dict[str, GroupFact] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    _topology: TopologyDocument | None = None
    _labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _listing: Listing = field(default_factory=Listing)
    _heard: dict[str, int] = field(default_factory=dict)
    #: Revision of the newest list.
    _listed: int = -1

    def take(self, message: Message, at_ms: int) -> None:
        """Apply an event; a duplicate or an overtaken one changes nothing."""
        body = message.body
        if not isinstance(body, FleetListed):
            if message.revision <= self._heard.get(message.uid, -1):
                return
            self._heard[message.uid] = message.revision
        if isinstance(body, FleetListed):
            whole = self._listing.add(body) if message.revision > self._listed else None
            if whole is not None:
                self._listed = message.revision
                self._list(read_leniently({"version": 1, **whole}))
        elif isinstance(body, NodeDocument | NodeRemoved | TopologyChanged):
            self._of_nodes(body)
        elif isinstance(body, PodgroupDocument):
            self._podgroup(body, at_ms, self.groups.get(body.full_name))
        elif isinstance(body, PodgroupRemoved):
            for name in self.groups.pop(body.podgroup, _NO_GROUP).tasks:
                self.move(name, GONE)
                self.tasks.pop(name, None)
        elif isinstance(body, PriorityClassDocument):
            self.classes[body.name] = body.value
        elif isinstance(body, TaskUpserted):
            self._upsert(body)
        elif isinstance(body, TaskStarted | TaskTerminating | TaskEnded):
            self._task_news(body)

    def _of_nodes(self, body: NodeDocument | NodeRemoved | TopologyChanged) -> None:
        if isinstance(body, NodeRemoved):
            self.nodes.pop(body.node, None)
            for name in list(self.on_node.get(body.node, ())):
                if self.tasks[name].node == body.node:
                    self.move(name, GONE)
                else:
                    self.promise(name, None)
            return
        if isinstance(body, NodeDocument):
            self._node(body)
        else:
            self._topology = body.topology
        self._wire()

    def _task_news(self, body: TaskStarted | TaskTerminating | TaskEnded) -> None:
        task = self.tasks.get(body.task)
        if task is None or body.incarnation < task.incarnation:
            return
        later, task.incarnation = body.incarnation > task.incarnation, body.incarnation
        if isinstance(body, TaskStarted):
            if later or task.status != ENDING:  # else it was sent before the fleet knew
                self.move(body.task, RUNNING, body.node, body.card)
            if task.podgroup in self.groups:
                self.groups[task.podgroup].ran = True
        elif isinstance(body, TaskTerminating):
            self.end(body.task)
        elif body.replaced or (body.outcome == "Evicted" and not task.gone_when_evicted):
            self.again(body.task)
        else:
            self.move(body.task, {"Succeeded": SUCCEEDED, "Failed": OVER, "Evicted": GONE}[body.outcome])

    def _upsert(self, body: TaskUpserted) -> None:
        """Describe tasks of a podgroup, and take what is said of their status."""
        group, said = self.groups.get(body.podgroup), body.task
        if group is None:
            return
        known = {name for name in _names(body.podgroup, said) if name in group.tasks}
        group.tasks += [name for name in self._task(body.podgroup, group, said) if name not in known]
        status = _STATUS.get(said.status, OVER)
        for name in sorted(known):
            task = self.tasks[name]
            if status == PENDING:
                if task.status != PENDING:
                    self.again(name)
            elif status == ENDING:
                self.end(name, said.node, said.card)
            elif status != RUNNING or task.status != ENDING:
                self.move(name, status, *((said.node, said.card) if status == RUNNING else ()))

    # -- documents ---------------------------------------------------------------------------------------------

    def _list(self, cluster: ClusterDocument) -> None:
        """Apply a full list: what it does not name is gone; decisions that are not carried out yet remain."""
        before, groups = self.tasks, self.groups
        self.nodes, self.groups, self.tasks, self.on_node, self._labels = {}, {}, {}, {}, {}
        self.classes = {one.name: one.value for one in cluster.priority_classes}
        self._topology = cluster.topology
        for node in cluster.nodes:
            self._node(node)
        self._wire()
        for podgroup in cluster.podgroups:
            self._podgroup(podgroup, None, groups.get(podgroup.full_name))
        for name, task in self.tasks.items():
            known = before.get(name)
            if known is None:
                continue
            if known.incarnation >= task.incarnation:
                self._carry(name, task, known)
            elif (known.status, known.incarnation + 1, PENDING) == (ENDING, task.incarnation, task.status):
                self.promise(
                    name, known.nominated, known.nominated_card
                )  # it has moved: its next life waits for the promised node

    def _carry(self, name: str, task: TaskFact, known: TaskFact) -> None:
        """Keep what was decided for a task that the list has in the same life: nomination, binding, eviction."""
        task.incarnation = known.incarnation
        if task.status == PENDING and known.starting:
            self.bind(name, known.node or "", known.card)
        elif task.status == PENDING and known.status == PENDING and known.nominated is not None:
            self.promise(name, known.nominated, known.nominated_card)
        elif known.status == ENDING and task.status in (RUNNING, ENDING, PENDING):
            self.move(name, ENDING, known.node, known.card)
            self.promise(name, known.nominated, known.nominated_card)

    def _node(self, node: NodeDocument) -> None:
        self.nodes[node.name] = _amounts(node.allocatable)
        self.nodes[node.name].update({card_key(card.name): card_units(card.capacity) for card in node.cards})
        self._labels[node.name] = node.labels

    def _wire(self) -> None:
        """Set the domain of each level for each node."""
        self.place = {name: {} for name in self.nodes}
        topology = self._topology
        if topology is None:
            return
        if topology.labels:
            for name, labels in self._labels.items():
                path: list[str] = []
                for level in topology.levels:
                    path.append(labels.get(topology.labels[level], ""))
                    self.place[name][level] = "/".join(path)
            return
        domains = {domain.name: domain for domain in topology.domains or ()}
        for domain in domains.values():
            for node in domain.nodes:
                above: DomainDocument | None = domain
                while above is not None:
                    self.place.setdefault(node, {})[above.level] = above.name
                    above = domains.get(above.parent or "")

    def _podgroup(self, said: PodgroupDocument, at_ms: int | None, known: GroupFact | None) -> None:
        group = GroupFact(
            queue=said.queue,
            priority=said.priority if said.priority is not None else self.classes.get(said.priority_class or "", 0),
            preemptible=said.preemptible is not False,
            minimum=said.min_available,
            roles={name: role.min for name, role in said.roles.items()},
            level=said.topology.required if said.topology is not None else None,
            match_policy=said.match_policy,
            ran=said.started is not None or (known is not None and known.ran),
            arrived_ms=known.arrived_ms if known is not None else at_ms,
        )
        self.groups[said.full_name] = group
        group.tasks = [one for one in known.tasks if self._is_in(said.full_name, one)] if known is not None else []
        for one in said.tasks:
            group.tasks += [name for name in self._task(said.full_name, group, one) if name not in group.tasks]
            for name in _names(said.full_name, one) if one.status == "Pending" else ():
                if self.tasks[name].status == GONE:
                    self.again(name)

    def _is_in(self, podgroup: str, name: str) -> bool:
        return name in self.tasks and self.tasks[name].podgroup == podgroup

    def _task(self, podgroup: str, group: GroupFact, said: TaskDocument) -> Iterator[str]:
        """Describe tasks of a podgroup; one that is known goes on as it is."""
        request = {**_amounts(said.request), "pods": int(said.request.get("pods", 1))}
        for name in _names(podgroup, said):
            before = self.tasks.get(name)
            task = TaskFact(
                podgroup, said.role, said.priority if said.priority is not None else group.priority,
                group.preemptible if said.preemptible is None else said.preemptible, request, PENDING, None,
                incarnation=max(said.incarnation or 0, before.incarnation if before is not None else 0),
                on_card=said.on_card, gone_when_evicted=said.gone_when_evicted,
            )  # fmt: skip
            if before is not None and before.podgroup == podgroup:
                for key in _DESCRIBED:
                    setattr(before, key, getattr(task, key))
                yield name
                continue
            self.move(name, GONE)
            self.tasks[name] = task
            status = _STATUS.get(said.status, OVER)
            group.ran |= status in (RUNNING, ENDING)
            self.move(name, status, *((said.node, said.card) if status in (RUNNING, ENDING) else ()))
            yield name


_NO_GROUP = GroupFact("", 0, True, 0, {}, None)


def in_stream_order(events: Iterable[Entry], decisions: Iterable[Entry]) -> Iterator[tuple[int, Message]]:
    """Messages of both streams in one order, each with its time in milliseconds; without those that are not valid."""
    for entry in merged(events, list(decisions)):
        decode = decode_events if entry.stream == EVENTS else decode_decisions
        for message in decode(entry):
            if isinstance(message, Message):
                yield id_order(entry.id)[0], message


def unreadable(decisions: Iterable[Entry]) -> Iterator[RefusedMessage]:
    """The decisions that cannot be read."""
    for entry in decisions:
        yield from (one for one in decode_decisions(entry) if isinstance(one, RefusedMessage))


def _names(podgroup: str, said: TaskDocument) -> list[str]:
    """Full names of the tasks that a document of a podgroup describes."""
    return [f"{podgroup.partition('/')[0]}/{short}" for short, _ in said.expanded()]


def _amounts(stated: Mapping[str, int | float | str]) -> Amounts:
    return {name: base_units(name, amount) for name, amount in stated.items()}
