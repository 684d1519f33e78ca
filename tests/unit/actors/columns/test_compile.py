"""The intake: what each key of a cluster file becomes in the columns."""

from typing import Any

import numpy as np
import pytest

from actors.cluster_file.bounds import Size
from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.tables import PENDING, PHASE_NAMES, RUNNING
from pipeline.cluster.vocabulary import Requirement, Taint, Toleration
from tests.support.clusters import changed, compiled, small_file


def test_resources_stand_in_base_units_on_one_axis() -> None:
    snapshot, _ = compiled(small_file())
    assert snapshot.vocabulary.resources == ("cpu", "memory", "pods", "nvidia.com/gpu")
    assert snapshot.nodes.allocatable[0].tolist() == [8000, 32 << 30, 110, 4]
    assert snapshot.shapes.request.tolist() == [[500, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 4]]


@pytest.mark.parametrize(("stated", "taken"), [({}, 1), ({"pods": 0}, 1), ({"pods": 1}, 1), ({"pods": 3}, 3)])
def test_every_task_takes_a_pod_named_or_not(stated: dict[str, int], taken: int) -> None:
    snapshot, _ = compiled(changed("podgroups.0.tasks.0.request", stated))
    assert snapshot.request[0, 2] == taken
    assert snapshot.tasks.best_effort[0]


def test_a_node_that_names_no_pods_takes_as_many_as_a_kubelet_does() -> None:
    snapshot, _ = compiled(changed("nodes.0.allocatable", {"cpu": 1}))
    assert snapshot.nodes.allocatable[0].tolist() == [1000, 0, 110, 0]


def test_a_count_is_a_row_of_tasks_with_their_rank() -> None:
    snapshot, names = compiled(small_file())
    tasks = snapshot.tasks
    assert names.tasks == (
        "default/driver", "default/worker-0", "default/worker-1", "lab/worker-0", "lab/worker-1", "lab/worker-2",
    )  # fmt: skip
    assert tasks.index.tolist() == [NONE, 0, 1, 0, 1, 2]
    assert tasks.status.tolist() == [RUNNING, *[PENDING] * 5]
    assert tasks.node.tolist() == [names.node_row["n0"], *[NONE] * 5]


def test_roles_and_subgroups_are_rows_of_their_podgroup() -> None:
    snapshot, _ = compiled(small_file())
    assert snapshot.roles.min_available.tolist() == [1, 1]
    assert snapshot.tasks.role.tolist() == [0, 1, 1, NONE, NONE, NONE]
    assert snapshot.subgroups.parent.tolist() == [NONE, 0]
    assert snapshot.subgroups.min_subgroups.tolist() == [1, NONE]
    assert snapshot.subgroups.min_available.tolist() == [0, 1]
    assert snapshot.tasks.subgroup.tolist() == [NONE, 1, 1, NONE, NONE, NONE]


def test_roles_that_only_tasks_name_have_no_minimum() -> None:
    snapshot, _ = compiled(changed("podgroups.1.tasks.0.role", "any"))
    assert snapshot.roles.podgroup.tolist() == [0, 0, 1]
    assert snapshot.roles.min_available.tolist() == [1, 1, 0]


def test_priority_and_preemption_policy_come_from_the_class_then_the_podgroup_then_the_task() -> None:
    document = changed("podgroups.1.tasks.0.priority", 7)
    document["podgroups"][0]["tasks"][0]["preemption_policy"] = "Never"
    snapshot, _ = compiled(document)
    assert snapshot.podgroups.priority.tolist() == [0, 100]
    assert snapshot.podgroups.may_preempt.tolist() == [True, False]
    assert snapshot.tasks.priority.tolist() == [0, 0, 0, 7, 7, 7]
    # The class speaks for the podgroup as a whole, not for each of its tasks (conformance volcano/reclaim/010).
    assert snapshot.tasks.may_preempt.tolist() == [False, True, True, True, True, True]


def test_tasks_inherit_the_preemption_policy_that_their_podgroup_states_itself() -> None:
    document = changed("podgroups.0.preemption_policy", "Never")
    document["podgroups"][0]["tasks"][0]["preemption_policy"] = "PreemptLowerPriority"
    snapshot, _ = compiled(document)
    assert snapshot.podgroups.may_preempt.tolist() == [False, False]
    assert snapshot.tasks.may_preempt.tolist() == [True, False, False, True, True, True]


@pytest.mark.parametrize(
    ("podgroup", "task", "may_go"),
    [(None, None, True), (None, False, False), (True, None, True), (False, None, False), (False, True, True)],
)
def test_a_task_may_be_evicted_if_it_says_so_or_else_its_podgroup(
    podgroup: bool | None, task: bool | None, may_go: bool
) -> None:
    document = changed("podgroups.0.preemptible", podgroup)
    document["podgroups"][0]["tasks"][0]["preemptible"] = task
    snapshot, _ = compiled(document)
    assert snapshot.tasks.preemptible[0] == may_go
    assert snapshot.podgroups.preemptible[0] == (podgroup is not False)


@pytest.mark.parametrize(("key", "value"), [("namespace", "kube-system"), ("priority_class", "system-node-critical")])
def test_what_the_cluster_itself_needs_is_critical(key: str, value: str) -> None:
    document = changed(f"podgroups.0.{key}", value)
    document["podgroups"][1]["gang_group"] = []
    snapshot, _ = compiled(document)
    assert snapshot.tasks.critical.tolist() == [True] * 3 + [False] * 3


def test_what_was_not_stated_is_told_from_what_was() -> None:
    snapshot, names = compiled(changed("queues.0.capability", {"memory": "unlimited", "cpu": 0}))
    row = names.queue_row["ml"]
    assert snapshot.queues.deserved[row].tolist() == [8000, UNSET, UNSET, UNSET]
    assert snapshot.queues.capability[row].tolist() == [0, UNLIMITED, UNLIMITED, UNLIMITED]
    assert snapshot.queues.guarantee[row].tolist() == [0, 0, 0, 0]
    assert (snapshot.podgroups.min_resources == UNSET).all()
    assert np.isnan(snapshot.podgroups.started).all()
    assert snapshot.podgroups.min_subgroups.tolist() == [NONE, NONE]


def test_over_quota_weight_is_one_number_or_one_a_resource() -> None:
    document = changed("queues.0.over_quota_weight", {"cpu": 0, "memory": 2.5})
    document["queues"][1]["over_quota_weight"] = 3
    document["policy"] = {"profile": "kai"}  # the others do not read it
    snapshot, _ = compiled(document)
    assert snapshot.queues.over_quota_weight.tolist() == [[0, 2.5, 1, 1], [3, 3, 3, 3]]


def test_a_queue_below_an_undescribed_root_is_at_the_top() -> None:
    snapshot, names = compiled(changed("queues.0.parent", "root"))
    assert snapshot.queues.parent.tolist() == [NONE, names.queue_row["ml"]]


def test_podgroups_keep_the_lists_of_those_that_they_start_with() -> None:
    document = small_file()
    document["podgroups"] += [
        {"name": "x", "queue": "ml", "gang_group": ["default/x"]},
        {"name": "y", "queue": "ml", "gang_group": ["default/z"]},
        {"name": "z", "queue": "ml"},
    ]
    snapshot, _ = compiled(document)
    assert snapshot.podgroups.gang_group.tolist() == [NONE, 0, NONE, 1, NONE]
    words = snapshot.vocabulary
    named = [[words.gangs[gang] for gang in one] for one in words.gang_groups]
    assert named == [["default/old", "lab/new"], ["default/y", "default/z"]]
    assert [gang_group_of(snapshot, row) for row in range(5)] == [(0,), (1, 0), (2,), (3, 4), (4,)]


def test_the_last_tie_break_is_age_then_name() -> None:
    document = changed("podgroups.0.created", 5.0)
    document["podgroups"][1]["tasks"][0]["created"] = -1.0
    snapshot, _ = compiled(document)
    assert snapshot.podgroups.order.tolist() == [1, 0]
    assert snapshot.tasks.order.tolist() == [3, 4, 5, 0, 1, 2]


def test_budgets_cover_the_label_sets_that_match_in_their_namespace() -> None:
    snapshot, _ = compiled(changed("podgroups.0.tasks.0.labels", {"app": "x", "tier": "a"}))
    groups, tasks = snapshot.podgroups, snapshot.tasks
    covered = snapshot.budgets.covering(groups.namespace[tasks.podgroup], tasks.label_set)
    assert covered.tolist() == [[True, False, False, False, False, False]]


def test_budgets_take_no_more_room_where_there_are_more_namespaces() -> None:
    document = small_file()
    names = [one["namespace"] for one in document["podgroups"] if "namespace" in one] + ["default", "nowhere"]
    document["disruption_budgets"] = [
        {"name": f"b{at}", "namespace": name, "match_labels": {}, "disruptions_allowed": 1}
        for at, name in enumerate(names)
    ]
    snapshot, _ = compiled(document)
    assert len(snapshot.vocabulary.namespaces) > 1
    assert snapshot.budgets.covers.shape == (len(names), len(snapshot.vocabulary.label_sets))
    assert snapshot.budgets.namespace[-1] == NONE
    groups, tasks = snapshot.podgroups, snapshot.tasks
    covered = snapshot.budgets.covering(groups.namespace[tasks.podgroup], tasks.label_set)
    assert covered.sum(axis=0).tolist() == [1] * len(tasks)
    assert Size(1, budgets=9, namespaces=frozenset("ab")).bytes == Size(1, budgets=9, namespaces=frozenset("a")).bytes


def test_what_means_the_same_is_one_shape() -> None:
    document = changed("podgroups.0.tasks.0", {"name": "a", "request": {"nvidia.com/gpu": 1}, "role": "driver"})
    document["podgroups"][0]["tasks"][0]["tolerations"] = [{"key": "b"}, {"operator": "Exists"}]
    document["podgroups"][0]["tasks"][1]["tolerations"] = [{"operator": "Exists"}, {"key": "b"}]
    snapshot, _ = compiled(document)
    assert snapshot.tasks.shape.tolist() == [0, 0, 0, 1, 1, 1]
    assert snapshot.vocabulary.constraints[0].tolerations == (
        Toleration("", "Exists", "", ""), Toleration("b", "Equal", "", ""),
    )  # fmt: skip


def test_labels_and_taints_of_nodes_are_interned() -> None:
    document = changed("nodes.1.labels", {"zone": "b"})
    document["nodes"][0]["labels"] = {"zone": "a", "arch": "arm"}
    document["nodes"][2]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    snapshot, _ = compiled(document)
    vocabulary = snapshot.vocabulary
    assert (vocabulary.label_keys, vocabulary.label_values) == (("arch", "zone"), (("arm",), ("a", "b")))
    assert snapshot.nodes.labels.tolist() == [[0, 0], [NONE, 1], [NONE, NONE], [NONE, NONE]]
    assert vocabulary.taint_sets == ((), (Taint("k", "", "NoSchedule"),))
    assert snapshot.nodes.taint_set.tolist() == [0, 0, 1, 0]


def test_nodes_bear_their_hostname_once_a_task_asks_for_it() -> None:
    assert compiled(small_file())[0].vocabulary.label_keys == ()
    snapshot, names = compiled(changed("podgroups.0.tasks.1.node_selector", {"kubernetes.io/hostname": "n2"}))
    assert snapshot.vocabulary.label_keys == ("kubernetes.io/hostname",)
    assert snapshot.vocabulary.label_values == (names.nodes,)
    assert snapshot.vocabulary.constraints[1].node_selector == (Requirement("kubernetes.io/hostname", "In", ("n2",)),)


def test_an_empty_cluster_is_a_cluster() -> None:
    snapshot, names = compiled({"version": 1})
    assert (len(snapshot.nodes), len(snapshot.tasks), len(snapshot.podgroups)) == (0, 0, 0)
    assert snapshot.podgroups.min_resources.shape == (0, 3)
    assert names.domains == ("",)


def test_queues_lie_below_the_one_named_root_if_there_is_one() -> None:
    document = small_file()
    document["podgroups"] = []
    document["queues"] = [{"name": name, **more} for name, more in (("a", {}), ("b", {"parent": "a"}), ("root", {}))]
    assert parents(document) == {"root": None, "a": "root", "b": "a"}
    document["queues"][2]["parent"] = "b"
    assert parents(document) == {"a": None, "b": "a", "root": "b"}
    del document["queues"][2]
    assert parents(document) == {"a": None, "b": "a"}


def parents(document: dict[str, Any]) -> dict[str, str | None]:
    snapshot, names = compiled(document)
    rows = snapshot.queues.parent.tolist()
    return {name: names.queues[rows[at]] if rows[at] >= 0 else None for at, name in enumerate(names.queues)}


def test_past_use_is_one_number_or_one_a_resource_and_none_if_nothing_is_said() -> None:
    document = changed("queues.0.usage", {"cpu": 0.25})
    document["queues"][1]["usage"] = 0.5
    snapshot, _ = compiled(document)
    assert snapshot.queues.usage.tolist() == [[0.25, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]]


def test_recent_evictions_are_rows_by_second_and_queue_as_far_as_they_may_count() -> None:
    said = [
        {"queue": "b", "at": 9_990.5, "count": 2}, {"queue": "a", "at": 9_991, "count": 1},
        {"queue": "b", "at": 9_991, "count": 3}, {"at": 9_000, "count": 4}, {"queue": "a", "at": 1, "count": 5},
        {"queue": "a", "at": 250_000_000_000, "count": 6},
    ]  # fmt: skip
    document = {"version": 1, "now": 10_000.0, "queues": [{"name": "a"}, {"name": "b"}], "recent_evictions": said}
    recent = compiled(document)[0].recent
    rows = list(zip(recent.queue.tolist(), recent.at.tolist(), recent.count.tolist(), strict=True))
    assert rows == [(-1, 9_000, 4), (0, 9_991, 1), (1, 9_991, 5)]


def test_what_is_whole_has_the_phase_running_whatever_phase_it_states() -> None:
    runs = {"name": "a", "status": "Running", "node": "n1"}
    half = {"name": "half", "queue": "ml", "min_available": 2, "tasks": [runs, {"name": "b"}]}
    whole = {"name": "whole", "queue": "ml", "phase": "Pending", "tasks": [{**runs, "name": "c"}, {"name": "d"}]}
    snapshot, _ = compiled(small_file() | {"podgroups": [half, whole]})
    assert [PHASE_NAMES[phase] for phase in snapshot.podgroups.phase.tolist()] == ["Inqueue", "Running"]


@pytest.mark.parametrize(("needs", "least"), [({}, 0), ({"min_subgroups": 0}, 0), ({"min_subgroups": 2}, 2)])
def test_a_subgroup_that_needs_others_and_has_none_is_never_whole(needs: dict[str, int], least: int) -> None:
    """It is a leaf without tasks, since tasks cannot name a subgroup with children."""
    parts = [{"name": "none", "children": [], **needs}]
    group = {"name": "g", "queue": "ml", "subgroups": parts, "tasks": [{"name": "a"}]}
    snapshot, _ = compiled(small_file() | {"podgroups": [group]})
    assert snapshot.subgroups.min_available.tolist() == [least]
