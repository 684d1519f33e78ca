"""Plugins asked on a what-if answer what plugins made for the same snapshot answer."""

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from pipeline.cluster.arrays import NO_ROWS, NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import ExtensionPoint, PluginSetting, Policy, Purpose
from tests.support.builders import AXIS, Gang, Task, cluster
from tests.support.editing import with_budget, with_parents, with_quota
from tests.support.task_centric import policy

ALL = [
    PluginSetting("gang"), PluginSetting("priority"), PluginSetting("drf"), PluginSetting("proportion"),
    PluginSetting("pdb"), PluginSetting("evictionbudget", arguments=(("at_once", 3), ("ratio", 4), ("breaks", 2))),
    PluginSetting("capacity", arguments=(("strict", True),)),
]  # fmt: skip
POLICIES = [load_profile("default"), load_profile("volcano"), policy(ALL)]


def state(deserved: int = 6, *, budget: bool = True) -> Snapshot:
    """Two queues below one, each with a gang that runs, and one that waits in the first, which deserves so much."""
    running = [Gang([Task(node, gpu=1) for node in (0, 0, 1, 1)], minimum=2, queue=queue) for queue in (1, 2)]
    waiting = Gang([Task(gpu=1), Task(gpu=1)], minimum=2, priority=5, queue=1)
    made = cluster([{"gpu": 8}] * 2, [*running, waiting], queues=3)
    made = with_parents(with_quota(made, deserved={1: {"gpu": deserved}, 2: {"gpu": 8 - deserved}}), NONE, 0, 0)
    return with_budget(made, [0, 5], allowed=2) if budget else made


def answers(host: Host, rows: Rows) -> list[object]:
    request = np.zeros(len(AXIS), np.int64)
    request[AXIS.index("gpu")] = 2
    said: list[object] = [host.headroom.tolist(), host.overused.tolist(), host.pipelined.tolist()]
    for purpose, point in (
        (Purpose.PREEMPT, ExtensionPoint.PREEMPTABLE), (Purpose.RECLAIM, ExtensionPoint.RECLAIMABLE),
    ):  # fmt: skip
        for task in (NONE, 8):
            preemptor = Preemptor((2,), request, purpose, task)
            said += [
                host.preemptive(preemptor), host.candidates(preemptor).tolist(), host.has_quota(preemptor),
                host.bundle_quota_filter(preemptor, rows).tolist(), host.validate_set(preemptor, rows[:1]),
                host.task_victims(preemptor, rows, point).tolist(),
            ]  # fmt: skip
    return said


@pytest.mark.parametrize("chosen", POLICIES, ids=["default", "volcano", "all"])
def test_after_each_victim_the_answers_are_those_of_plugins_made_anew(chosen: Policy) -> None:
    snapshot = state()
    host, what_if = Host(Context(snapshot, chosen, 0.0)), WhatIf.of(snapshot)
    before, seen = answers(host, np.arange(8)), []
    for victim in (4, 0, 5):
        gone = np.array([victim])
        what_if = what_if.evicting(gone)
        host = host.on(what_if, gone)
        left = np.setdiff1d(np.arange(8), what_if.changed)
        seen.append(answers(host, left))
        assert seen[-1] == answers(Host(Context(what_if.whole, chosen, 0.0)), left)
    assert before not in seen
    assert answers(Host(Context(snapshot, chosen, 0.0)).on(snapshot), np.arange(8)) == before


def test_a_host_stays_as_it_was_when_another_grows_from_it() -> None:
    snapshot = state()
    host = Host(Context(snapshot, POLICIES[2], 0.0))
    before = answers(host, np.arange(8))
    host.on(WhatIf.of(snapshot).evicting(np.array([4, 5])), np.array([4, 5])).headroom.fill(0)
    assert answers(host, np.arange(8)) == before


@pytest.mark.parametrize("chosen", POLICIES, ids=["default", "volcano", "all"])
@pytest.mark.parametrize("purpose", list(Purpose))
def test_asked_about_some_tasks_the_answers_are_those_about_all(chosen: Policy, purpose: Purpose) -> None:
    preemptor, some = Preemptor((2,), np.ones(len(AXIS), np.int64), purpose), np.array([7, 0, 5, 1])
    seen = []
    for starting, among in ((NO_ROWS, None), (np.array([0, 6]), None), (NO_ROWS, np.array([1, 5, 6]))):
        host = Host(Context(state(), chosen, 0.0, starting, among))
        seen.append(host.candidates(preemptor).tolist())
        assert host.may_go(preemptor, some).tolist() == np.array(seen[-1])[some].tolist()
    assert purpose is not Purpose.PREEMPT or any(map(any, seen))


@pytest.mark.parametrize("budget", [True, False])
@pytest.mark.parametrize("deserved", [2, 5, 8])
@pytest.mark.parametrize("purpose", list(Purpose))
@pytest.mark.parametrize("chosen", [*POLICIES, load_profile("kai"), load_profile("koordinator")])
def test_of_several_sets_of_tasks_the_answers_are_those_about_each(
    chosen: Policy, purpose: Purpose, deserved: int, budget: bool
) -> None:
    rng, preemptor = np.random.default_rng(0), Preemptor((2,), np.ones(len(AXIS), np.int64), purpose)
    host, sets = Host(Context(state(deserved, budget=budget), chosen, 0.0)), [NO_ROWS, np.arange(8)]
    sets += [rng.permutation(8)[:many] for many in (1, 1, 2, 2, 3, 4, 6)]
    whole = [host.bundle_quota_filter(preemptor, some, np.zeros(len(some), np.int64)) for some in sets]
    assert host.spares_each(preemptor, sets).tolist() == [all(one) for one in whole]
    assert host.validate_each(preemptor, sets).tolist() == [host.validate_set(preemptor, some) for some in sets]
