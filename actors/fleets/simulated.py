"""The simulated fleet: it carries out decisions, lets victims end after their grace, and returns events.

It does not trust decisions: a task that does not fit its node fails, as on a real node.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from actors.documents.quantities import card_units
from actors.fleets.fleet_tasks import ENDING, OVER, PENDING, RUNNING, LivePodgroup, Task, add_to, amounts, room_of
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Message, Outgoing
from actors.protocol.full_list import cut


@dataclass(slots=True)
class Tally:
    """Counts of what has happened so far."""

    started: int = 0
    evicted: int = 0
    finished: int = 0
    nodes_failed: int = 0
    #: Tasks that a decision bound to a node without room for them; should be 0.
    misfits: int = 0


class SimulatedFleet:
    """State and behaviour of a fleet: it takes decisions and the time, and returns events.

    Parameters
    ----------
    cluster
        A cluster file with nodes, topology, queues and podgroups, in Kubernetes quantities.
    grace_s
        The shortest and the longest time that a task takes to end, in the fleet's seconds.
    speed
        Seconds of the fleet for each second of the caller.
    revision
        Revision of the last event before; one count for the whole fleet.

    Raises
    ------
    QuantityRefused
        For an amount that is not a quantity.
    """

    def __init__(
        self,
        cluster: Mapping[str, Any],
        *,
        seed: int,
        grace_s: tuple[float, float] = (2.0, 30.0),
        speed: float = 1.0,
        revision: int = 0,
    ) -> None:
        self._draw, self._grace_s, self._speed = random.Random(seed), grace_s, speed
        self._fixed = {key: value for key, value in cluster.items() if key != "podgroups"}
        self._nodes = {node["name"]: room_of(node) for node in cluster["nodes"]}
        self._documents = {node["name"]: node for node in cluster["nodes"]}
        self._held: dict[str, dict[str, int]] = {name: {} for name in self._nodes}
        self._tasks: dict[str, Task] = {}
        self._podgroups: dict[str, LivePodgroup] = {}
        self._revision = revision
        #: What happens later, in order of time, then of addition.
        self._due: list[tuple[float, int, Callable[[], Iterator[Outgoing]]]] = []
        self._entered = count()
        self.tally = Tally()
        for document in cluster.get("podgroups", ()):
            self._take_in(document, None)

    # -- what is told ------------------------------------------------------------------------------------------

    def listing(self, list_id: str) -> list[Outgoing]:
        """A full list of the fleet, as the messages of its parts."""
        cluster = {
            **self._fixed,
            **self._wired(),
            "nodes": list(self._documents.values()),
            "podgroups": [self._described(podgroup) for podgroup in self._podgroups.values()],
        }
        revision = self._next()
        return [Outgoing("fleet_listed", "fleet", revision, part) for part in cut(cluster, list_id)]

    def submit(self, document: Mapping[str, Any], runs_s: float | None = None) -> list[Outgoing]:
        """Add a podgroup with all tasks waiting; it ends ``runs_s`` seconds of the fleet after all have started."""
        podgroup = self._take_in(document, runs_s)
        return [self._say("podgroup_upserted", podgroup.name, self._described(podgroup))]

    def fail_node(self, name: str) -> list[Outgoing]:
        """Lose a node and the tasks on it."""
        if self._documents.pop(name, None) is None:
            return []
        self.tally.nodes_failed += 1
        there = [task for task in self._tasks.values() if task.node == name and task.status in (RUNNING, ENDING)]
        ended = [self._end(task, "Failed", replaced=True) for task in there]
        del self._nodes[name], self._held[name]
        return [*ended, self._say("node_removed", name, {"node": name})]

    def join_node(self, document: Mapping[str, Any]) -> list[Outgoing]:
        """A node joins, with no task on it."""
        name = str(document["name"])
        self._nodes[name], self._documents[name], self._held[name] = room_of(document), dict(document), {}
        return [self._say("node_upserted", name, document)]

    def add_queue(self, document: Mapping[str, Any]) -> list[Outgoing]:
        """There is another queue."""
        self._fixed["queues"] = [*self._fixed.get("queues", ()), dict(document)]
        return [self._say("queue_upserted", str(document["name"]), document)]

    def restart_often(self, at: float, every_s: float, tasks: int) -> None:
        """From ``at`` on, let ``tasks`` random running tasks start over in place at regular times.

        Parameters
        ----------
        every_s
            Seconds of the caller between two times.
        """
        names = [task.name for task in self._tasks.values() if task.status == RUNNING]

        def happen(now: float) -> Iterator[Outgoing]:
            for name in self._draw.sample(names, tasks):
                yield from self._restart(name, now)
            self._later(now + every_s, lambda: happen(now + every_s))

        self._later(at, lambda: happen(at))

    def obey(self, message: Message, now: float) -> list[Outgoing]:
        """Carry out a decision: victims begin to end, bound tasks start. A withdrawal changes nothing here."""
        made = message.body
        if not isinstance(made, PlanCommitted):
            return []
        said = [event for one in made.evictions for event in self._evict(one.task, one.incarnation, one.grace_s, now)]
        for binding in made.bindings:
            task = self._tasks.get(binding.task)
            if task is not None and binding.incarnation in (None, task.incarnation):  # otherwise it was made anew
                said += self._start(binding.task, binding.node, binding.card, now)
        return said

    def step(self, now: float) -> list[Outgoing]:
        """Let everything happen that is due at ``now`` (seconds of the caller); the events."""
        said: list[Outgoing] = []
        while self._due and self._due[0][0] <= now:
            _, _, happen = heapq.heappop(self._due)
            said += happen()
        return said

    def _later(self, at: float, happen: Callable[[], Iterator[Outgoing]]) -> None:
        heapq.heappush(self._due, (at, next(self._entered), happen))

    def next_at(self) -> float | None:
        """When `step` has something to do next, in seconds of the caller; None for never."""
        return self._due[0][0] if self._due else None

    @property
    def revision(self) -> int:
        """Revision of the last event."""
        return self._revision

    @property
    def nodes(self) -> list[str]:
        """Names of the present nodes."""
        return list(self._nodes)

    def used(self, resource: str) -> float:
        """Fraction of a resource that tasks hold."""
        total = sum(room.get(resource, 0) for room in self._nodes.values())
        return sum(held.get(resource, 0) for held in self._held.values()) / total if total else 0.0

    def held_by_queue(self, resource: str) -> dict[str, int]:
        """How much of a resource the tasks of each queue hold."""
        held = dict.fromkeys(sorted({str(one.document["queue"]) for one in self._podgroups.values()}), 0)
        for task in list(self._tasks.values()):
            podgroup = self._podgroups.get(task.podgroup)
            if task.node is not None and podgroup is not None:
                held[str(podgroup.document["queue"])] += task.request.get(resource, 0)
        return held

    # -- what happens ------------------------------------------------------------------------------------------

    def _evict(self, name: str, incarnation: int, grace_s: float, now: float) -> Iterator[Outgoing]:
        task = self._tasks.get(name)
        if task is None or task.status != RUNNING or task.incarnation != incarnation:
            return
        task.status = ENDING
        takes_s = max(grace_s, self._draw.uniform(*self._grace_s)) / self._speed
        yield self._say("task_terminating", name, {"task": name, "incarnation": incarnation, "until": now + takes_s})

        def end() -> Iterator[Outgoing]:
            if task.status == ENDING and task.incarnation == incarnation:
                self.tally.evicted += 1
                yield self._end(task, "Evicted", replaced=not task.gone_when_evicted)
                yield from self._gone(task.podgroup)

        self._later(now + takes_s, end)

    def _start(self, name: str, node: str, card: str | None, now: float) -> list[Outgoing]:
        task = self._tasks.get(name)
        if task is None or task.status != PENDING:
            return []
        if node not in self._nodes:  # the node was lost before the decision arrived
            return [self._end(task, "Failed", replaced=True)]
        room, held, task.card = self._nodes[node], self._held[node], card
        if any(held.get(one, 0) + amount > room.get(one, 0) for one, amount in task.holds.items()):
            self.tally.misfits += 1
            return [self._end(task, "Failed", replaced=True)]
        task.status, task.node = RUNNING, node
        add_to(held, task.holds, 1)
        self.tally.started += 1
        body = {"task": name, "node": node, "incarnation": task.incarnation, "at": now, **task.on}
        self._finish_later(self._podgroups[task.podgroup], now)
        return [self._say("task_started", name, body)]

    def _restart(self, name: str, now: float) -> list[Outgoing]:
        task = self._tasks.get(name)
        if task is None or task.status != RUNNING or task.node is None:
            return []
        node, card = task.node, task.card
        return [self._end(task, "Failed", replaced=True), *self._start(name, node, card, now)]

    def _finish_later(self, podgroup: LivePodgroup, now: float) -> None:
        """Set the time at which a podgroup ends, once when all of it runs."""
        if podgroup.runs_s is None or podgroup.finishes:
            return
        if all(self._tasks[name].status == RUNNING for name in podgroup.tasks):
            podgroup.finishes = True
            self._later(now + podgroup.runs_s / self._speed, lambda: self._finish(podgroup))

    def _finish(self, podgroup: LivePodgroup) -> Iterator[Outgoing]:
        if podgroup.name not in self._podgroups:
            return
        running = [self._tasks[name] for name in podgroup.tasks if self._tasks[name].status == RUNNING]
        if len(running) < len(podgroup.tasks):
            podgroup.finishes = False  # it was broken meanwhile and starts over
            return
        for task in running:
            yield self._end(task, "Succeeded", replaced=False)
        self.tally.finished += 1
        yield from self._gone(podgroup.name)

    def _end(self, task: Task, outcome: str, *, replaced: bool) -> Outgoing:
        if task.node is not None and task.node in self._held:
            add_to(self._held[task.node], task.holds, -1)
        body = {"task": task.name, "outcome": outcome, "incarnation": task.incarnation, "replaced": replaced}
        task.node, task.card, task.status = None, None, PENDING if replaced else OVER
        task.incarnation += replaced
        return self._say("task_ended", task.name, body)

    def _gone(self, name: str) -> Iterator[Outgoing]:
        """Remove a podgroup that has no task left."""
        podgroup = self._podgroups.get(name)
        if podgroup is not None and all(self._tasks[task].status == OVER for task in podgroup.tasks):
            del self._podgroups[name]
            for task in podgroup.tasks:
                del self._tasks[task]
            yield self._say("podgroup_removed", name, {"podgroup": name})

    # -- bookkeeping -------------------------------------------------------------------------------------------

    def _take_in(self, document: Mapping[str, Any], runs_s: float | None) -> LivePodgroup:
        namespace = document.get("namespace", "default")
        podgroup = LivePodgroup(f"{namespace}/{document['name']}", dict(document), [], runs_s)
        self._podgroups[podgroup.name] = podgroup
        for one in document["tasks"]:
            status = RUNNING if one.get("node") is not None else PENDING
            task = Task(
                f"{namespace}/{one['name']}", podgroup.name, {**amounts(one["request"]), "pods": 1},
                bool(one.get("gone_when_evicted", False)), status, one.get("node"),
                card_units(one.get("card_request", 0)), one.get("card"), int(one.get("incarnation", 0)),
            )  # fmt: skip
            self._tasks[task.name] = task
            podgroup.tasks.append(task.name)
            if task.node is not None:
                add_to(self._held[task.node], task.holds, 1)
        return podgroup

    def _described(self, podgroup: LivePodgroup) -> dict[str, Any]:
        """The document of a podgroup with the present state of its tasks; tasks that ended are left out."""
        tasks = []
        for name, one in zip(podgroup.tasks, podgroup.document["tasks"], strict=True):
            task = self._tasks[name]
            if task.status != OVER:
                now: dict[str, Any] = {"status": task.status, "incarnation": task.incarnation, **task.on}
                if task.node is not None:
                    now["node"] = task.node
                tasks.append({key: value for key, value in one.items() if key not in ("node", "card")} | now)
        return {**podgroup.document, "tasks": tasks}

    def _wired(self) -> dict[str, Any]:
        """The topology of the present nodes."""
        topology = self._fixed.get("topology") or {}
        if "domains" not in topology:
            return {}
        domains = [
            {**one, "nodes": [name for name in one["nodes"] if name in self._nodes]} if "nodes" in one else one
            for one in topology["domains"]
        ]
        return {"topology": {**topology, "domains": domains}}

    def _say(self, kind: str, uid: str, body: Mapping[str, Any]) -> Outgoing:
        return Outgoing(kind, uid, self._next(), body)

    def _next(self) -> int:
        """The next revision, one count for the whole fleet."""
        self._revision += 1
        return self._revision
