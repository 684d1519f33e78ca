"""Batching: messages of one stage are folded together, although others came between them.

The cost of folding grows with the size of the state, so messages are held as long as their order does not matter. Of
held messages about podgroups, descriptions are folded first, then news of tasks, then departures. A message waits until
what is held is folded if

- it is about another kind of thing,
- its podgroup or task has reached a later stage already,
- the same thing is described already, or
- it describes a podgroup, and a task of that podgroup is described already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.ingestion.known.state import LiveState
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import NONE

#: Stages of podgroups, which may be held together; other stages are held alone.
DESCRIBED, HAPPENED, LEFT = "podgroups described", "tasks", "podgroups leaving"
_TOGETHER = (DESCRIBED, HAPPENED, LEFT)
#: Stage of each kind of message that changes the state.
STAGES = {
    "podgroup_upserted": DESCRIBED, "task_upserted": DESCRIBED,
    "task_started": HAPPENED, "task_terminating": HAPPENED, "task_ended": HAPPENED,
    "podgroup_removed": LEFT,
    "node_upserted": "nodes", "topology_changed": "topology", "node_removed": "nodes leaving",
    "queue_upserted": "queues", "queue_removed": "queues leaving",
    "budget_upserted": "budgets", "budget_removed": "budgets", "priority_class_upserted": "classes",
    "fleet_listed": "list",
    "plan_committed": "decisions", "plan_withdrawn": "decisions",
    "domain_reserved": "decisions", "domain_released": "decisions",
}  # fmt: skip


class NewsBatch:
    """Messages by stage, in the order in which they came."""

    def __init__(self) -> None:
        self._held: dict[str, list[Message]] = {}
        self._reached: dict[str, int] = {}
        self._owner: dict[str, str] = {}
        self._described: set[str] = set()

    def take(self, message: Message, state: LiveState) -> bool:
        """Hold a message; False, and not held, if held messages must be folded first."""
        stage = STAGES[message.kind]
        if self._held and stage not in self._held:
            return False
        if stage in _TOGETHER:
            if not self._take_in_turn(message, _TOGETHER.index(stage), state):
                return False
            if not self._held:
                self._held = {one: [] for one in _TOGETHER}
        elif stage == "nodes" and not self._describe((message.body.name,)):  # type: ignore[attr-defined]
            return False
        self._held.setdefault(stage, []).append(message)
        return True

    def _take_in_turn(self, message: Message, stage: int, state: LiveState) -> bool:
        podgroups, tasks, described = _about(message)
        reached, names, touched = self._reached, state.names, [*podgroups, *tasks]
        for task in tasks:
            row = names.row("tasks", task)
            if row != NONE:
                touched.append(names.podgroups[state.snapshot.tasks.podgroup[row]])
            if task in self._owner:
                touched.append(self._owner[task])
        for name in touched:
            if reached.get(name, 0) > stage:
                return False
        if stage == 0:
            if not self._describe(described):
                return False
            self._described.add(podgroups[0])
            self._owner.update(dict.fromkeys(tasks, podgroups[0]))
        for name in touched:
            reached[name] = stage
        return True

    def _describe(self, names: Sequence[str]) -> bool:
        """Note what is described; False if some of it is described already."""
        if not self._described.isdisjoint(names):
            return False
        self._described.update(names)
        return True

    def emptied(self) -> list[tuple[str, list[Message]]]:
        """The held messages by stage, in the order in which they are folded; none is held afterwards."""
        held, self._held = self._held, {}
        self._reached, self._owner, self._described = {}, {}, set()
        return [(stage, messages) for stage, messages in held.items() if messages]


def _about(message: Message) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Podgroups and tasks that a message names, and which of them it describes."""
    body: Any = message.body
    if message.kind == "podgroup_removed":
        return (body.podgroup,), (), ()
    if message.kind == "task_upserted":
        namespace = body.podgroup.split("/", 1)[0]
        tasks = [f"{namespace}/{name}" for name, _ in body.task.expanded()]
        return (body.podgroup,), tasks, tasks
    if message.kind == "podgroup_upserted":
        tasks = [f"{body.namespace}/{name}" for task in body.tasks for name, _ in task.expanded()]
        return (body.full_name, *body.gang_group), tasks, (body.full_name, *tasks)
    return (), (body.task,), ()
