"""Preempt and reclaim task by task, for one waiting task, against all that could be done on random small clusters.

A way is one node and some of its tasks that may go together. None is unlawful, and none is missed. The price is not the
least: task by task the best-scored node is taken, as Volcano does. How often it is the least is counted by

    python -m tests.property.test_random_tasks preempt 0 1000
"""

import sys
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.price import Price, lost_work, price_of
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.propose import host_of, propose
from tests.support.brute_force import attempt_of, crowded, stands
from tests.support.depth import sampled

SEEDS = range(sampled(150))
_POINTS = {Purpose.PREEMPT: ExtensionPoint.PREEMPTABLE, Purpose.RECLAIM: ExtensionPoint.RECLAIMABLE}


@dataclass(frozen=True)
class Compared:
    """The price that was found and the least; None where there is no way."""

    found: Price | None
    least: Price | None


def with_one_task(seed: int, purpose: Purpose) -> dict[str, Any]:
    """A small cluster whose waiting podgroup has a single task, served task by task."""
    document = crowded(seed, purpose)
    waits = document["podgroups"][-1]
    for name in ("subgroups", "min_subgroups", "roles"):
        waits.pop(name, None)
    waits["tasks"], waits["min_available"] = waits["tasks"][:1], 1
    for task in waits["tasks"]:
        task.pop("subgroup", None)
        task.pop("role", None)
    document["policy"]["action_arguments"] = {purpose.value: {"gang_aware": False}}
    return document


def compared(seed: int, purpose: Purpose) -> Compared:
    """What is found and the least, on one cluster."""
    attempt = attempt_of(with_one_task(seed, purpose), purpose)
    found = propose(attempt)
    return Compared(found.price if isinstance(found, Plan) else None, least_of(attempt))


def least_of(attempt: Attempt) -> Price | None:
    """The least price of all nodes and all sets of their tasks that may go together and make room."""
    snapshot, host = attempt.snapshot, host_of(attempt)
    (podgroup,) = attempt.podgroups
    task = snapshot.pending(podgroup)[:1]
    request = snapshot.request[task].sum(axis=0)
    preemptor = Preemptor(attempt.podgroups, request, attempt.purpose, int(task[0]))
    groups, queue = snapshot.podgroups, snapshot.podgroups.queue
    mine, rank = queue[podgroup], None
    if attempt.purpose is Purpose.PREEMPT:
        others = groups.alive & (queue == mine) & (np.arange(len(groups)) != podgroup)
    else:
        others = groups.alive & (queue != mine) & snapshot.queues.reclaimable[queue]
        rank = host.victim_queue_rank(int(mine))[queue]
        if not host.preemptive(preemptor):
            others[:] = False
    may = np.flatnonzero(host.task_candidates(preemptor, others, _POINTS[attempt.purpose]))
    found = list[Price]()
    for node in range(len(snapshot.nodes)):
        here = may[snapshot.tasks.node[may] == node].tolist()
        for some in (c for many in range(len(here) + 1) for c in combinations(here, many)):
            if not any(
                host.task_victims(preemptor, np.array(order, np.int64), _POINTS[attempt.purpose]).all()
                for order in permutations(some)
            ):
                continue
            victims = np.array(some, np.int64)
            if stands(attempt, host, task, victims, (node, node + 1)):
                lost = lost_work(snapshot, attempt.now)
                domain = snapshot.topology.lowest_common(np.array([node]))
                found.append(price_of(snapshot, victims, request, lost, rank, domain))
    return min(found, default=None)


def defect_of(seed: int, purpose: Purpose) -> str | None:
    """What is wrong on one cluster; None if nothing is."""
    both = compared(seed, purpose)
    if both.least is None and both.found is not None:
        return f"found {both.found}, where nothing is lawful"
    if both.found is None and both.least is not None:
        return f"missed {both.least}"
    if both.found is not None and both.least is not None and both.found < both.least:
        return f"costs {both.found}, but nothing lawful costs less than {both.least}"
    return None


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM], ids=["preempt", "reclaim"])
def test_no_place_is_unlawful_and_none_is_missed(purpose: Purpose) -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed, purpose))}
    assert not wrong


def main(purpose: Purpose, first: int, stop: int) -> int:
    """Compare a range of seeds; print what is wrong, and how many prices are the least."""
    wrong = [f"{seed} {found}" for seed in range(first, stop) if (found := defect_of(seed, purpose))]
    every = [compared(seed, purpose) for seed in range(first, stop)]
    priced = [one for one in every if one.least is not None and one.least.victims > 0]
    same = sum(one.found == one.least for one in priced)
    said = f"{len(wrong)} wrong; of {len(priced)} with victims the least in {same}"
    sys.stdout.write("\n".join([*wrong, said]) + "\n")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(Purpose(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])) > 0)
