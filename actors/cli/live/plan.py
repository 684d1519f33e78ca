"""``clearway plan``: what would become of a gang, in each queue and at each priority asked for; nothing is touched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from actors.cli.live.planned_words import AT_ONCE, LATER, NO, in_words
from actors.cli.live.reading import reading
from actors.cli.simulate import Case, answered, open_case
from actors.cli.simulated_why import Why
from actors.cluster_file.cross_references import unknown
from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping, text_to_read
from actors.columns.names import Names
from actors.configuration.settings import Settings, SettingsRefused
from actors.documents.bounded_files import read_once
from actors.documents.messages import key_path, sentence, shown
from actors.documents.results import say, say_lines
from actors.documents.state_limits import StateLimits
from actors.ingestion.exported import cluster_document
from actors.ingestion.spectating import Onlooker
from actors.protocol.presence import present
from pipeline.cluster.arrays import NONE, with_rows
from pipeline.cluster.rules.gang_groups import starting_with
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING
from pipeline.cycle import Cycle, cycle
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context

#: A gang that has not started after this many cycles counts as one that does not start.
_CYCLES = 6


@dataclass(frozen=True, slots=True)
class Wish:
    """Where and how urgent; None: as the gang itself says."""

    queue: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """Where the parts of a joined cluster file come from, so that a mistake is told by the path that its author knows.

    Attributes
    ----------
    there, asked
        The cluster file, and the document of the gang's file.
    gang, cluster
        The files; without the latter, the cluster is the live state.
    """

    there: Mapping[str, Any]
    asked: Mapping[str, Any]
    gang: Path
    cluster: Path | None

    def sentence(self, refusal: str, wish: Wish) -> str:
        """A refusal of the joined file, with the file that it is about and the path in that file."""
        path, _, rest = refusal.partition(": ")
        others = self.there.get("podgroups", ())
        joined = f"podgroups[{len(others) if isinstance(others, list | tuple) else 0}]"
        if path != joined and not path.startswith(f"{joined}."):
            return refusal if self.cluster is None else f"{self.cluster}: {refusal}"
        inside = path.removeprefix(joined).removeprefix(".")
        if inside in ("queue", "priority") and getattr(wish, inside) is not None:
            return f"--{inside}: {rest}"
        listed = f"podgroups[0]{'.' * bool(inside)}" if "podgroups" in self.asked else ""
        return ": ".join(part for part in (str(self.gang), f"{listed}{inside}", rest) if part)


def run(
    settings: Settings, gang: Path, cluster: Path | None, wishes: Sequence[Wish], *, profile: str | None, as_json: bool
) -> int:
    """Print what would become of the gang for each wish, on a cluster file or the live state; 1 if it waits in any.

    Raises
    ------
    ClusterFileRefused
        If a file cannot be read or is not valid.
    FileRefused
        If both are standard input.
    NotListed
        If there is no live state to plan on.
    SettingsRefused
        If neither a cluster file nor a broker is named, or there is no such profile.
    """
    read_once(gang, cluster)
    asked = read_mapping(text_to_read(gang), str(gang))
    try:
        document = gang_of(asked)
    except ClusterFileRefused as refusal:
        raise ClusterFileRefused(f"{gang}: {refusal}") from refusal
    otherwise = settings.policy_profile
    if cluster is not None:
        there: Mapping[str, Any] = read_mapping(text_to_read(cluster), str(cluster))
    else:
        there, leading = _live(settings)
        # A leader is known by its profile's name only: where that is the one of the settings, their path is kept.
        if leading is not None and leading != Path(otherwise).stem:
            otherwise = leading
    named, told = Joined(there, asked, gang, cluster), []
    cases: dict[int | None, Case] = {}  # by priority: to check and compile a large cluster takes longer than to plan
    for wish in wishes:
        try:
            case = cases.get(wish.priority)
            if case is None or wish.queue is None:
                case = joined(there, document, wish, profile, settings.limits.state, otherwise)
            else:
                case = in_queue(case, wish.queue)
        except ClusterFileRefused as refusal:
            raise ClusterFileRefused(named.sentence(str(refusal), wish)) from refusal
        cases[wish.priority] = case
        told.append(planned(case))
    if as_json:
        say(json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        say_lines(in_words(told))
    return 0 if all(one["starts"] != NO for one in told) else 1


def _live(settings: Settings) -> tuple[dict[str, Any], str | None]:
    """The live state as a cluster file, and the profile of the service that leads, if one says so."""
    if settings.redis_url is None:
        raise SettingsRefused(
            "expected a cluster file (--cluster) or the broker of the fleet (--redis-url), found none"
        )
    with reading(settings, "plan") as (bus, now_s):
        document = cluster_document(Onlooker(settings, bus, now_s=now_s).state(), now_s())
        leads = [one.profile for _, one in present(bus).values() if one.state == "leads"]
    return document, leads[0] if leads else None


def _podgroups_of(cluster: Mapping[str, Any]) -> Sequence[Any]:
    """The podgroups of a cluster file.

    Raises
    ------
    ClusterFileRefused
        If they are no list.
    """
    listed = cluster.get("podgroups", ())
    if not isinstance(listed, list | tuple):
        raise ClusterFileRefused(f"podgroups: expected a list, found {shown(listed)}")
    return listed


def gang_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The podgroup that a file describes: by itself, or as the only one under ``podgroups``.

    Raises
    ------
    ClusterFileRefused
        If it is neither.
    """
    listed = document.get("podgroups")
    if listed is None:
        return dict(document)
    if not isinstance(listed, list) or len(listed) != 1 or not isinstance(listed[0], dict):
        found = f"{len(listed)}" if isinstance(listed, list) and len(listed) != 1 else shown(listed)
        raise ClusterFileRefused(f"podgroups: expected one podgroup, found {found}")
    return dict(listed[0])


def joined(
    cluster: Mapping[str, Any],
    gang: Mapping[str, Any],
    wish: Wish,
    profile: str | None,
    most: StateLimits,
    otherwise: str = "default",
) -> Case:
    """A cluster that a gang has joined as the last podgroup.

    Parameters
    ----------
    cluster, gang
        A cluster file, and the document of a podgroup.
    profile
        Used instead of the profile of the cluster file; None: that one.
    most
        Bounds on the size of the cluster file.
    otherwise
        The profile if neither ``profile`` nor the cluster file names one.

    Raises
    ------
    ClusterFileRefused
        If the gang is not valid in this cluster, for example because its name is taken.
    """
    asked = {"queue": wish.queue, "priority": wish.priority}
    document = {**gang, **{key: value for key, value in asked.items() if value is not None}}
    if wish.priority is not None:
        document.pop("priority_class", None)
    return open_case({**cluster, "podgroups": [*_podgroups_of(cluster), document]}, profile, most, otherwise)


def in_queue(case: Case, queue: str) -> Case:
    """The same cluster with its last podgroup in another queue.

    Raises
    ------
    ClusterFileRefused
        If there is no such queue.
    """
    row = len(case.names.podgroups) - 1
    if queue not in case.names.queue_row:
        offence = unknown(("podgroups", row, "queue"), "queue", queue, case.names.queues)
        raise ClusterFileRefused(sentence(offence, key_path(offence.where)))
    podgroups = case.snapshot.podgroups
    queues = with_rows(podgroups.queue, np.array([row]), case.names.queue_row[queue])
    return replace(case, snapshot=replace(case.snapshot, podgroups=replace(podgroups, queue=queues)))


def planned(case: Case) -> dict[str, Any]:
    """What would become of the last podgroup of a cluster, as plain data.

    Where it is in a gang group, with what is decided for that: one of its podgroups speaks for all.
    """
    name, names = case.names.podgroups[-1], case.names.podgroups
    row, snapshot, why = len(names) - 1, case.snapshot, Why(case.names)
    speaking = starting_with(snapshot, (row,))
    evictions: list[dict[str, str]] = []
    for _ in range(_CYCLES):
        done = cycle(snapshot, case.policy, case.now)
        why.take(snapshot, done, Host(Context(done.snapshot, case.policy, case.now)))
        evictions += _evictions(case.names, snapshot, done, speaking)
        snapshot = answered(done, case.now)
        if _runs(snapshot, row):
            break
    runs = _runs(snapshot, row)
    told = why.as_data()
    mine = [one for one in told["decisions"] if one["preemptor"] in {names[speaks] for speaks in speaking}]
    waiting = int((snapshot.tasks.status[snapshot.tasks_of(row)] == PENDING).sum())
    return {
        "podgroup": name, "queue": case.names.queues[snapshot.podgroups.queue[row]],
        "priority": int(snapshot.podgroups.priority[row]),
        "starts": (LATER if evictions else AT_ONCE) if runs else NO,
        "domain": next((one["domain"] for one in mine if one["domain"]), None),
        "places": _places(case, snapshot, row) if runs else [], "evictions": evictions,
        "decisions": mine, "waiting": waiting, "waits": told["podgroups"].get(name),
    }  # fmt: skip


def _runs(snapshot: Snapshot, podgroup: int) -> bool:
    return bool(minima_met(snapshot).ready[podgroup] and snapshot.counts.running[podgroup] > 0)


def _places(case: Case, snapshot: Snapshot, row: int) -> list[dict[str, str]]:
    """The tasks of the gang that have a node, and which."""
    node, names = snapshot.tasks.node, case.names
    tasks = snapshot.tasks_of(row).tolist()
    return [{"task": names.tasks[one], "node": names.nodes[int(node[one])]} for one in tasks if node[one] >= 0]


def _evictions(names: Names, before: Snapshot, done: Cycle, speaking: set[int]) -> list[dict[str, str]]:
    """Which tasks a cycle takes for some podgroups, where they run, and where those are to go that only move."""
    told = []
    for made in (one for one in done.statements if one.preemptor in speaking):
        promised = dict(zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True))
        for victim in made.evictions.tolist():
            moves = {"to": names.nodes[promised[victim]]} if promised.get(victim, NONE) != NONE else {}
            told.append({"task": names.tasks[victim], "node": names.nodes[int(before.tasks.node[victim])], **moves})
    return told
