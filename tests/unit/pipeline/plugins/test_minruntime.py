"""Minimum runtime down a tree of queues, and what elastic podgroups may lose."""

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.plugins.minruntime import MinimumRuntime
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import PluginSetting, Purpose
from tests.support.editing import with_groups, with_queues
from tests.support.small_clusters import podgroup, world

NOW = 1000.0
#: Two top queues; under the first two leaves, under the second one.
TREE = {"top": None, "mine": "top", "cousin": "top", "far": None, "far-leaf": "far"}


def case(granted=None, tasks=2, minimum=2, victim="cousin", key="reclaim_min_runtime"):
    """One podgroup that started a minute ago in ``victim``, and one that waits in the queue mine."""
    times = {name: {key: seconds} for name, seconds in (granted or {}).items()}
    said = {name: {"parent": above, **times.get(name, {})} for name, above in TREE.items()}
    runs = podgroup("v", [{"cpu": 1}] * tasks, "n0", queue=victim, min_available=minimum, started=NOW - 60)
    waits = podgroup("w", [{"cpu": 1}], queue="mine", priority=1)
    return open_case(world({"n0": {"cpu": 64}}, said, [runs, waits], now=NOW)).snapshot


def plugin(snapshot, **arguments):
    return MinimumRuntime(Context(snapshot, None, NOW), PluginSetting("minruntime", arguments=tuple(arguments.items())))


def asking(snapshot, purpose=Purpose.RECLAIM):
    waiting = int(snapshot.tasks.podgroup[np.flatnonzero(snapshot.tasks.node < 0)[0]])
    return Preemptor((waiting,), snapshot.shapes.request[0], purpose)


def spared(snapshot, purpose=Purpose.RECLAIM, **arguments):
    """Whether the podgroup that runs is left alone."""
    held = np.flatnonzero(snapshot.tasks.node >= 0)
    may = plugin(snapshot, **arguments).evictable(asking(snapshot, purpose))
    may = may if may is True else may.on(snapshot.tasks.podgroup)
    return not np.broadcast_to(may, len(snapshot.tasks))[held].any()


def test_a_queue_that_says_nothing_has_what_its_nearest_ancestor_says():
    assert spared(case({"top": 61}))
    assert not spared(case({"top": 60}))
    assert not spared(case({"top": 61, "cousin": 0}))
    assert spared(case({"top": 0, "cousin": 61}))


def test_where_no_queue_says_anything_the_policy_does():
    assert spared(case(), default_reclaim=61.0)
    assert not spared(case({"cousin": 1}), default_reclaim=61.0)
    assert not spared(case(), Purpose.PREEMPT, default_reclaim=61.0)
    assert spared(case(), Purpose.PREEMPT, default_preempt=61.0)
    assert not spared(case(), default_preempt=61.0)


def test_preempt_has_a_minimum_of_its_own():
    assert spared(case({"top": 61}, key="preempt_min_runtime"), Purpose.PREEMPT)
    assert not spared(case({"top": 61}, key="preempt_min_runtime"), Purpose.RECLAIM)


@pytest.mark.parametrize("purpose", [Purpose.CONSOLIDATE, Purpose.CLEAR])
def test_what_is_moved_or_ended_as_the_rest_of_a_broken_gang_has_no_minimum(purpose):
    state = with_queues(case({"top": 61}), preempt_min_runtime_s=61.0)
    assert not spared(state, purpose)
    assert plugin(state).validate_set(asking(state, purpose), np.flatnonzero(state.tasks.node >= 0))


def test_a_leaf_speaks_for_itself_unless_the_policy_goes_by_the_parting_of_ancestors():
    assert spared(case({"far": 0, "far-leaf": 61}, victim="far-leaf"))


@pytest.mark.parametrize(("granted", "kept"), [({"far": 61}, True), ({"far-leaf": 61}, False)])
def test_by_the_parting_of_ancestors_only_the_top_queue_speaks_to_other_trees(granted, kept):
    assert spared(case(granted, victim="far-leaf"), reclaim_from="lca") is kept


def test_by_the_parting_of_ancestors_cousins_speak_for_themselves_first():
    assert spared(case({"cousin": 61}), reclaim_from="lca")
    assert spared(case({"top": 61}), reclaim_from="lca")


def test_an_elastic_podgroup_may_lose_what_it_has_above_its_minimum():
    state = case({"cousin": 61}, tasks=3, minimum=2)
    assert spared(state)
    assert not spared(state, elastic=True)
    young = plugin(state, elastic=True)
    held = np.flatnonzero(state.tasks.node >= 0)
    assert young.validate_set(asking(state), held[:1])
    assert not young.validate_set(asking(state), held[:2])


def test_of_several_young_podgroups_each_keeps_its_minimum():
    runs = [podgroup(name, [{"cpu": 1}] * 3, "n0", queue="other", min_available=2, started=NOW - 60) for name in "uv"]
    queues = {"mine": {}, "other": {"reclaim_min_runtime": 61}}
    groups = [*runs, podgroup("w", [{"cpu": 1}], queue="mine")]
    state = open_case(world({"n0": {"cpu": 64}}, queues, groups, now=NOW)).snapshot
    young, held = plugin(state, elastic=True), np.flatnonzero(state.tasks.node >= 0)
    assert young.validate_set(asking(state), held[[0, 3]])
    assert not young.validate_set(asking(state), held[[0, 3, 4]])


#: Two subgroups of one task each, as a list, and below another one.
PAIR = [{"name": name, "min_available": 1} for name in "xy"]


@pytest.mark.parametrize(
    ("said", "elastic"),
    [
        ({"subgroups": PAIR}, False),
        ({"subgroups": PAIR, "min_subgroups": 1}, True),
        ({"subgroups": [{"name": "x", "min_available": 0}, PAIR[1]]}, True),
        ({"subgroups": [{"name": "above", "children": PAIR}]}, False),
        ({"subgroups": [{"name": "above", "min_subgroups": 1, "children": PAIR}]}, True),
    ],
)
def test_a_podgroup_that_can_spare_a_subgroup_is_elastic(said, elastic):
    runs = podgroup("v", [{"cpu": 1}] * 2, "n0", queue="other", started=NOW - 60, **said)
    for one, name in zip(runs["tasks"], "xy", strict=True):
        one["subgroup"] = name
    queues = {name: {"reclaim_min_runtime": 61} for name in ("mine", "other")}
    groups = [runs, podgroup("w", [{"cpu": 1}], queue="mine")]
    state = open_case(world({"n0": {"cpu": 64}}, queues, groups, now=NOW)).snapshot
    assert spared(state, elastic=True) is not elastic
    young, held = plugin(state, elastic=True), np.flatnonzero(state.tasks.node >= 0)
    assert young.validate_set(asking(state), held[:1]) is elastic
    assert not young.validate_set(asking(state), held)


@pytest.mark.parametrize("seconds", [0, 59, 61])
def test_several_sets_are_each_as_lawful_as_by_themselves(seconds):
    runs = [podgroup(name, [{"cpu": 1}] * 3, "n0", queue="other", min_available=2, started=NOW - ran)
            for name, ran in (("young", 60), ("old", 600))]  # fmt: skip
    queues = {"mine": {}, "other": {"reclaim_min_runtime": seconds}}
    groups = [*runs, podgroup("w", [{"cpu": 1}], queue="mine")]
    state = open_case(world({"n0": {"cpu": 64}}, queues, groups, now=NOW)).snapshot
    made, sets = plugin(state, elastic=True), [np.array(some) for some in ([0], [3, 4], [0, 1], [3, 1, 2], [])]
    sets = [some.astype(np.int64) for some in sets]
    alone = [made.validate_set(asking(state), some) for some in sets]
    assert made.validate_each(asking(state), sets).tolist() == alone
    assert alone == [True, True, seconds < 60, seconds < 60, True]


def test_a_podgroup_without_surplus_is_not_elastic():
    assert spared(case({"cousin": 61}, tasks=2, minimum=2), elastic=True)


def test_what_starts_in_the_future_by_another_clock_is_protected_for_as_long_as_its_queue_says():
    for granted, spared in (({}, False), ({"cousin": 0.5}, True)):
        snapshot = case(granted, victim="cousin")
        snapshot = with_groups(snapshot, ..., started=NOW + 40)
        young = plugin(snapshot)._young(Preemptor((1,), np.array([2]), Purpose.RECLAIM))
        assert young[0] == spared
