"""What is known of tasks, by name, and how they move from one status to another."""

from __future__ import annotations

from dataclasses import dataclass, field

#: By resource, in base units: millicores, bytes or pieces.
Amounts = dict[str, int]
PENDING, RUNNING, ENDING, SUCCEEDED, OVER, GONE = "pending", "running", "ending", "succeeded", "over", "gone"


@dataclass(slots=True)
class TaskFact:
    """What is known of a task."""

    podgroup: str
    role: str | None
    priority: int
    preemptible: bool
    request: Amounts
    status: str
    node: str | None
    nominated: str | None = None
    incarnation: int = 0
    on_card: int = 0
    gone_when_evicted: bool = False
    #: The cards that it holds and is promised, on these nodes; None for none.
    card: str | None = None
    nominated_card: str | None = None
    #: Whether a decision bound it and no event has reported it since.
    starting: bool = False

    def takes_of(self, node: str) -> Amounts:
        """Amounts that it takes of a node on which it is or is promised; each card counts as a resource of its own."""
        card = self.card if node == self.node else self.nominated_card
        return {**self.request, card_key(card): self.on_card} if self.on_card else self.request

    @property
    def promised_as_it_ends(self) -> tuple[str | None, str | None]:
        """The node and card that it is to move to, if it is ending; None for none."""
        return (self.nominated, self.nominated_card) if self.status == ENDING else (None, None)


@dataclass(slots=True)
class GroupFact:
    """What is known of a podgroup."""

    queue: str
    priority: int
    preemptible: bool
    minimum: int
    roles: dict[str, int]
    level: str | None
    tasks: list[str] = field(default_factory=list)
    match_policy: str | None = None
    #: Whether any of its tasks ever ran.
    ran: bool = False
    #: When it arrived; None if it was there when the fleet was first listed.
    arrived_ms: int | None = None


@dataclass(slots=True)
class TaskFacts:
    """All tasks, and which of them are on each node or promised it."""

    tasks: dict[str, TaskFact] = field(default_factory=dict)
    on_node: dict[str, set[str]] = field(default_factory=dict)

    def move(self, name: str, status: str, node: str | None = None, card: str | None = None) -> None:
        """Give a task a status, and a node and a card or none."""
        task = self.tasks.get(name)
        if task is None:
            return
        for place in (task.node, task.nominated):
            if place is not None:
                self.on_node.get(place, set()).discard(name)
        task.status, task.node, task.card, task.starting = status, node, card, False
        task.nominated = task.nominated_card = None
        if node is not None:
            self.on_node.setdefault(node, set()).add(name)

    def end(self, name: str, node: str | None = None, card: str | None = None) -> None:
        """A task is terminating, where it was if no node is named; it keeps the node that it is to move to."""
        task = self.tasks[name]
        promised = task.promised_as_it_ends
        self.move(name, ENDING, *((node, card) if node is not None else (task.node, task.card)))
        self.promise(name, *promised)

    def again(self, name: str) -> None:
        """A task waits in its next life; one that was to move keeps its promise."""
        task = self.tasks[name]
        promised = task.promised_as_it_ends
        self.move(name, PENDING)
        self.promise(name, *promised)
        task.incarnation += 1

    def spare(self, name: str) -> None:
        """A task that was terminating stays where it is and loses its nomination."""
        self.move(name, RUNNING, self.tasks[name].node, self.tasks[name].card)

    def promise(self, name: str, node: str | None, card: str | None = None) -> None:
        """Nominate a waiting or moving task for a node, and a card or none; with None its nomination ends.

        A victim that was to move and is spared runs on where it is.
        """
        task = self.tasks.get(name)
        if task is None or (node is None and task.status == RUNNING):
            return
        if task.status == ENDING:
            self.move(name, ENDING, task.node, task.card)
        else:
            self.move(name, PENDING)
        if node is not None:
            task.nominated, task.nominated_card = node, card
            self.on_node.setdefault(node, set()).add(name)

    def bind(self, name: str, node: str, card: str | None) -> None:
        """Bind a task to a node, unless its start was reported already."""
        task = self.tasks.get(name)
        if task is not None and task.status != RUNNING:
            self.move(name, RUNNING, node, card)
            task.starting = True

    def tasks_in(self, group: GroupFact, *statuses: str) -> list[TaskFact]:
        """The tasks of a podgroup in some statuses; a pending task with a nomination has status ``nominated``."""
        found = []
        for name in group.tasks:
            task = self.tasks[name]
            status = "nominated" if task.nominated is not None else task.status
            if status in statuses:
                found.append(task)
        return found


def card_key(name: str | None) -> str:
    """What a card is called among the amounts of a node and of a task."""
    return f"card {name}"
