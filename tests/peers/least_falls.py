"""What a gang breaks under the profile ``kai`` on fleets of many seeds, beside the least that any victims break.

``python -m tests.peers.least_falls --peers FOLDER``: fleets ``jobs``, some seeds for each size of gang. The least is
proven by the program of ``optimality`` with counts in place of prices: by priority from the highest down, as policy
ranks it, and in all, whatever the priority. In reclaim the least is that of all candidates, lawful together or not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actors.benchmarks.exact_program import Program
from actors.benchmarks.peers import Opened, decided, fleet_of, judged, module_of, opened, policy_of
from pipeline.cluster.arrays import Bools
from pipeline.decision.attempt import Attempt
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.solver import search_of

_ANY_QUEUE = int(np.iinfo(np.int64).max)


class Falls(Program):
    """The same tasks, nodes and minima; what is least is how many podgroups fall, class by class.

    ``classes``: bool[G] each; those of the first one are fewest, then those of the second, and so on.
    """

    def __init__(self, search: BundleSearch, classes: Sequence[Bools]) -> None:
        super().__init__(search, _ANY_QUEUE)
        self._objectives = [self._row(1, one.astype(np.float64)) for one in classes]

    def _queues(self) -> list[Any]:
        """No law of queues."""
        return []

    def counted(self) -> list[int] | None:
        """How many of each class fall where those of the classes before it are fewest; None if that is not proven."""
        least = self.least()
        return None if least is None else np.rint(least.work).astype(int).tolist()


class Row(NamedTuple):
    """A fleet: what fell, the least by priority, and the least in all (gangs of several tasks, then single tasks)."""

    fleet: str
    ours: str
    by_priority: str
    in_all: str


def measured(peers: Path, judge: Any, arguments: str) -> Row:
    """One fleet, decided and solved."""
    fleet = fleet_of(peers, arguments)
    action = fleet["policy"]["actions"][0]
    case = opened(fleet, policy_of(action, {"way": "gang"}, "kai"))
    found = judged(judge, fleet, case, decided(case, time.process_time, 0)[0])
    search, groups = _search(case, Purpose(action)), case.snapshot.podgroups
    levels = np.unique(groups.priority)[::-1]
    by_level = Falls(search, [groups.priority == level for level in levels]).counted()
    several = groups.min_available > 1
    in_all = Falls(search, [several, ~several]).counted()
    return Row(
        arguments,
        f"{found['broken']} + {found['lone']} ({_told(found['falls_by_priority'])})",
        "not proven" if by_level is None else _told(dict(zip(levels.tolist(), by_level, strict=True))),
        "not proven" if in_all is None else " + ".join(map(str, in_all)),
    )


def _told(by_level: Mapping[Any, int]) -> str:
    """Levels with what falls of each, the lowest first; the judge names levels by strings."""
    return ", ".join(
        f"{level}: {many}" for level, many in sorted(by_level.items(), key=lambda one: int(one[0])) if many
    )


def _search(case: Opened, purpose: Purpose) -> BundleSearch:
    """The candidates of the one gang that waits."""
    waiting = int(np.flatnonzero(case.snapshot.counts.pending > 0)[0])
    attempt = Attempt(case.snapshot, case.policy, purpose, (waiting,), None, case.now, purpose.value)
    return search_of(attempt, host_of(attempt), need_of(case.snapshot, attempt.podgroups, surplus=False))


def main() -> int:
    """A row of Markdown for each fleet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="folder with fleets.py and judge.py")
    parser.add_argument("--action", choices=("preempt", "reclaim"), default="preempt")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64], help="of gangs")
    parser.add_argument("--seeds", type=int, default=10, help="for each size, from 1 on")
    chosen = parser.parse_args()
    judge = module_of(chosen.peers / "judge.py")
    sys.stdout.write("| fleet | `kai` breaks | least by priority | least in all |\n| --- | --- | --- | --- |\n")
    for size in chosen.sizes:
        for seed in range(1, chosen.seeds + 1):
            arguments = f"jobs {chosen.nodes} {chosen.action} --gang {size} --seed {seed}"
            sys.stdout.write("| " + " | ".join(measured(chosen.peers, judge, arguments)) + " |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
