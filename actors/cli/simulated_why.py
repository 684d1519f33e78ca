"""Explanations of a simulation, in the form that the streams have."""

from __future__ import annotations

from typing import Any

from actors.cli.sentences import plain_decision
from actors.columns.decision_message import decision
from actors.columns.explanation_message import condition, unplaced
from actors.columns.name_directory import Additions, Directory
from actors.columns.names import Names
from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.gang_phase import gang_phases
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle
from pipeline.placement.reasons.readiness import held_back
from pipeline.plugins.host import Host


class Why:
    """Takes one cycle after the other; in the end it has all decisions with their reasons, and why podgroups wait."""

    def __init__(self, names: Names) -> None:
        self._naming = Directory()
        rest = names.nodes, names.queues, names.domains, names.budgets
        self._naming.take(Additions(0, NONE, 0, names.tasks, 0, names.podgroups, *rest))
        self._decisions: list[dict[str, Any]] = []
        self._waiting: dict[str, Any] = {}
        self._phases: dict[str, str] = {}
        self._cycles = 0

    def take(self, before: Snapshot, done: Cycle, host: Host) -> None:
        """Take a cycle, with the snapshot that it began with."""
        self._cycles += 1
        for plan in done.plans:
            made = plain_decision(decision("simulated", 0, plan, plan.statement, before, self._naming, plan.expires_at))
            alternatives = [one for one in made["tried"] if one["reason"] != made["reason"]]
            self._decisions.append({"cycle": self._cycles} | made | {"alternatives": alternatives})
        phases = gang_phases(done.snapshot)
        every = self._naming.podgroups(list(range(len(phases))))
        self._phases = {name: phase.value for name, phase in zip(every, phases, strict=True)}
        attempts: dict[int, list[dict[str, Any]]] = {}
        for one in done.unplaced:
            for podgroup in one.gang_group:
                attempts.setdefault(podgroup, []).append(unplaced(one.action, one.why, self._naming))
        left = tuple(done.unscheduled)
        names = self._naming.podgroups([one.podgroup for one in left])
        self._waiting = {
            name: condition(one, held_back(host, one), self._naming) | {"attempts": attempts.get(one.podgroup, [])}
            for name, one in zip(names, left, strict=True)
        }

    def as_data(self) -> dict[str, Any]:
        """All decisions; after the last cycle, the phase of each gang, and why podgroups wait."""
        return {"podgroups": self._waiting, "decisions": self._decisions, "gang_phases": self._phases}
