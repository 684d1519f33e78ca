"""What each kind of message does to the state."""

import numpy as np
import pytest

from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import GONE, PENDING, RUNNING
from tests.support.told_world import CLUSTER, WRITTEN_OUT, World, drained, state_of, task


def test_news_of_tasks_is_folded(world: World, ingestor: Ingestor) -> None:
    world.tell("task_started", task="default/train-0", node="n1", at=7.0)
    world.tell("task_started", task="default/train-1", node="n1", at=8.0)
    assert ingestor.poll()
    assert not ingestor.poll()
    row = ingestor.state.names.row("podgroups", "default/train")
    assert ingestor.snapshot.podgroups.started[row] == 8.0
    world.tell("task_terminating", task="default/train-0")
    world.tell("task_ended", task="default/train-0", outcome="Evicted", replaced=True)
    assert task(drained(ingestor), "train-0") == {"status": PENDING, "node": None, "nominated": None, "life": 1}


def test_a_new_podgroup_is_appended_and_keeps_the_epoch(world: World, ingestor: Ingestor) -> None:
    before = ingestor.snapshot
    world.tell(
        "podgroup_upserted",
        name="late", namespace="other", queue="ml", priority_class="high", min_available=2, created=1.0,
        topology={"required": "rack"}, subgroups=[{"name": "s", "min_available": 2}],
        tasks=[{"name": "l", "count": 2, "role": "r", "subgroup": "s", "request": {"nvidia.com/gpu": 1},
                "labels": {"app": "x"}, "tolerations": [{"operator": "Exists"}]}],
    )  # fmt: skip
    world.tell("task_started", task="other/l-1", node="n2")
    snapshot = drained(ingestor).snapshot
    assert world.letters() == []
    assert snapshot.epoch == before.epoch
    row = ingestor.state.names.row("podgroups", "other/late")
    assert snapshot.tasks_of(row).tolist() == [4, 5]
    assert snapshot.podgroups.priority[row] == 100
    assert snapshot.vocabulary.resources[-1] == "nvidia.com/gpu"
    assert snapshot.shapes.request[snapshot.tasks.shape[5]].tolist() == [0, 0, 1, 1]
    assert snapshot.tasks.status[5] == RUNNING
    assert snapshot.counts.running[row] == 1
    assert sorted(snapshot.podgroups.order) == [0, 1, 2]
    # web (created 0), late (1), train (5).
    assert snapshot.podgroups.order.tolist() == [2, 0, 1]
    assert snapshot.vocabulary.namespaces == ("default", "other")
    assert not snapshot.budgets.covering(np.array([1]), snapshot.tasks.label_set[5:]).any()
    assert snapshot.budgets.covering(np.array([0]), snapshot.tasks.label_set[5:]).all()


def test_what_came_bit_by_bit_is_what_a_list_would_have_said(world: World, ingestor: Ingestor) -> None:
    extra = {"name": "late", "queue": "dev", "min_available": 1, "created": 9.0,
             "tasks": [{"name": "late-0", "request": {"cpu": 3}}]}  # fmt: skip
    world.tell("podgroup_upserted", **extra)
    world.tell("queue_upserted", name="sub", parent="ml", created=3.0)
    world.tell("node_upserted", name="n9", allocatable={"cpu": "4", "pods": 5}, labels={"rack": "r0"})
    bit_by_bit = drained(ingestor).snapshot
    whole = World()
    whole.list_fleet({
        **CLUSTER, "podgroups": [*CLUSTER["podgroups"], extra],
        "queues": [*CLUSTER["queues"], {"name": "sub", "parent": "ml", "created": 3.0}],
        "nodes": [*CLUSTER["nodes"], {"name": "n9", "allocatable": {"cpu": "4", "pods": 5}, "labels": {"rack": "r0"}}],
    })  # fmt: skip
    at_once = whole.ingestor()
    assert at_once.state.names.nodes == ingestor.state.names.nodes
    assert at_once.state.names.domains == ingestor.state.names.domains
    assert at_once.state.names.queues == ingestor.state.names.queues
    for table in ("nodes", "topology", "shapes", "queues", "podgroups", "roles", "subgroups", "tasks", "budgets"):
        for name, column in vars(getattr(at_once.snapshot, table)).items():
            if name != "revision" and isinstance(column, np.ndarray):
                np.testing.assert_array_equal(getattr(getattr(bit_by_bit, table), name), column, f"{table}.{name}")
    assert at_once.snapshot.vocabulary == bit_by_bit.vocabulary


def test_a_podgroup_described_anew_keeps_its_tasks_and_their_roles(world: World, ingestor: Ingestor) -> None:
    world.tell("task_started", task="default/train-0", node="n1")
    world.tell(
        "podgroup_upserted", name="train", queue="dev", min_available=3, created=5.0,
        roles={"driver": {"min": 1}, "worker": {"min": 2}},
        tasks=[{"name": "driver", "role": "driver", "request": {"cpu": 1}}],
    )  # fmt: skip
    snapshot = drained(ingestor).snapshot
    assert world.letters() == []
    row = ingestor.state.names.row("podgroups", "default/train")
    assert snapshot.podgroups.min_available[row] == 3
    assert snapshot.tasks_of(row).tolist() == [0, 1, 2, 4]
    first = int(snapshot.role_start[row])
    assert snapshot.tasks.role[[0, 1, 2, 4]].tolist() == [first + 1, first + 1, first + 1, first]
    assert task(ingestor, "train-0")["status"] == RUNNING
    world.tell("task_ended", task="default/train-0", outcome="Failed", replaced=True)
    assert task(drained(ingestor), "train-0")["life"] == 1


def test_a_task_described_anew_keeps_its_row(world: World, ingestor: Ingestor) -> None:
    world.tell(
        "task_upserted",
        podgroup="default/train",
        task={"name": "train-1", "role": "worker", "request": {"cpu": 5}, "status": "Running", "node": "n2"},
    )
    world.tell("task_upserted", podgroup="default/train", task={"name": "train-9", "role": "worker", "priority": 3})
    snapshot = drained(ingestor).snapshot
    assert task(ingestor, "train-1") == {"status": RUNNING, "node": "n2", "nominated": None, "life": 0}
    assert snapshot.request[1, 0] == 5000
    assert ingestor.state.names.row("tasks", "default/train-9") == 4
    assert snapshot.tasks.podgroup.tolist() == [0, 0, 0, 1, 0]
    assert len(snapshot.podgroups) == 2


def test_of_what_is_described_together_only_what_is_wrong_is_refused(world: World, ingestor: Ingestor) -> None:
    world.say(
        world.outgoing("podgroup_upserted", {"name": "a", "queue": "ml"}),
        world.outgoing("podgroup_upserted", {"name": "b", "queue": "nowhere"}),
        world.outgoing("podgroup_upserted", {"name": "c", "queue": "dev", "topology": {"required": "galaxy"}}),
        world.outgoing("podgroup_upserted", {"name": "d", "queue": "dev", "tasks": [{"name": "d-0"}]}),
    )
    drained(ingestor)
    assert ingestor.state.names.podgroups == ["default/train", "default/web", "default/a", "default/d"]
    assert len(world.letters()) == 2
    assert "queue" in world.letters()[0]
    assert "galaxy" in world.letters()[1]


def test_a_cool_down_that_a_described_task_states_is_known(world: World, ingestor: Ingestor) -> None:
    calm = {"name": "calm-0", "labels": {"volcano.sh/cooldown-time": "10m"}}
    world.tell("podgroup_upserted", name="calm", queue="ml", tasks=[calm])
    snapshot = drained(ingestor).snapshot
    row = ingestor.state.names.row("tasks", "default/calm-0")
    assert snapshot.vocabulary.cooldown_s[snapshot.tasks.label_set[row]] == 600.0


def test_a_node_with_other_figures_stays_where_it_is(world: World, ingestor: Ingestor) -> None:
    epoch = ingestor.snapshot.epoch
    world.tell(
        "node_upserted",
        name="n1",
        allocatable={"cpu": "2", "memory": "16Gi", "pods": 10},
        labels={"rack": "r0"},
        unschedulable=True,
    )
    snapshot = drained(ingestor).snapshot
    row = ingestor.state.names.row("nodes", "n1")
    assert (snapshot.epoch, snapshot.nodes.allocatable[row, 0], bool(snapshot.nodes.schedulable[row])) == (
        epoch, 2000, False,
    )  # fmt: skip


def test_a_node_that_comes_or_moves_numbers_the_nodes_anew(world: World, ingestor: Ingestor) -> None:
    epoch, old = ingestor.snapshot.epoch, ingestor.state.names
    world.tell("node_upserted", name="n00", allocatable={"cpu": "2", "pods": 1}, labels={"rack": "r0"})
    drained(ingestor)
    assert ingestor.snapshot.epoch == epoch + 1
    assert ingestor.state.names.nodes == ["n0", "n00", "n1", "n2", "n3"]
    assert old.nodes == ["n0", "n1", "n2", "n3"]
    assert task(ingestor, "web-0")["node"] == "n3"
    world.tell("node_upserted", name="n3", allocatable={"cpu": "8", "pods": 10}, labels={"rack": "r0"})
    drained(ingestor)
    assert ingestor.snapshot.epoch == epoch + 2
    assert task(ingestor, "web-0")["node"] == "n3"


def test_a_task_may_select_a_node_by_its_name(world: World, ingestor: Ingestor) -> None:
    chosen = {"name": "pin-0", "node_selector": {"kubernetes.io/hostname": "n2"}}
    world.tell("podgroup_upserted", name="pin", queue="ml", tasks=[chosen])
    snapshot = drained(ingestor).snapshot
    column = snapshot.vocabulary.label_keys.index("kubernetes.io/hostname")
    values = snapshot.vocabulary.label_values[column]
    assert [values[code] for code in snapshot.nodes.labels[:, column]] == ingestor.state.names.nodes
    world.tell("node_upserted", name="n00", allocatable={"cpu": 1})
    assert "kubernetes.io/hostname" in drained(ingestor).snapshot.vocabulary.label_keys


def test_a_node_that_leaves_takes_its_tasks_with_it(world: World, ingestor: Ingestor) -> None:
    world.tell("node_removed", node="n3")
    world.tell("task_ended", task="default/web-0", outcome="Failed", replaced=True)
    assert task(drained(ingestor), "web-0") == {"status": PENDING, "node": None, "nominated": None, "life": 1}
    world.tell("task_started", task="default/web-0", node="n3", incarnation=1)
    drained(ingestor)
    assert "expected the name of a node that is there" in world.letters()[0]


@pytest.mark.parametrize("wanted", [{"required": "rack"}, {"layers": ["rack"]}, {"multiples": {"rack": 2}}])
def test_a_topology_that_drops_a_wanted_level_is_refused(
    world: World, ingestor: Ingestor, wanted: dict[str, object]
) -> None:
    world.tell("podgroup_upserted", name="near", queue="ml", topology=wanted)
    world.tell("topology_changed", topology=None)
    drained(ingestor)
    assert world.letters() == ["body.topology.levels: expected 'rack', which podgroups want, found none"]
    assert ingestor.snapshot.vocabulary.levels == ("rack",)


def test_queues_and_budgets_are_described_anew(world: World, ingestor: Ingestor) -> None:
    world.tell("queue_upserted", name="dev", priority=7, parent="ml")
    world.tell("budget_upserted", name="a", disruptions_allowed=5)
    world.tell("queue_upserted", name="ml", parent="dev")
    snapshot = drained(ingestor).snapshot
    assert ingestor.state.names.queues == ["ml", "dev"]
    assert snapshot.queues.priority.tolist() == [0, 7]
    assert snapshot.queues.parent.tolist() == [NONE, 0]
    assert [ingestor.state.names.queues[queue] for queue in snapshot.podgroups.queue] == ["ml", "dev"]
    assert snapshot.budgets.allowed.tolist() == [5, 1]
    assert snapshot.budgets.covers.shape == (2, 2)
    assert len(world.letters()) == 1


def test_a_queue_goes_when_it_is_empty(world: World, ingestor: Ingestor) -> None:
    world.tell("queue_upserted", name="sub", parent="dev")
    for queue in ("nowhere", "ml", "dev", "sub"):
        world.tell("queue_removed", queue=queue)
    assert drained(ingestor).state.names.queues == ["dev", "ml"]
    world.tell("podgroup_removed", podgroup="default/web")
    world.tell("queue_removed", queue="dev")
    world.tell("queue_removed", queue="ml")
    snapshot = drained(ingestor).snapshot
    assert ingestor.state.names.queues == ["ml"]
    assert len(snapshot.queues) == 1
    assert [letter.partition(", found ")[2] for letter in world.letters()] == [
        "'nowhere'", "1 podgroups in 'ml'", "1 podgroups in 'dev'", "1 podgroups in 'ml'",
    ]  # fmt: skip
    world.tell("podgroup_upserted", name="late", queue="dev")
    drained(ingestor)
    assert "dev" in world.letters()[-1]
    assert state_of(world.ingestor("second")) == state_of(ingestor)


def test_a_queue_with_queues_below_it_stays(world: World, ingestor: Ingestor) -> None:
    world.tell("podgroup_removed", podgroup="default/web")
    world.tell("queue_upserted", name="sub", parent="dev")
    world.tell("queue_removed", queue="dev")
    assert drained(ingestor).state.names.queues == ["dev", "ml", "sub"]
    assert len(world.letters()) == 1


def test_a_budget_that_goes_covers_no_task(world: World, ingestor: Ingestor) -> None:
    world.tell("budget_removed", budget="default/none")
    old = world.outgoing("budget_upserted", {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 3})
    world.tell("budget_removed", budget="default/b")
    assert len(drained(ingestor).snapshot.budgets.allowed) == 0
    world.say(old)
    assert len(drained(ingestor).snapshot.budgets.allowed) == 0
    assert world.letters() == ["body.budget: expected the name of a budget that is there, found 'default/none'"]


def test_a_podgroup_that_was_removed_takes_its_tasks_with_it_and_may_come_again(
    world: World, ingestor: Ingestor
) -> None:
    world.tell("podgroup_removed", podgroup="default/web")
    assert task(drained(ingestor), "web-0")["status"] == GONE
    world.tell("podgroup_upserted", name="web", queue="dev", tasks=[{"name": "web-0"}])
    assert task(drained(ingestor), "web-0")["status"] == PENDING
    assert len(ingestor.snapshot.tasks) == 5
    assert world.letters() == []


def test_a_task_may_select_by_the_name_of_a_node_after_one_has_left_that_the_topology_names() -> None:
    world = World()
    world.list_fleet(WRITTEN_OUT)
    ingestor = world.ingestor()
    world.tell("node_removed", node="n0")
    selective = {"name": "here-0", "node_selector": {"kubernetes.io/hostname": "n1"}}
    world.tell("podgroup_upserted", name="here", queue="ml", tasks=[selective])
    assert "default/here" in drained(ingestor).state.names.podgroups
    assert world.letters() == []
    world.tell("node_upserted", name="n0", allocatable={"cpu": "8"})
    snapshot, home = drained(ingestor).snapshot, ingestor.state.names.domains.index("r0")
    assert ingestor.state.names.nodes[snapshot.topology.start[home] : snapshot.topology.stop[home]] == ["n0", "n1"]


def test_a_start_in_milliseconds_is_refused_as_every_other_time_is(world: World, ingestor: Ingestor) -> None:
    world.tell("task_started", task="default/train-0", node="n1", at=1_700_000_000_000.0)
    assert task(drained(ingestor), "train-0")["status"] == PENDING
    assert world.letters() == [
        "body.at: expected seconds since 1970, within the years 1 to 9999, found 1700000000000.0"
    ]


def test_a_life_that_a_list_cannot_state_or_after_which_no_other_could_come_is_refused(
    world: World, ingestor: Ingestor
) -> None:
    last = 2**62 - 1
    world.tell("task_started", task="default/train-0", node="n1", incarnation=last + 1)
    world.tell("task_started", task="default/train-1", node="n1", incarnation=last)
    world.tell("task_ended", task="default/train-1", outcome="Failed", incarnation=last, replaced=True)
    assert task(drained(ingestor), "train-0")["status"] == PENDING
    assert task(ingestor, "train-1")["life"] == last + 1
    assert len(world.letters()) == 1
    web = {"name": "web-0", "request": {"cpu": 1}, "status": "Running", "node": "n3", "incarnation": last}
    world.list_fleet({**CLUSTER, "podgroups": [{**CLUSTER["podgroups"][1], "tasks": [web]}]}, "again")
    assert task(drained(ingestor), "web-0")["life"] == last


def test_a_task_that_waits_or_runs_in_another_podgroup_is_refused(world: World, ingestor: Ingestor) -> None:
    world.tell("task_upserted", podgroup="default/train", task={"name": "web-0"})
    world.tell("podgroup_upserted", name="new", queue="ml", tasks=[{"name": "train-0"}])
    assert len(drained(ingestor).state.names.tasks) == 4
    assert world.letters() == [
        "body: tasks: expected a task of no other podgroup, found 'default/web-0' of default/web",
        "body: tasks: expected a task of no other podgroup, found 'default/train-0' of default/train",
    ]
    world.tell("podgroup_removed", podgroup="default/web")
    world.tell("task_upserted", podgroup="default/train", task={"name": "web-0"})
    assert len(drained(ingestor).state.names.tasks) == 5
