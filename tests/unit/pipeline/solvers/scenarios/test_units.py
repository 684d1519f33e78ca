"""The queue of victims."""

from typing import Any

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Purpose
from pipeline.solvers.scenarios.units import victim_units
from tests.support.builders import AXIS, cluster, gang


def test_the_order_once_no_podgroup_has_surplus_is_worked_out_once_for_podgroups_with_the_same_victims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = [gang(3, [0, 1], minimum=least, cpu=1, priority=rank) for rank, least in enumerate((1, 2, 3))]
    state = cluster([{}, {}], [*running, *(gang(1, cpu=cpu, priority=9) for cpu in (1, 2, 3))])
    host, worked_out, plain = Host(Context(state, load_profile("kai"), 0.0)), list[list[int]](), Host.on

    def spied(asked: Host, changed: Any, evicted: Any) -> Host:
        worked_out.append(evicted.tolist())
        return plain(asked, changed, evicted)

    monkeypatch.setattr(Host, "on", spied)
    preemptors = [Preemptor((row,), np.ones(len(AXIS), np.int64), Purpose.PREEMPT) for row in (3, 4, 5)]
    assert len({victim_units(host, one).rows.tobytes() for one in preemptors}) == 1
    assert len(worked_out) == 1
    host.job_rank_after(np.array([0]))
    assert worked_out[1:] == [[0]]
