"""Decide the fleets on which other schedulers were measured, and write down how the decisions compare: ``make peers``.

The fleets' generator and the judge of decisions lie in a folder of their own beside the checkout. Each fleet is decided
by the profile ``default`` and by the profile that restates the peer. Times are processor times of 1,000 events and a
cycle, theirs are those of opening a session and running one action.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from actors.benchmarks.peers import (
    decided,
    fleet_of,
    judged,
    least,
    least_time,
    module_of,
    opened,
    peers_measured,
    policy_of,
)
from tests.support.results import put_results

#: How much faster than the peer a decision of one gang and of many small ones must be.
WIDE, MANY = 1000.0, 10.0
_RUNS = 5


def measured(row: Mapping[str, str], peers: Path, judge: ModuleType) -> Iterator[dict[str, Any]]:
    """The row's fleet decided by ``default`` and by the peer's own policy."""
    fleet = fleet_of(peers, row["fleet"])
    action = fleet["policy"]["actions"][0]
    for profile in ("default", row["peer"]):
        case = opened(fleet, policy_of(action, row, profile))
        # One process decides, so its processor time is what the clock would say on a machine of its own.
        done, spent = decided(case, time.process_time, _RUNS)
        ms = round(float(np.median(spent)), 1)
        yield {"row": row, "profile": profile, "ms": ms} | judged(judge, fleet, case, done)


# -- the table ---------------------------------------------------------------------------------------------------------


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
    theirs = least_time(row)
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


def main() -> int:
    """Measure the rows one after the other, each in a process of its own, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="folder with fleets.py and judge.py")
    parser.add_argument("--output", type=Path, help="page that gets the table between its marks")
    parser.add_argument("--only", help="part of a fleet's arguments")
    parser.add_argument("--row", type=int, help="measure one row of peers.csv, as lines of JSON")
    chosen = parser.parse_args()
    rows = peers_measured()
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
        put_results(chosen.output, "".join(f"{line}\n" for line in lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
