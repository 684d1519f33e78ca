"""Gathering without evictions: the worked examples of "Network-Topology Aware", layers, ranks and what exists."""

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting

PREFER = {"topology": {"preferred": "block"}}


def test_the_closest_fit_of_the_lowest_candidates_is_taken() -> None:
    # The figures of "Topology Gather Algorithm": of two blocks that offer enough, the one that offers least beyond it.
    spines = {"s1": {"b1": ["n1", "n2", "n3", "n4", "n9"]}, "s2": {"b2": ["n5", "n6", "n7", "n8"]}}
    found = Outcome(cluster_file(spines, 1, [waiting("job", [1] * 4, **PREFER)]))
    assert found.bound == {"job-0": "n5", "job-1": "n6", "job-2": "n7", "job-3": "n8"}


def test_a_job_goes_one_layer_up_where_no_block_takes_it() -> None:
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [running("x", ["n1"], 1), waiting("job", [1] * 4, **PREFER)]))
    assert found.bound == {"job-0": "n5", "job-1": "n6", "job-2": "n7", "job-3": "n8"}


def test_a_job_that_only_prefers_closeness_takes_what_there_is() -> None:
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [waiting("job", [1] * 5, **PREFER)]))
    assert len(found.bound) == 5


def test_a_job_that_must_gather_waits_where_no_domain_of_the_layer_takes_it() -> None:
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [waiting("job", [1] * 5, topology={"required": "spine"})]))
    assert (found.bound, found.nominated) == ({}, {})


def test_ranks_fill_block_after_block_whatever_their_names() -> None:
    spines = {"s1": {f"b{at}": [f"n{at}{k}" for k in range(4)] for at in range(3)}}
    job = waiting("w", [1] * 12, **PREFER)
    found = Outcome(cluster_file(spines, 1, [job]))
    assert [found.bound[f"w-{rank}"][1] for rank in range(12)] == ["0"] * 4 + ["1"] * 4 + ["2"] * 4


def test_without_an_index_the_number_at_the_end_of_a_name_is_the_rank() -> None:
    spines = {"s1": {f"b{at}": [f"n{at}{k}" for k in range(4)] for at in range(3)}}
    job = waiting("w", [1] * 12, **PREFER)
    job["tasks"] = [{"name": f"w-{at}", "request": {"cpu": 1}} for at in reversed(range(12))]
    found = Outcome(cluster_file(spines, 1, [job]))
    assert [found.bound[f"w-{rank}"][1] for rank in range(12)] == ["0"] * 4 + ["1"] * 4 + ["2"] * 4


def test_tasks_without_an_index_come_after_all_that_have_one() -> None:
    spines = {"s1": {f"b{at}": [f"n{at}{k}" for k in range(2)] for at in range(2)}}
    job = waiting("w", [1] * 4, **PREFER)
    for task in job["tasks"][:2]:
        del task["index"]
    found = Outcome(cluster_file(spines, 1, [job]))
    assert [found.bound[f"w-{at}"] for at in (2, 3, 0, 1)] == ["n00", "n01", "n10", "n11"]


def test_tasks_that_are_not_alike_are_gathered_in_rank_order_too() -> None:
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}}
    found = Outcome(cluster_file(spines, 4, [running("x", ["n1"], 2), waiting("job", [4, 1, 3, 2, 2], **PREFER)]))
    assert set(found.bound.values()) == {"n2", "n3", "n4"}
    assert found.bound["job-1"] == found.bound["job-2"]


def test_tasks_that_are_not_alike_get_the_one_block_that_takes_them_all() -> None:
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}}
    found = Outcome(cluster_file(spines, {"n1": 4, "n2": 4, "n3": 6, "n4": 2}, [waiting("job", [6, 1, 1], **PREFER)]))
    assert found.bound == {"job-0": "n3", "job-1": "n4", "job-2": "n4"}


def test_one_more_member_goes_where_most_of_them_are() -> None:
    grown = running("job", ["n1", "n2", "n5"], 1, **PREFER)
    grown["tasks"].append({"name": "job-3", "request": {"cpu": 1}})
    found = Outcome(cluster_file({"s1": {"b1": ["n1", "n2", "n3"]}, "s2": {"b2": ["n5", "n6"]}}, 1, [grown]))
    assert found.bound == {"job-3": "n3"}


def test_a_member_that_must_be_near_the_others_waits_rather_than_go_elsewhere() -> None:
    grown = running("job", ["n1", "n2"], 1, topology={"required": "block"})
    grown["tasks"].append({"name": "job-2", "request": {"cpu": 1}})
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [grown]))
    assert found.bound == {}


def test_podgroups_of_one_gang_group_are_gathered_together() -> None:
    both = {"gang_group": ["default/master", "default/worker"], "topology": {"required": "spine"}}
    found = Outcome(
        cluster_file(
            TWO_BY_TWO, 1, [running("x", ["n2"], 1), waiting("master", [1], **both), waiting("worker", [1] * 3, **both)]
        )
    )
    assert set(found.bound.values()) == {"n5", "n6", "n7", "n8"}


def test_a_node_without_labels_serves_a_job_that_does_not_ask_for_the_layer() -> None:
    document = cluster_file({"s1": {"b1": ["n1"]}}, 1, [waiting("job", [1, 1], **PREFER)])
    document["nodes"].append({"name": "bare", "allocatable": {"cpu": 1, "pods": 9}})
    assert set(Outcome(document).bound.values()) == {"n1", "bare"}
    document["podgroups"] = [waiting("job", [1, 1], topology={"required": "block"})]
    assert Outcome(document).bound == {}
