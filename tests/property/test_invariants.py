"""The invariants of the design, by number, on small random clusters; 13, 14 and 16 are the pipeline's, tested there."""

import copy
import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings

from actors.cli.simulate import compact, open_case
from actors.cli.simulated_result import final, phases, told_cycle
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.plan import Plan
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from pipeline.placement.feasibility import feasible
from pipeline.placement.need import need_of
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.solver import search_of
from tests.support.deciding import (
    again,
    can_lie,
    columns,
    evicting,
    members,
    overfull,
    plans,
    run,
    runs,
    short_of,
    shortchanged,
    steps,
    torn,
    unit_of,
)
from tests.support.depth import sampled
from tests.support.oracles import bundles_plainly
from tests.support.simulating import simulate
from tests.support.strategies import documents

#: Examples that no other test has.
own = settings(max_examples=sampled(120))


def some(test: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
    """The same examples for every test: drawn once, and decided once. One that fails is drawn again and made small."""
    drawn = seed(15)(settings(max_examples=sampled(120))(given(documents())(test)))

    def on_all() -> None:
        try:
            for document in examples():
                test(json.loads(document))
        except Exception:
            drawn()
            raise

    on_all.__name__, on_all.__doc__ = test.__name__, test.__doc__
    return on_all


@cache
def examples() -> list[str]:
    """The examples of `some`, as Hypothesis draws them for each."""
    found: list[str] = []

    @seed(15)
    @settings(max_examples=sampled(120))
    @given(documents())
    def collect(document: dict[str, Any]) -> None:
        found.append(compact(document))

    collect()
    return found


@some
def test_a_snapshot_never_changes(document):
    """Invariant 1."""
    for case, snapshot, done in run(document):
        before = [column.tobytes() for column in columns(open_case(document).snapshot)]
        assert [column.tobytes() for column in columns(snapshot)] == before
        assert not any(column.flags.writeable for state in (snapshot, done.snapshot) for column in columns(state))
        assert case.snapshot is snapshot


@some
def test_the_same_input_gives_the_same_plan_byte_for_byte(document):
    """Invariant 2: the same bytes again, and the same decisions in whatever order the cluster is listed."""
    first, second, (case, after, _) = run(document, cycles=3)
    told = {
        "cycles": [told_cycle(case.names, done) for _, _, done in (first, second)],
        "final": final(case.names, after),
        "phases": phases(case.names, after),
    }
    again = simulate(document, cycles=2)
    assert compact(told) == compact({part: again[part] for part in told})
    order = random.Random(compact(document))
    assert sorted_decisions(simulate(shuffled(document, order), cycles=2)) == sorted_decisions(again)


def shuffled(document: dict[str, Any], order: random.Random) -> dict[str, Any]:
    """The same cluster with its lists in another order; topology stays, for its order is that of the nodes."""
    document = copy.deepcopy(document)
    for key in ("nodes", "queues", "podgroups", "disruption_budgets"):
        order.shuffle(document[key])
    for podgroup in document["podgroups"]:
        order.shuffle(podgroup["tasks"])
    return document


def sorted_decisions(result: dict[str, Any]) -> list[dict[str, list[str]]]:
    return [
        {kind: sorted(compact(entry) for entry in entries) for kind, entries in told.items()}
        for told in result["cycles"]
    ]


@some
def test_no_eviction_without_a_placement_and_no_placement_without_room(document):
    """Invariant 3."""
    for step in steps(document, cycles=2):
        assert feasible(step.before, step.made)
        assert all(runs(step.before, row) for row in step.made.evictions.tolist())
        if len(step.made.evictions):
            assert (step.made.nominated_node != NONE).any()


@some
def test_a_placed_gang_has_its_minimum_its_roles_and_its_subgroups(document):
    """Invariant 4."""
    for step in steps(document, cycles=2):
        if step.made.preemptor == NONE or not (len(step.made.bound) or len(step.made.nominated)):
            continue
        for podgroup in unit_of(step.before, step.made.preemptor):
            assert short_of(step.after, podgroup) is None
        started = {int(step.after.tasks.podgroup[row]) for row in step.made.bound.tolist()}
        assert not any(short_of(_without_promises(step.after), podgroup) for podgroup in started)


def _without_promises(snapshot: Snapshot) -> Snapshot:
    every = np.flatnonzero(snapshot.tasks.nominated != NONE)
    return WhatIf.of(snapshot).withdrawing(every).whole


@some
def test_a_whole_bundle_goes_whole(document):
    """Invariant 5: a gang that breaks leaves nobody running, wherever its members were."""
    for step in evicting(document, cycles=2):
        for podgroup in {int(step.before.tasks.podgroup[row]) for row in step.made.evictions.tolist()}:
            if _running_whole(step.before, podgroup) and not _running_whole(step.after, podgroup):
                assert not any(runs(step.after, row) for row in members(step.after, podgroup))


@own
@given(documents(profile="volcano"))
def test_in_volcano_the_core_of_a_gang_goes_whole_inside_the_domain(document):
    """Invariant 5, as that profile has it."""
    document["policy"]["actions"] = ["allocate", "gangreclaim", "gangpreempt"]
    _, found = plans(document)
    for attempt, plan in found:
        victims = set(plan.statement.evictions.tolist())
        cores = [set(one.tasks) for one in bundles_plainly(searching(attempt), plan.domain) if not one.safe]
        assert all(victims.issuperset(core) or not victims & core for core in cores)


def _running_whole(snapshot: Snapshot, podgroup: int) -> bool:
    return short_of(snapshot, podgroup, promised=False) is None


@some
def test_preempt_takes_only_lower_priority_of_its_own_queue(document):
    """Invariant 6, first half."""
    for step in evicting(document, cycles=2):
        groups, mine = step.before.podgroups, step.made.preemptor
        lowest = min(groups.priority[podgroup] for podgroup in unit_of(step.before, mine))
        for podgroup in {int(step.before.tasks.podgroup[row]) for row in step.made.evictions.tolist()}:
            same = groups.queue[podgroup] == groups.queue[mine]
            if step.made.action == "preempt":
                assert same
                assert groups.priority[podgroup] < lowest
            else:
                assert not same
                assert step.before.queues.reclaimable[groups.queue[podgroup]]


@some
def test_reclaim_leaves_every_queue_what_it_deserves_resource_by_resource(document):
    """Invariant 6, second half."""
    for step in evicting(document, cycles=2):
        if step.made.action == "reclaim":
            assert shortchanged(step.before, step.made) == []


@some
def test_protected_work_is_never_a_victim(document):
    """Invariant 7: what is not preemptible, what is critical, and what a budget keeps; Never evicts nobody."""
    for case, snapshot, done in run(document, cycles=2):
        victims = sorted(row for made in done.statements for row in made.evictions.tolist())
        tasks, groups = snapshot.tasks, snapshot.podgroups
        assert tasks.preemptible[victims].all()
        assert not tasks.critical[victims].any()
        assert groups.preemptible[tasks.podgroup[victims]].all()
        for made in done.statements:
            if len(made.evictions):
                assert groups.may_preempt[unit_of(snapshot, made.preemptor)].all()
        for budget in document["disruption_budgets"]:
            covered = [row for row in victims if _labelled(document, case.names.tasks[row])]
            assert len(covered) <= budget["disruptions_allowed"]


def _labelled(document: dict[str, Any], name: str) -> bool:
    tasks = {f"{group['namespace']}/{task['name']}": task for group in document["podgroups"] for task in group["tasks"]}
    return "labels" in tasks[name] and name.startswith("default/")


@some
def test_giving_any_one_victim_back_breaks_the_placement_or_the_law(document):
    """Invariant 8: no single task of surplus and no whole bundle is taken for nothing."""
    _, found = plans(document)
    for attempt, plan in found:
        victims = set(plan.statement.evictions.tolist())
        for unit in returnable(attempt, plan):
            left = victims - unit
            rows = plan.statement.nominated.tolist()
            assert not lawful(attempt, rows, left) or not can_lie(attempt.snapshot, rows, plan.domain, left), unit


def returnable(attempt: Attempt, plan: Plan) -> list[set[int]]:
    """What could be given back alone: a task of surplus whose gang stays, or a whole bundle."""
    victims = set(plan.statement.evictions.tolist())
    bundles = bundles_plainly(searching(attempt), plan.domain)
    broken = {one.podgroup for one in bundles if not one.safe and victims.issuperset(one.tasks)}
    whole = [set(one.tasks + one.along) for one in bundles if not one.safe and victims.issuperset(one.tasks)]
    return whole + [
        {row} for one in bundles if one.safe and one.podgroup not in broken for row in victims & {*one.tasks}
    ]


def searching(attempt: Attempt) -> BundleSearch:
    host = host_of(attempt)
    need = need_of(attempt.snapshot, attempt.podgroups, surplus=False)
    return search_of(attempt, host, need)


def lawful(attempt: Attempt, rows: list[int], victims: set[int]) -> bool:
    request = attempt.snapshot.shapes.request[attempt.snapshot.tasks.shape[rows]].sum(axis=0)
    preemptor = Preemptor(attempt.podgroups, request, attempt.purpose)
    return host_of(attempt).validate_set(preemptor, np.array(sorted(victims), np.int64))


@some
def test_no_node_is_promised_more_than_it_will_have(document):
    """Invariant 9."""
    for step in steps(document, cycles=3):
        assert overfull(step.after) == []


@some
def test_a_hard_topology_constraint_is_never_broken(document):
    """Invariant 10: who lies in one domain goes on to do so."""
    for step in steps(document, cycles=2):
        assert torn(step.after) <= torn(step.before)


@own
@given(documents())
def test_without_a_plugin_that_reads_topology_a_required_level_is_not_ignored(document):
    """Invariant 10."""
    document["policy"]["plugins"] = {"network-topology-aware": {"enabled": {"*": False}}}
    for step in steps(document):
        assert torn(step.after) <= torn(step.before)


@pytest.mark.parametrize("key", ["required", "preferred"])
def test_an_unknown_level_is_refused(key):
    """Invariant 10."""
    told = simulate(
        {"version": 1, "queues": [{"name": "a"}], "nodes": [{"name": "n", "allocatable": {"cpu": 1}}], "podgroups": [
            {"name": "g", "queue": "a", "topology": {key: "pod"}, "tasks": [{"name": "t", "request": {"cpu": 1}}]}
        ]}
    )  # fmt: skip
    assert f"podgroups[0].topology.{key}" in str(told["error"])


@some
def test_a_plan_is_accepted_once(document):
    """Invariant 11: once it is carried out it cannot be carried out again."""
    case, found = plans(document)
    for _, plan in found:
        verdict = judge(plan, case.snapshot, case.policy, case.now)
        assert isinstance(verdict, Accepted)
        assert verdict.dropped == 0
        again = judge(plan, _decided(carried_out(verdict.statement, case.snapshot, 0.0)), case.policy, case.now)
        assert not isinstance(again, Accepted)


@some
def test_accepted_plans_never_share_a_victim_or_overfill_a_node(document):
    """Invariant 12: plans made side by side, judged one after the other."""
    case, found = plans(document)
    snapshot, taken = case.snapshot, set()
    for attempt, plan in found:
        verdict = judge(plan, snapshot, case.policy, case.now)
        if isinstance(verdict, Accepted):
            made = verdict.statement
            assert not taken & set(made.evictions.tolist())
            taken |= set(made.evictions.tolist())
            before, snapshot = snapshot, _decided(carried_out(made, snapshot, 0.0))
            assert overfull(snapshot) == []
            assert all(short_of(snapshot, podgroup) is None for podgroup in attempt.podgroups)
            if attempt.purpose is Purpose.RECLAIM:
                assert shortchanged(before, made) == []


def _decided(snapshot: Snapshot) -> Snapshot:
    """The snapshot as news of a decision make it: one revision on."""
    return replace(snapshot, revision=snapshot.revision + 1)


@own
@given(documents())
def test_on_an_unchanged_state_the_next_cycle_decides_nothing_new(document):
    """Invariant 15: nobody more is evicted, and what has room beside the decisions is placed at once."""
    for case, before, done in run(document, cycles=2):
        beside = again(case, before, done, done.snapshot)
        assert [made for made in beside.statements if len(made.evictions)] == []
        assert again(case, done.snapshot, beside, beside.snapshot).statements == ()


@some
def test_a_cluster_that_is_left_alone_comes_to_rest(document):
    """Invariant 15: evictions do not go round in circles."""
    for _, _, done in run(document, cycles=8):
        last = done
    assert last.statements == ()
