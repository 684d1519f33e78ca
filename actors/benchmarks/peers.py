"""Decisions on the fleets on which other schedulers were measured, each with the peer's figure beside ours.

The fleets' generator and the judge of decisions are in a folder beside the checkout. The figures of the peers are in
``peers.csv``: clock times of opening a session and of one action on two cores. Ours are of 1,000 events and a cycle,
without the state after its last plan, which is worked out only where it is asked for.
"""

from __future__ import annotations

import csv
import gc
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from actors.benchmarks.figures import RUNS, Figure, NotAvailable, digits
from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from actors.configuration.profiles import load_profile
from actors.fleets.prompt import news_of
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from pipeline.cycle import Cycle, cycle
from pipeline.policy import Policy

MEASURED = Path(__file__).with_name("peers.csv")
_NEWS, _ENOUGH_MS = 1_000, 2_000.0


def peers_measured() -> list[dict[str, str]]:
    """The rows of ``peers.csv``: a fleet, how it was searched, and the figures of the peer."""
    return list(csv.DictReader(MEASURED.read_text(encoding="utf-8").splitlines()))


def peer_measurements(peers: Path | None) -> dict[str, Callable[[], Figure]]:
    """The fleets on which KAI Scheduler was measured, under the profile `kai`; ``peers``: the folder beside us."""
    rows = (row for row in peers_measured() if row["peer"] == "kai")
    return {f"kai {row['fleet']}": partial(_decided_by_both, row, peers) for row in rows}


def _decided_by_both(row: Mapping[str, str], peers: Path | None) -> Figure:
    """One fleet decided under the profile that restates the peer, and judged by the fleet's file alone."""
    if peers is None:
        raise NotAvailable("name the folder with fleets.py and judge.py with --peers")
    fleet, judge = fleet_of(peers, row["fleet"]), module_of(peers / "judge.py")
    action = fleet["policy"]["actions"][0]
    case = opened(fleet, policy_of(action, row, row["peer"]))
    done, spent = decided(case, time.perf_counter, RUNS)
    found, theirs = judged(judge, fleet, case, done), least_time(row)
    also: dict[str, float | int | str] = {
        "kai_ms": theirs or 0.0,
        "times_faster": digits((theirs or 0.0) / float(np.median(spent))),
        "gangs_placed": f"{found['placed_gangs']} of {found['gangs']}",
        "broken": f"{found['broken']} + {found['lone']}",
        "kai_broken": f"{row['broken']} + {row['lone']}" if row["broken"] else "not recorded",
        "unlawful": "; ".join(found["wrong"]) or "no",
    }
    return Figure(digits(np.median(spent)), digits(np.percentile(spent, 99)), len(spent), also)


def figures(said: str) -> list[float]:
    """The numbers in a figure of the peer: of several runs, or of the parts of a sum."""
    return [float(one) for one in re.findall(r"\d+(?:\.\d+)?", said)]


def least(said: str) -> float | None:
    """The smallest of them, None if there is none."""
    return min(figures(said), default=None)


def least_time(row: Mapping[str, str]) -> float | None:
    """Milliseconds of the peer's session and action; None if they were not recorded."""
    return sum(least(row[name]) or 0.0 for name in ("open_ms", "action_ms")) or None


# -- fleets and decisions ----------------------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A fleet as columns, with its policy and its clock."""

    snapshot: Snapshot
    names: Names
    policy: Policy
    now: float


def opened(fleet: Mapping[str, Any], policy: Mapping[str, Any]) -> Opened:
    """A fleet's cluster file under another policy than its own."""
    cluster = read_cluster(fleet)
    block = {key: value for key, value in policy.items() if key != "profile"}
    return Opened(*compile_cluster(cluster), load_profile(policy["profile"], block), float(cluster.now))


def module_of(file: Path) -> ModuleType:
    """A module beside the checkout.

    Raises
    ------
    NotAvailable
        If it is not there.
    """
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.exists():
        raise NotAvailable(f"{file}: expected it beside the checkout; name the folder with --peers")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fleet_of(peers: Path, arguments: str) -> dict[str, Any]:
    """The fleet as the generator's command line makes it."""
    command = [sys.executable, str(peers / "fleets.py"), *arguments.split()]
    made = subprocess.run(command, check=True, capture_output=True)
    return dict(json.loads(made.stdout))


def policy_of(action: str, row: Mapping[str, str], profile: str) -> dict[str, Any]:
    """The policy block: the row's way of searching under a profile."""
    one_by_one = row["way"] != "gang"
    if profile == "volcano" and not one_by_one:
        return {"profile": profile, "actions": [f"gang{action}"]}
    said: dict[str, Any] = {"profile": profile, "actions": [action]}
    return said | ({"action_arguments": {action: {"gang_aware": False}}} if one_by_one else {})


def told_again(snapshot: Snapshot) -> Changes:
    """Events that say of 1,000 running tasks what they said before."""
    tasks = snapshot.tasks
    rows = np.random.default_rng(1).permutation(np.flatnonzero(tasks.node != NONE))[:_NEWS]
    said = tasks.status[rows], tasks.node[rows], tasks.card[rows]
    return Changes(tasks=news_of(snapshot, rows, *said, tasks.created[rows]))


def decided(case: Opened, clock: Callable[[], float], runs: int) -> tuple[Cycle, list[float]]:
    """One cycle of the case, and the milliseconds that events and a cycle take, each on a new snapshot.

    What was loaded before is kept out of the search for garbage, as a service does after it has started.
    """
    gc.collect()
    gc.freeze()
    snapshot = fold(case.snapshot, told_again(case.snapshot))
    done, events = cycle(snapshot, case.policy, case.now), told_again(snapshot)
    spent: list[float] = []
    while len(spent) < runs and sum(spent) <= _ENOUGH_MS:
        begin = clock()
        done = cycle(fold(snapshot, events), case.policy, case.now)
        spent.append((clock() - begin) * 1e3)
    return done, spent


def judged(judge: ModuleType, fleet: Mapping[str, Any], case: Opened, done: Cycle) -> dict[str, Any]:
    """What the decision does to the fleet, by the fleet's own file."""
    names = case.names
    evicted = [names.tasks[row] for made in done.statements for row in made.evictions.tolist()]
    placed = {
        names.tasks[task]: names.nodes[node]
        for made in done.statements
        for rows, nodes in ((made.nominated, made.nominated_node), (made.bound, made.bound_node))
        for task, node in zip(rows.tolist(), nodes.tolist(), strict=True)
        if node != NONE
    }
    plain = {name.rsplit("/", 1)[-1]: node for name, node in placed.items()}
    return dict(judge.judge(fleet, [name.rsplit("/", 1)[-1] for name in evicted], plain))
