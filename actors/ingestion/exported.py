"""The live state as a cluster file: what was kept of documents, and what the columns say of podgroups and tasks.

The file compiles to the same columns, so what is simulated on it is what would be decided live. Evictions that are
under way are in it as Terminating tasks, promises as nominations.
"""

from __future__ import annotations

import math
from typing import Any

from actors.cluster_file.task_documents import NEVER
from actors.columns.card_names import card_names
from actors.ingestion.by_kind.descriptions import Described
from actors.ingestion.known.kept_documents import plain
from actors.ingestion.known.state import LiveState
from pipeline.cluster.arrays import NONE, UNSET
from pipeline.cluster.resources import CPU, PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING, PHASE_NAMES, STATUS_NAMES, TERMINATING
from pipeline.cluster.vocabulary import AntiAffinity, Constraint, Requirement


def cluster_document(state: LiveState, now: float) -> dict[str, Any]:
    """The state as the plain data of a cluster file, its clock at ``now`` (seconds)."""
    kept, topology = state.documents, state.documents.present_topology
    return {
        "version": 1, "now": now, "live": True,
        "nodes": kept.read_all("nodes"),
        **({"topology": plain(topology)} if topology is not None else {}),
        "queues": kept.read_all("queues"),
        "priority_classes": kept.read_all("priority_classes"),
        "disruption_budgets": kept.read_all("disruption_budgets"),
        "podgroups": _Podgroups(state).documents(),
        **({"recent_evictions": _recent(state)} if len(state.snapshot.recent) else {}),
    }  # fmt: skip


def _recent(state: LiveState) -> list[dict[str, Any]]:
    """What our decisions evicted lately; without the name of a queue that is gone."""
    recent, names = state.snapshot.recent, state.names.queues
    rows = zip(recent.queue.tolist(), recent.at.tolist(), recent.count.tolist(), strict=True)
    return [({} if row == NONE else {"queue": names[row]}) | {"at": at, "count": count} for row, at, count in rows]


class _Podgroups:
    """Podgroups with their tasks, from the columns."""

    def __init__(self, state: LiveState) -> None:
        self._state, self._snapshot, self._names = state, state.snapshot, state.names
        self._requests = [_quantities(self._snapshot, row) for row in range(len(self._snapshot.shapes))]
        self._constraints = [_constrained(one) for one in self._snapshot.vocabulary.constraints]

    def documents(self) -> list[dict[str, Any]]:
        """All that are there, in the order of their rows."""
        alive = self._snapshot.podgroups.alive
        return [self._document(row, name) for row, name in enumerate(self._names.podgroups) if alive[row]]

    def _document(self, row: int, name: str) -> dict[str, Any]:
        """What was said of the podgroup, with what has changed since, and its tasks."""
        groups = self._snapshot.podgroups
        described = Described.kept(self._state.documents.read("podgroups", name), 0)
        said = plain(described.document)
        said["phase"] = PHASE_NAMES[int(groups.phase[row])]
        times = {
            "started": groups.started,
            "stale_since": groups.stale_since,
            "last_checkpoint": groups.last_checkpoint,
        }
        said |= {key: float(column[row]) for key, column in times.items() if math.isfinite(column[row])}
        tasks = self._snapshot.tasks_of(row).tolist()
        there = [task for task in tasks if self._snapshot.tasks.status[task] != GONE]
        return said | {"tasks": [self._task(task, row, described) for task in there]}

    def _task(self, row: int, podgroup: int, described: Described) -> dict[str, Any]:
        tasks, names = self._snapshot.tasks, self._names
        shape, status = int(tasks.shape[row]), int(tasks.status[row])
        told: dict[str, Any] = {
            "name": names.tasks[row].partition("/")[2], "request": self._requests[shape],
            "status": STATUS_NAMES[status], "incarnation": int(tasks.incarnation[row]),
            "priority": int(tasks.priority[row]), "preemptible": bool(tasks.preemptible[row]),
            "created": float(tasks.created[row]),
        }  # fmt: skip
        if not tasks.may_preempt[row]:
            told["preemption_policy"] = NEVER
        told |= {key: True for key in ("gone_when_evicted",) if tasks.gone_when_evicted[row]}
        told |= {"scheduling_gated": True} if tasks.gated[row] else {}
        told |= {"index": int(tasks.index[row])} if tasks.index[row] != NONE else {}
        told |= self._part(row, podgroup, described) | self._place(row, status, shape)
        if labels := self._snapshot.vocabulary.label_sets[int(tasks.label_set[row])]:
            told["labels"] = dict(labels)
        return told | self._constraints[int(self._snapshot.shapes.constraint[shape])]

    def _part(self, row: int, podgroup: int, described: Described) -> dict[str, Any]:
        """Its role and its subgroup: their rows stand in the order of the podgroup's document."""
        snapshot, found = self._snapshot, {}
        role, subgroup = int(snapshot.tasks.role[row]), int(snapshot.tasks.subgroup[row])
        if role != NONE:
            found["role"] = described.roles[role - int(snapshot.role_start[podgroup])]
        if subgroup != NONE:
            found["subgroup"] = described.subgroups[subgroup - int(snapshot.subgroup_start[podgroup])]
        return found

    def _place(self, row: int, status: int, shape: int) -> dict[str, Any]:
        """Its node and card, and those that it is promised: while it waits, or for when it has ended and moves."""
        tasks, on_card = self._snapshot.tasks, int(self._snapshot.shapes.on_card[shape])
        told: dict[str, Any] = {"card_request": on_card} if on_card else {}
        for key, node, card, stands in (
            ("node", int(tasks.node[row]), int(tasks.card[row]), status != PENDING),
            (
                "nominated_node", int(tasks.nominated[row]), int(tasks.nominated_card[row]),
                status in (PENDING, TERMINATING),
            ),
        ):  # fmt: skip
            # What has ended outlasts its node.
            if not stands or node == NONE or self._state.node(self._names.nodes[node]) == NONE:
                continue
            told[key] = self._names.nodes[node]
            if card != NONE:
                told[key.replace("node", "card")] = card_names(self._snapshot, node)[card]
        return told


def _quantities(snapshot: Snapshot, shape: int) -> dict[str, int | str]:
    """A request as it is written: processors in thousandths, bytes and pieces as they are."""
    told: dict[str, int | str] = {}
    for at, amount in enumerate(snapshot.shapes.request[shape].tolist()):
        name = snapshot.vocabulary.resources[at]
        if amount not in (0, UNSET) and not (at == PODS and amount == 1):
            told[name] = f"{amount}m" if at == CPU else amount
    return told


def _constrained(one: Constraint) -> dict[str, Any]:
    """Where a task may run, as it is written."""
    told: dict[str, Any] = {}
    if one.node_selector:
        told["node_selector"] = {each.key: each.values[0] for each in one.node_selector}
    if one.node_affinity:
        told["node_affinity"] = [[_requirement(each) for each in term] for term in one.node_affinity]
    if one.tolerations:
        told["tolerations"] = [
            {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
            for each in one.tolerations
        ]
    if one.anti_affinity:
        told["pod_anti_affinity"] = [_anti_affinity(each) for each in one.anti_affinity]
    return told


def _requirement(one: Requirement) -> dict[str, Any]:
    return {"key": one.key, "operator": one.operator, "values": list(one.values)}


def _anti_affinity(one: AntiAffinity) -> dict[str, Any]:
    told: dict[str, Any] = {"topology_key": one.topology_key, "match_labels": dict(one.match_labels)}
    if one.match_expressions:
        told["match_expressions"] = [_requirement(each) for each in one.match_expressions]
    if one.namespaces:
        told["namespaces"] = list(one.namespaces)
    return told
