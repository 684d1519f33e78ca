"""Decide the fleets on which other schedulers were measured, and write down how the decisions compare: ``make peers``.

The fleets' generator and the judge of decisions lie in a folder of their own beside the checkout. Each fleet is decided
by the profile ``default`` and by the profile that restates the peer. Times are processor times of 1,000 events and a
cycle, theirs are those of opening a session and running one action.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from actors.cli.simulate import Case, open_case
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import CURRENT, Changes, TaskNews
from pipeline.cluster.updates.fold import fold
from pipeline.cycle import Cycle, cycle

MEASURED = Path(__file__).with_name("measured.csv")
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"
#: How much faster than the peer a decision of one gang and of many small ones must be.
WIDE, MANY = 1000.0, 10.0
_NEWS, _RUNS = 1_000, 5


def module_of(file: Path) -> ModuleType:
    """A module beside the checkout."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.exists():
        raise SystemExit(f"{file}: expected it beside the checkout; name the folder with --peers")
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


def told_again(snapshot: Snapshot) -> Snapshot:
    """The snapshot after events that say of 1,000 running tasks what they said before."""
    tasks = snapshot.tasks
    rows = np.random.default_rng(1).permutation(np.flatnonzero(tasks.node != NONE))[:_NEWS]
    news = TaskNews(
        row=frozen(rows, np.int64),
        status=tasks.status[rows],
        node=tasks.node[rows],
        card=tasks.card[rows],
        incarnation=frozen(np.full(len(rows), CURRENT), np.int64),
        revision=frozen(tasks.revision[rows] + 1, np.int64),
        at=frozen(tasks.created[rows] if hasattr(tasks, "created") else np.zeros(len(rows)), np.float64),
    )
    return fold(snapshot, Changes(tasks=news))


def decided(case: Case) -> tuple[Cycle, float]:
    """One cycle of the case, and the processor time that it takes in milliseconds, the median over new snapshots.

    One process decides, so on a machine that others share it is what the clock would say on one of its own.
    """
    snapshot = told_again(case.snapshot)
    cycle(snapshot, case.policy, case.now)
    spent: list[float] = []
    for _ in range(_RUNS):
        begin = time.process_time()
        done = cycle(told_again(snapshot), case.policy, case.now)
        spent.append((time.process_time() - begin) * 1e3)
        if sum(spent) > 20_000.0:
            break
    return done, float(np.median(spent))


def judged(judge: ModuleType, fleet: Mapping[str, Any], case: Case, done: Cycle) -> dict[str, Any]:
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


def measured(row: Mapping[str, str], peers: Path, judge: ModuleType) -> Iterator[dict[str, Any]]:
    """The row's fleet decided by ``default`` and by the peer's own policy."""
    fleet = fleet_of(peers, row["fleet"])
    action = fleet["policy"]["actions"][0]
    for profile in ("default", row["peer"]):
        case = open_case(fleet | {"policy": policy_of(action, row, profile)})
        done, spent = decided(case)
        yield {"row": row, "profile": profile, "ms": round(spent, 1)} | judged(judge, fleet, case, done)


# -- the table ---------------------------------------------------------------------------------------------------------


def figures(said: str) -> list[float]:
    """The numbers in a figure of the peer: of several runs, or of the parts of a sum."""
    return [float(one) for one in re.findall(r"\d+(?:\.\d+)?", said)]


def least(said: str) -> float | None:
    """The smallest of them, None if there is none."""
    return min(figures(said), default=None)


def worse_in(one: Mapping[str, Any]) -> list[str]:
    """The measures in which the peer's best figure beats ours."""
    row, told = one["row"], []
    if one["wrong"]:
        told.append("unlawful: " + "; ".join(one["wrong"]))
    theirs = least(row["broken"])
    together = bool(row["lone"]) or "lone" in row["broken"]
    if theirs is not None and one["broken"] + together * one["lone"] > theirs + (least(row["lone"]) or 0.0):
        told.append("podgroups that fall")
    for name, ours in (("lost_gpu_h", "lost_gpu_hours"), ("gpus", "victim_gpus"), ("victims", "victims")):
        best = least(row[name])
        if best is not None and one[ours] > best:
            told.append({"lost_gpu_h": "lost work", "gpus": "GPUs of victims", "victims": "victims"}[name])
    ratio, wanted = faster(one)
    if ratio is not None and ratio < wanted:
        told.append(f"time: {ratio:.0f} times faster, {wanted:.0f} asked for")
    return told


def faster(one: Mapping[str, Any]) -> tuple[float | None, float]:
    """How many times faster we are, and how many are asked for."""
    row = one["row"]
    theirs = sum(least(row[name]) or 0.0 for name in ("open_ms", "action_ms"))
    many = "many" in row["fleet"] or "--gangs" in row["fleet"] or row["way"] != "gang"
    wide = any(size in row["fleet"] for size in ("A512", "S512", "--gang 512", "large"))
    return (theirs / one["ms"] if theirs else None), (WIDE if wide and not many else MANY)


def lines(found: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The results as Markdown: a row for each fleet and profile."""
    yield "| fleet | profile | ms, peer | ms | victims, peer | victims | GPUs, peer | GPUs | fall, peer | fall | falls by priority | lost GPU-h, peer | lost GPU-h | where the peer is better |"  # noqa: E501
    yield "|" + " --- |" * 14
    for one in found:
        row = one["row"]
        theirs = " + ".join(part for part in (row["open_ms"], row["action_ms"]) if part)
        fall = " + ".join(part for part in (row["broken"], row["lone"]) if part)
        by_level = ", ".join(f"{level}: {count}" for level, count in one["falls_by_priority"].items())
        placed = f"{one['placed_gangs']} of {one['gangs']} gangs" if one["placed_gangs"] < one["gangs"] else ""
        fleet = row["fleet"] + ("" if row["way"] == "gang" else f", {row['way']}")
        remarks = "; ".join([*worse_in(one), *([placed] if placed else [])])
        cells = (
            fleet, one["profile"], theirs, f"{one['ms']:g}",
            row["victims"], one["victims"], row["gpus"], one["victim_gpus"], fall, f"{one['broken']} + {one['lone']}",
            by_level, row["lost_gpu_h"], one["lost_gpu_hours"], remarks,
        )  # fmt: skip
        yield "| " + " | ".join(map(str, cells)) + " |"


def written(page: Path, results: Sequence[str]) -> None:
    """Put the results between the marks of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(before + BEGIN + "\n".join(results) + "\n" + END + after, encoding="utf-8")


def main() -> int:
    """Measure the rows one after the other, each in a process of its own, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="folder with fleets.py and judge.py")
    parser.add_argument("--output", type=Path, help="page that gets the table between its marks")
    parser.add_argument("--only", help="part of a fleet's arguments")
    parser.add_argument("--row", type=int, help="measure one row of measured.csv, as lines of JSON")
    chosen = parser.parse_args()
    rows = list(csv.DictReader(MEASURED.read_text(encoding="utf-8").splitlines()))
    judge = module_of(chosen.peers / "judge.py")
    if chosen.row is not None:
        for one in measured(rows[chosen.row], chosen.peers, judge):
            sys.stdout.write(json.dumps(one) + "\n")
        return 0
    found: list[dict[str, Any]] = []
    for at, row in enumerate(rows):
        if (chosen.only or "") not in row["fleet"]:
            continue
        command = [sys.executable, "-m", "tests.peers.report", "--peers", str(chosen.peers), "--row", str(at)]
        made = subprocess.run(command, check=False, capture_output=True, text=True)
        if made.returncode:
            sys.stderr.write(f"{row['fleet']}: {made.stderr.strip().splitlines()[-1:]}\n")
            continue
        some = [json.loads(line) for line in made.stdout.splitlines()]
        sys.stdout.write("\n".join(list(lines(some))[2:]) + "\n")
        sys.stdout.flush()
        found += some
    if chosen.output is not None:
        written(chosen.output, list(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
