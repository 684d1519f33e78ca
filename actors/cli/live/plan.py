"""``clearway plan``: what would become of a gang, in each queue and at each priority asked for; nothing is touched."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.cli.live.reading import reading
from actors.cli.sentences import NAMED, attempt_lines, condition_lines, condition_words, decision_lines, many
from actors.cli.simulate import Case, answered, open_case
from actors.cli.simulated_why import Why
from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping
from actors.configuration.settings import Settings
from actors.documents.bounded_files import say
from actors.documents.state_limits import StateLimits
from actors.imports.manifest_files import text_to_read
from actors.ingestion.exported import cluster_document
from actors.ingestion.spectating import Onlooker
from actors.protocol.presence import present
from pipeline.cluster.rules.minima_met import is_ready
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle, cycle
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context

#: A gang that has not started after this many cycles counts as one that does not start.
_CYCLES = 6
AT_ONCE, LATER, NO = "at once", "after evictions", "no"


@dataclass(frozen=True, slots=True)
class Wish:
    """Where and how urgent; None: as the gang itself says."""

    queue: str | None = None
    priority: int | None = None


def run(
    settings: Settings,
    gang: Path,
    cluster: Path | None,
    wishes: Sequence[Wish],
    *,
    profile: str | None,
    as_json: bool,
) -> int:
    """Print what would become of the gang for each wish, on a cluster file or the live state; 1 if it waits in any.

    Raises
    ------
    ClusterFileRefused
        If a file cannot be read or is not valid.
    NotListed
        If there is no live state to plan on.
    SettingsRefused
        If neither a cluster file nor a broker is named, or there is no such profile.
    """
    document = gang_of(read_mapping(text_to_read(gang), str(gang)))
    otherwise = settings.policy_profile
    if cluster is not None:
        there: Mapping[str, Any] = read_mapping(text_to_read(cluster), str(cluster))
    else:
        there, leading = _live(settings)
        otherwise = leading if leading not in (None, Path(otherwise).stem) else otherwise
    told = [planned(there, document, wish, profile, settings.limits.state, otherwise) for wish in wishes]
    say(json.dumps(told, ensure_ascii=False) + "\n" if as_json else "\n".join(in_words(told)) + "\n")
    return 0 if all(one["starts"] != NO for one in told) else 1


def _live(settings: Settings) -> tuple[dict[str, Any], str | None]:
    """The live state as a cluster file, and the profile of the service that leads, if one says so."""
    with reading(settings, "plan") as bus:
        document = cluster_document(Onlooker(settings, bus).state(), time.time())
        leads = [one.profile for _, one in present(bus).values() if one.state == "leads"]
    return document, leads[0] if leads else None


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
        raise ClusterFileRefused("podgroups: expected one podgroup")
    return dict(listed[0])


def planned(
    cluster: Mapping[str, Any],
    gang: Mapping[str, Any],
    wish: Wish,
    profile: str | None,
    most: StateLimits,
    otherwise: str = "default",
) -> dict[str, Any]:
    """What would become of a gang that joined a cluster now, as plain data.

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
    joined = {**gang, **{key: value for key, value in asked.items() if value is not None}}
    if wish.priority is not None:
        joined.pop("priority_class", None)
    case = open_case({**cluster, "podgroups": [*cluster.get("podgroups", ()), joined]}, profile, most, otherwise)
    name = case.names.podgroups[-1]
    row, snapshot, why = len(case.names.podgroups) - 1, case.snapshot, Why(case.names)
    first: Cycle | None = None
    for _ in range(_CYCLES):
        done = cycle(snapshot, case.policy, case.now)
        why.take(snapshot, done, Host(Context(done.snapshot, case.policy, case.now)))
        first = first if first is not None else done
        snapshot = answered(done, case.now)
        if _runs(snapshot, row):
            break
    runs = _runs(snapshot, row)
    told = why.told()
    mine = [one for one in told["decisions"] if one["preemptor"] == name]
    evicted = sum(one["evicts"] for one in mine)
    tasks = snapshot.tasks_of(row).tolist()
    places = [
        {"task": case.names.tasks[task], "node": case.names.nodes[int(snapshot.tasks.node[task])]}
        for task in tasks
        if runs and snapshot.tasks.node[task] >= 0
    ]
    return {
        "podgroup": name, "queue": joined.get("queue"), "priority": int(snapshot.podgroups.priority[row]),
        "starts": (LATER if evicted else AT_ONCE) if runs else NO,
        "domain": next((one["domain"] for one in mine if one["domain"]), None),
        "places": places, "evictions": _evictions(case, first, row),
        "decisions": mine, "waits": told["podgroups"].get(name),
    }  # fmt: skip


def _runs(snapshot: Snapshot, podgroup: int) -> bool:
    return bool(is_ready(snapshot)[podgroup] and snapshot.counts.running[podgroup] > 0)


def _evictions(case: Case, first: Cycle | None, row: int) -> list[dict[str, str]]:
    """Which tasks the first cycle takes for the gang, and where they run."""
    made = [one for one in first.statements if one.preemptor == row] if first is not None else []
    victims = [victim for one in made for victim in one.evictions.tolist()]
    node, names = case.snapshot.tasks.node, case.names
    return [{"task": names.tasks[one], "node": names.nodes[int(node[one])]} for one in victims]


def in_words(told: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What would become of the gang, for each wish."""
    for one in told:
        head = f"{one['podgroup']} in queue {one['queue']} at priority {one['priority']}"
        if one["starts"] == NO:
            yield f"{head} does not start"
            yield from _waits(one["waits"])
            continue
        where = f" in {one['domain']}" if one["domain"] else ""
        evicts = f" after {many(len(one['evictions']), 'eviction')}" if one["starts"] == LATER else " at once"
        yield f"{head} starts{evicts}{where}"
        yield from _some([f"  evicts {each['task']} on {each['node']}" for each in one["evictions"]], "task")
        yield from _some([f"  starts {each['task']} on {each['node']}" for each in one["places"]], "task")
        for made in one["decisions"]:
            if made["evicts"]:
                yield from (f"  {line}" for line in list(decision_lines(made, "to be"))[1:])


def _some(lines: Sequence[str], word: str) -> Iterator[str]:
    yield from lines[:NAMED]
    if len(lines) > NAMED:
        yield f"  and {many(len(lines) - NAMED, f'more {word}')}"


def _waits(condition: Mapping[str, Any] | None) -> Iterator[str]:
    if condition is None:
        return
    yield f"  {condition_words(condition)}"
    yield from condition_lines(condition)
    for attempt in condition["attempts"]:
        yield from attempt_lines(attempt)
