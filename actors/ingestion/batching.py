"""Messages that are folded together although others came between them: about different things, their turn is nothing.

Gangs arrive, start, end and leave all the time, one after the other. Folding costs by the size of the state, so they
are gathered: of what was gathered, descriptions are folded first, then news of tasks, then departures of podgroups. A
message whose podgroup or task has reached a later stage already, or was described already, waits for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from actors.ingestion.register import NONE
from actors.ingestion.state import LiveState
from actors.protocol.envelopes import Message

STAGES = ("growth", "tasks", "podgroups leaving")
_STAGE_OF = {
    "podgroup_upserted": 0, "task_upserted": 0,
    "task_started": 1, "task_terminating": 1, "task_ended": 1,
    "podgroup_removed": 2,
}  # fmt: skip


class Gathering:
    """Messages by stage, in the order in which they came."""

    def __init__(self) -> None:
        self._held: dict[str, list[Message]] = {stage: [] for stage in STAGES}
        self._reached: dict[str, int] = {}
        self._owner: dict[str, str] = {}
        self._described: set[str] = set()

    def take(self, message: Message, state: LiveState) -> bool:
        """Hold a message; False, and nothing held, where it must wait for what is held to be folded."""
        stage, about = _STAGE_OF[message.kind], _about(message)
        touched = [*about.podgroups, *about.tasks]
        for task in about.tasks:
            row = state.names.row("tasks", task)
            if row != NONE:
                touched.append(state.names.podgroups[state.snapshot.tasks.podgroup[row]])
            if task in self._owner:
                touched.append(self._owner[task])
        reached = self._reached
        for name in touched:
            if reached.get(name, 0) > stage:
                return False
        if stage == 0:
            if not self._described.isdisjoint(about.described):
                return False
            self._described.update(about.described)
            self._owner.update(dict.fromkeys(about.tasks, about.podgroups[0]))
        for name in touched:
            reached[name] = stage
        self._held[STAGES[stage]].append(message)
        return True

    def emptied(self) -> dict[str, list[Message]]:
        """What was held, by stage; nothing is from here on."""
        held, self._held = self._held, {stage: [] for stage in STAGES}
        self._reached, self._owner, self._described = {}, {}, set()
        return held


class _About(NamedTuple):
    """Podgroups and tasks that a message names, and which of them it describes."""

    podgroups: Sequence[str] = ()
    tasks: Sequence[str] = ()
    described: Sequence[str] = ()


def _about(message: Message) -> _About:
    body: Any = message.body
    if message.kind == "podgroup_removed":
        return _About(podgroups=(body.podgroup,))
    if message.kind == "task_upserted":
        namespace = body.podgroup.split("/", 1)[0]
        tasks = [f"{namespace}/{name}" for name, _ in body.task.expanded()]
        return _About((body.podgroup,), tasks, tasks)
    if message.kind == "podgroup_upserted":
        tasks = [f"{body.namespace}/{name}" for task in body.tasks for name, _ in task.expanded()]
        return _About((body.full_name, *body.gang_group), tasks, (body.full_name, *tasks))
    return _About(tasks=(body.task,))
