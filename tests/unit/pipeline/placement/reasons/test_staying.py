"""Why running tasks stay, and what would change that."""

from actors.cli.simulated_words import in_words
from tests.support.simulating import simulate
from tests.support.stuck import GPU, NOW, cluster, node, runs, want


def test_what_was_started_in_the_same_cycle_is_told_to_be_in_the_way() -> None:
    first = runs("first", "", gpus=5, queue="b")
    document = cluster(runs("mine", "n0", gpus=1), first, want(1, 7), nodes=[node("n0")])
    result = simulate(document | {"policy": {"profile": "volcano"}}, explain=True)
    assert [one["task"] for one in result["cycles"][0]["bindings"]] == ["default/first-0"]
    attempts = result["explain"]["podgroups"]["default/want"]["attempts"]
    assert {"cause": "started in this cycle", "found": 1.0} in attempts[0]["obstacles"]
    assert "1 running task may not be evicted: started in this cycle; wait for the next" in in_words(result)


def test_what_queues_keep_is_told_with_what_would_change_it() -> None:
    theirs = [runs(f"theirs{at}", f"n{at}", queue="b") for at in range(2)]
    queues = [{"name": "a", "deserved": {GPU: 16}}, {"name": "b", "deserved": {GPU: 8}}]
    said = in_words(simulate(cluster(*theirs, want(2), queues=queues), explain=True))
    assert f"queue b would hold less than the 8 of {GPU} that it deserves; lower what it deserves" in said


def test_what_a_queue_keeps_is_told_where_it_depends_on_which_task_goes_last() -> None:
    """In the order of rows all of them may go, since the last one may be too much; the pair that breaks may not."""
    pair = runs("pair", "n0", "n0", gpus=1, queue="b", min_available=2)
    theirs = pair, runs("young", "n0", gpus=2, queue="b", created=NOW - 8500)
    small = [node(name, allocatable={"cpu": 64, GPU: 4, "pods": 20}) for name in ("n0", "n1")]
    queues = [{"name": "a", "deserved": {GPU: 8}}, {"name": "b", "deserved": {GPU: 1}}]
    policy = {"profile": "volcano", "actions": ["gangreclaim"]}
    document = cluster(*theirs, want(4, 2), nodes=small, queues=queues, policy=policy)
    result = simulate(document, explain=True)
    (attempt,) = result["explain"]["podgroups"]["default/want"]["attempts"]
    assert attempt["reason"] == "policy refused too many candidates"
    assert f"queue b would hold less than the 1 of {GPU} that it deserves; lower what it deserves" in in_words(result)
