"""What documents mean for a state that is there already: compiled apart, then joined to it.

New podgroups and tasks, nodes, queues and budgets go through the compiler of cluster files, as small clusters of their
own, so that a thing means the same whether it came in a file, in a list or by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from actors.cluster_file.documents import PodgroupDocument, TaskDocument
from actors.cluster_file.reader import read_leniently
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from actors.columns.node_columns import HOSTNAME
from actors.ingestion.register import NONE, Register
from pipeline.cluster.arrays import Ids, Longs, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import STATUS_NAMES
from pipeline.cluster.updates.events import Growth
from pipeline.cluster.updates.merge_rows import Scion, graft

#: Keys of a task's document that say what became of it, not what it is.
STANDING = ("status", "node", "card", "nominated_node", "nominated_card")
#: In a kept document: its roles are words of its tasks, nothing that it stated.
_WORDS = "role_words"


@dataclass(slots=True)
class Described:
    """A podgroup as one or more messages describe it, and its tasks by name with the revision that each came with.

    Attributes
    ----------
    revision
        Of the podgroup's own description; of its row, if only tasks were described.
    """

    document: dict[str, Any]
    revision: int
    tasks: dict[str, tuple[dict[str, Any], int]] = field(default_factory=dict)


def plain(document: BaseModel) -> dict[str, Any]:
    """A document as plain data, what was not stated left out."""
    return document.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def described(
    known: Described | None, kept: Mapping[str, Any] | None, document: PodgroupDocument, revision: int
) -> Described:
    """A podgroup's description; tasks it brings along come with no revision, for their own counts have not begun.

    Parameters
    ----------
    known
        What messages before this one said, not folded yet.
    kept
        Its document as it was kept.
    """
    said = plain(document)
    said.pop("tasks", None)
    if not document.roles:
        # Roles that only tasks name are mere words, and not forgotten when the podgroup is described again.
        before = known.document if known is not None else kept
        said |= {_WORDS: True, "roles": before.get("roles", {}) if before is not None and before.get(_WORDS) else {}}
    made = Described(said, revision, known.tasks if known is not None else {})
    for task in document.tasks:
        add_task(made, task, 0)
    return made


def add_task(group: Described, document: TaskDocument, revision: int) -> None:
    """Describe tasks of a group, each by itself."""
    if document.role is not None and group.document.get(_WORDS):
        group.document["roles"] = {**group.document["roles"], document.role: {}}
    said = {key: value for key, value in plain(document).items() if key != "count"}
    for name, index in document.expanded():
        group.tasks[name] = ({**said, "name": name} | ({} if index is None else {"index": index}), revision)


def selects_by_hostname(groups: Mapping[str, Described]) -> bool:
    """Whether a task selects nodes by the label that every node has."""
    for group in groups.values():
        for said, _ in group.tasks.values():
            affinity = [one["key"] for terms in said.get("node_affinity", ()) for one in terms]
            if HOSTNAME in said.get("node_selector", {}) or HOSTNAME in affinity:
                return True
    return False


def growth_of(
    snapshot: Snapshot, names: Register, groups: Mapping[str, Described], at: float, news: int
) -> tuple[Growth, list[str], list[str]]:
    """The growth that the described podgroups are, and the names of the podgroups and tasks that it appends.

    Raises
    ------
    ClusterFileRefused
        For a name that is not known, or a description that is wrong.
    """
    part, called = _compiled(snapshot, names, groups)
    part = replace(part, tasks=_placed(snapshot, part, called, names, groups))
    podgroup_of = np.array([_living(snapshot, names, name) for name in called.podgroups], np.int64)
    role_of, subgroup_of = _parts_of(snapshot, names, part, called, groups, podgroup_of)
    scion = Scion(
        part=part,
        queue_of=frozen([names.row("queues", name) for name in called.queues], np.int32),
        podgroup_of=podgroup_of,
        task_of=_task_rows(snapshot, names, called, part, podgroup_of),
        role_of=role_of,
        subgroup_of=subgroup_of,
        gang_group=_gang_groups(snapshot, names, called, groups),
        podgroups_before=_before(snapshot.podgroups, names.podgroups, part.podgroups.created, called.podgroups),
        tasks_before=_before(snapshot.tasks, names.tasks, part.tasks.created, called.tasks),
        revision=frozen([groups[name].revision for name in called.podgroups], np.int64),
        at=at,
        news=news,
    )
    made = graft(snapshot, scion)
    replaced = {int(row) for row in made.podgroups_from}
    fresh = [
        name for name, row in zip(called.podgroups, podgroup_of.tolist(), strict=True) if row == NONE or row in replaced
    ]
    tasks = [name for name, row in zip(called.tasks, scion.task_of.tolist(), strict=True) if row == NONE]
    return made, fresh, tasks


def _compiled(snapshot: Snapshot, names: Register, groups: Mapping[str, Described]) -> tuple[Snapshot, Names]:
    podgroups = []
    for group in groups.values():
        tasks = [{key: value for key, value in said.items() if key not in STANDING} for said, _ in group.tasks.values()]
        podgroups.append({**group.document, "gang_group": [], "tasks": tasks})
    levels = list(snapshot.vocabulary.levels)
    cluster = {
        "version": 1,
        "queues": names.all_kept("queues"),
        "priority_classes": names.all_kept("priority_classes"),
        "disruption_budgets": names.all_kept("disruption_budgets"),
        "podgroups": podgroups,
        # The levels by name are all that a podgroup can refer to.
        **({"topology": {"levels": levels, "labels": {level: level for level in levels}}} if levels else {}),
    }
    return compile_cluster(read_leniently(cluster))


def _living(snapshot: Snapshot, names: Register, name: str) -> int:
    """The row of a podgroup that is there; NONE for one that is not, or was removed."""
    row = names.row("podgroups", name)
    return row if row != NONE and snapshot.podgroups.alive[row] else NONE


def _task_rows(snapshot: Snapshot, names: Register, called: Names, part: Snapshot, podgroup_of: Rows) -> Rows:
    """Rows of the tasks that are known, of podgroups that are there."""
    rows = np.array([names.row("tasks", name) for name in called.tasks], np.int64)
    owner = podgroup_of[part.tasks.podgroup]
    same = (rows != NONE) & (owner != NONE) & (np.append(snapshot.tasks.podgroup, NONE)[rows] == owner)
    return np.where(same, rows, NONE)


def _placed(snapshot: Snapshot, part: Snapshot, called: Names, names: Register, groups: Mapping[str, Described]) -> Any:
    """The part's tasks with status, node, nomination, card and revision as described, by the state's rows."""
    status, node, nominated, card, revision = [], [], [], [], []
    for row, name in enumerate(called.tasks):
        said, known = groups[called.podgroups[part.tasks.podgroup[row]]].tasks[name.split("/", 1)[1]]
        status.append(STATUS_NAMES.index(said.get("status", "Pending")))
        node.append(names.row("nodes", said["node"]) if "node" in said else NONE)
        nominated.append(names.row("nodes", said["nominated_node"]) if "nominated_node" in said else NONE)
        place, on = max(node[-1], nominated[-1]), said.get("card", said.get("nominated_card"))
        card.append(snapshot.card_row(place, on) if place != NONE else NONE)
        revision.append(known)
    return replace(
        part.tasks,
        status=frozen(status, np.uint8),
        node=frozen(node, np.int32),
        nominated=frozen(nominated, np.int32),
        card=frozen(card, np.int32),
        revision=frozen(revision, np.int64),
    )


def _parts_of(
    snapshot: Snapshot,
    names: Register,
    part: Snapshot,
    called: Names,
    groups: Mapping[str, Described],
    podgroup_of: Rows,
) -> tuple[Rows, Rows]:
    """The state's rows of the part's roles and subgroups, by their names in the documents of then and now."""
    roles, subgroups = np.full(len(part.roles), NONE), np.full(len(part.subgroups), NONE)
    for row, name in enumerate(called.podgroups):
        known = int(podgroup_of[row])
        if known == NONE:
            continue
        was, now = names.kept("podgroups", name), groups[name].document
        for target, found, first, then in (
            (roles, role_names, part.role_start[row], snapshot.role_start[known]),
            (subgroups, subgroup_names, part.subgroup_start[row], snapshot.subgroup_start[known]),
        ):
            before = {one: int(then) + at for at, one in enumerate(found(was))}
            for at, one in enumerate(found(now)):
                target[int(first) + at] = before.get(one, NONE)
    return roles, subgroups


def role_names(document: Mapping[str, Any]) -> list[str]:
    """Names of a podgroup's roles in the order of their rows."""
    return list(document.get("roles") or {})


def subgroup_names(document: Mapping[str, Any]) -> list[str]:
    """Names of a podgroup's subgroups in the order of their rows: parents before children."""
    found: list[str] = []

    def visit(subgroups: Sequence[Mapping[str, Any]]) -> None:
        for one in subgroups:
            found.append(one["name"])
            visit(one.get("children") or ())

    visit(document.get("subgroups") or ())
    return found


def _gang_groups(snapshot: Snapshot, names: Register, called: Names, groups: Mapping[str, Described]) -> Ids:
    """The number of each podgroup's gang group: that of a member already known, else the next."""
    numbers = snapshot.podgroups.gang_group
    following = int(numbers.max(initial=NONE)) + 1
    given: dict[str, int] = {}
    result = []
    for name in called.podgroups:
        members = groups[name].document.get("gang_group", [])
        if not members:
            result.append(NONE)
            continue
        rows = [row for member in members if (row := _living(snapshot, names, member)) != NONE]
        known = [int(numbers[row]) for row in rows if numbers[row] != NONE]
        known += [given[member] for member in members if member in given]
        number = min(known, default=following)
        following = max(following, number + 1)
        given |= dict.fromkeys([name, *members], number)
        result.append(number)
    return frozen(result, np.int32)


def _before(table: Any, known: Sequence[str], created: Any, called: Sequence[str]) -> Longs:
    """How many of the known rows each new one comes after by (created, name)."""
    row_at = np.empty(len(table), np.int64)
    row_at[table.order] = np.arange(len(table))

    def key(rank: int) -> tuple[float, str]:
        row = row_at[rank]
        return float(table.created[row]), known[row]

    ranks = range(len(table))
    return frozen(
        [bisect_left(ranks, (float(when), name), key=key) for when, name in zip(created, called, strict=True)], np.int64
    )
