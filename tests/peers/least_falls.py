"""What a gang breaks under the profile ``kai`` on fleets of many seeds, beside the least that any victims break.

``python -m tests.peers.least_falls --peers FOLDER``: fleets ``jobs``, some seeds for each size of gang. The least is
proven (mixed-integer programs, HiGHS by way of SciPy): by priority from the highest down, as policy ranks it, and in
all, whatever the priority. In reclaim the least is that of all tasks of other queues, lawful together or not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack

from actors.benchmarks.peers import Opened, decided, fleet_of, judged, module_of, opened, policy_of
from pipeline.cluster.arrays import NONE, Floats, Longs
from pipeline.placement.need import need_of

#: A field of the program may take so many seconds.
_SECONDS = 60.0


class Least:
    """The program of one gang alike on one fleet: which tasks go, which podgroups break, how many fit where."""

    def __init__(self, case: Opened, action: str) -> None:
        snapshot = case.snapshot
        tasks, groups = snapshot.tasks, snapshot.podgroups
        waiting = int(np.flatnonzero(snapshot.counts.pending > 0)[0])
        need = need_of(snapshot, (waiting,))
        may = groups.queue != groups.queue[waiting]
        if action == "preempt":
            may = ~may & (groups.priority < groups.priority[waiting])
        rows = np.flatnonzero((tasks.node != NONE) & (may & groups.preemptible)[tasks.podgroup])
        self._held = snapshot.shapes.request[tasks.shape[rows]]
        self._node, self._owner, self._wanted = tasks.node[rows], tasks.podgroup[rows], need.minimum
        self._request, self._room = need.request[0], snapshot.room.future
        self._ready, self._least = snapshot.counts.ready, groups.min_available
        self._priority = groups.priority
        self._counts = len(rows), len(groups), len(snapshot.nodes)
        self._laws = [*self._on_nodes(), self._enough(), self._spared()]

    def by_priority(self) -> Longs | None:
        """int64[G]: 1 for podgroups that break where fewest do of each priority, from the highest; None: not proven."""
        laws, found = list(self._laws), None
        for level in np.unique(self._priority[self._owner])[::-1]:
            counted = (self._priority == level).astype(np.float64)
            found = self._solved(counted, laws)
            if found is None:
                return None
            row = csr_array(np.concatenate([np.zeros(self._counts[0]), counted, np.zeros(self._counts[2])])[None, :])
            laws.append(LinearConstraint(row, -np.inf, float(counted @ found)))
        return found

    def in_all(self) -> Longs | None:
        """int64[G]: the same where fewest of several tasks break, then fewest single tasks."""
        return self._solved(np.where(self._least > 1, 1.0, 1e-3), self._laws)

    def _solved(self, cost: Floats, laws: Sequence[Any]) -> Longs | None:
        tasks, groups, nodes = self._counts
        upper = np.concatenate([np.ones(tasks + groups), np.full(nodes, self._wanted)])
        objective = np.concatenate([np.zeros(tasks), cost, np.zeros(nodes)])
        options = {"time_limit": _SECONDS, "mip_rel_gap": 0.0}
        found = milp(
            objective, integrality=np.ones(len(upper)), bounds=Bounds(0.0, upper), constraints=laws, options=options
        )
        return np.rint(found.x[tasks : tasks + groups]).astype(np.int64) if found.status == 0 else None

    def _on_nodes(self) -> list[Any]:
        """On each node the gang takes no more than what is free there and what victims held."""
        tasks, groups, nodes = self._counts
        nothing, laws = csr_array((nodes, groups)), []
        for r in np.flatnonzero(self._request):
            freed = csr_array((-self._held[:, r].astype(float), (self._node, np.arange(tasks))), shape=(nodes, tasks))
            taken = csr_array((np.full(nodes, float(self._request[r])), (np.arange(nodes),) * 2))
            laws.append(LinearConstraint(hstack([freed, nothing, taken]), -np.inf, self._room[:, r].astype(float)))
        return laws

    def _enough(self) -> Any:
        tasks, groups, nodes = self._counts
        row = np.concatenate([np.zeros(tasks + groups), np.ones(nodes)])
        return LinearConstraint(csr_array(row[None, :]), float(self._wanted), np.inf)

    def _spared(self) -> Any:
        """A podgroup that does not break loses no more than its surplus."""
        tasks, groups, nodes = self._counts
        lost = csr_array((np.ones(tasks), (self._owner, np.arange(tasks))), shape=(groups, tasks))
        spare = np.maximum(self._ready - self._least, 0).astype(float)
        breaks = csr_array((-(self._ready - spare), (np.arange(groups),) * 2))
        return LinearConstraint(hstack([lost, breaks, csr_array((groups, nodes))]), -np.inf, spare)

    def told(self, broken: Longs | None) -> str:
        """How many of several tasks break, how many of one, and of which priorities."""
        if broken is None:
            return "not proven"
        rows = np.flatnonzero(broken)
        gangs = int((self._least[rows] > 1).sum())
        levels, count = np.unique(self._priority[rows], return_counts=True)
        by_level = ", ".join(f"{level}: {many}" for level, many in zip(levels, count, strict=True))
        return f"{gangs} + {len(rows) - gangs} ({by_level})"


class Row(NamedTuple):
    """A fleet: what was broken, the least by priority, and the least in all."""

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
    levels = ", ".join(f"{level}: {many}" for level, many in found["falls_by_priority"].items())
    least = Least(case, action)
    return Row(
        arguments, f"{found['broken']} + {found['lone']} ({levels})",
        least.told(least.by_priority()), least.told(least.in_all()),
    )  # fmt: skip


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
