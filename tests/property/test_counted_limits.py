"""What victims leave below the limits of a queue: counted in columns, it is what the plugins say once they have gone.

More seeds by

    python -m tests.property.test_counted_limits 0 2000
"""

import random
import sys
from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.cycle import cycle
from pipeline.decision.headroom import LineLimits, line_limits
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.solvers.scenarios.law import Law
from tests.support.below_limits import GPU, below_limits
from tests.support.depth import sampled
from tests.support.seeds import compare

SEEDS = range(sampled(60))


def defect_of(seed: int) -> str | None:
    """A difference between what is counted and what is said; None if there is none."""
    case, rng = open_case(below_limits(seed)), random.Random(seed)
    snapshot = case.snapshot
    host = Host(Context(snapshot, case.policy, case.now))
    running = np.flatnonzero(snapshot.tasks.node >= 0)
    some = np.sort(np.array(rng.sample(running.tolist(), rng.randint(0, len(running))), np.int64))
    last = len(snapshot.podgroups) - 1
    limits = line_limits(host, last)
    counted = limits.left_by(snapshot, some).min(axis=0)
    said = host.on(WhatIf.of(snapshot).evicting(some), some).headroom_of(last)
    if not limits.counted:
        return "the limits are not told"
    held = np.zeros_like(snapshot.allocated)
    snapshot.add_requests(some, held, snapshot.queue_of(some))
    if not (limits.left_without(held).min(axis=0) == counted).all():
        return "what tasks hold of queues leaves something else"
    bound = said < 2**40  # beyond, there is no limit
    if not (counted[bound] == said[bound]).all():
        return f"{counted} {said}"
    rng.shuffle(order := running.tolist())
    return _leading_defect(snapshot, limits, np.array(order, np.int64), snapshot.shapes.request[-1] * rng.randint(1, 5))


def _leading_defect(snapshot: Snapshot, limits: LineLimits, order: Rows, request: Longs) -> str | None:
    """How many leading tasks must go, by trying each number, if another one is counted; else None."""
    held = snapshot.shapes.request[snapshot.tasks.shape[order]]
    found = limits.leading(request, snapshot.queue_of(order).astype(np.int32), held)
    asked = request > 0
    enough = (
        many
        for many in range(len(order) + 1)
        if (limits.left_by(snapshot, order[:many]) >= request)[:, asked].all()
    )  # fmt: skip
    expected = next(enough, NONE)
    return None if found == expected else f"{found} leading tasks instead of {expected}"


def test_what_victims_leave_below_limits_is_counted_as_the_plugins_say_it_and_as_trying_each_number_does() -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed))}
    assert not wrong


def of_several_queues(seed: int) -> dict[str, Any]:
    """Victims of a reclaim in three queues, one of them beyond the limit of the others."""
    made, rng = below_limits(seed), random.Random(seed)
    made["policy"] = {"profile": "kai", "actions": ["reclaim"]}
    every = {"cpu": "unlimited", "memory": "unlimited"}
    made["queues"] += [{"name": "near", "parent": "top", "deserved": every}, {"name": "far", "deserved": every}]
    for one in made["podgroups"]:
        one["queue"] = rng.choice(["a", "near", "far"]) if one["name"].startswith("low") else "b"
    for one in made["queues"]:
        if one["name"] != "top":
            one["deserved"] = {**every, GPU: 99 if one["name"].endswith("b") else 0}
    return made


def test_the_same_units_return_where_limits_are_counted_at_once_or_by_halves_as_where_each_return_is_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = [open_case(of_several_queues(seed)) for seed in SEEDS]
    counted = [cycle(case.snapshot, case.policy, case.now).plans for case in cases]
    for name, nothing in (("quota", None), ("spare", lambda *_: None)):
        monkeypatch.setattr(Law, name, nothing)
        assert [repr(cycle(case.snapshot, case.policy, case.now).plans) for case in cases] == [*map(repr, counted)]
    assert any(len(plan.statement.evictions) for plans in counted for plan in plans)


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
