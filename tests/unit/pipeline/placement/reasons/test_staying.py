"""Why running tasks stay, and what would change that."""

from actors.cli.simulate import SimulateOptions, simulated
from actors.cli.simulated_words import in_words
from tests.support.stuck import GPU, cluster, node, runs, want


def test_what_was_started_in_the_same_cycle_is_told_to_be_in_the_way() -> None:
    first = runs("first", "", gpus=5, queue="b")
    document = cluster(runs("mine", "n0", gpus=1), first, want(1, 7), nodes=[node("n0")])
    result = simulated(document | {"policy": {"profile": "volcano"}}, SimulateOptions(explain=True))
    assert [one["task"] for one in result["cycles"][0]["bindings"]] == ["default/first-0"]
    attempts = result["explain"]["podgroups"]["default/want"]["attempts"]
    assert {"cause": "started in this cycle", "found": 1.0} in attempts[0]["obstacles"]
    assert "1 running task may not be evicted: started in this cycle; wait for the next" in in_words(result)


def test_what_queues_keep_is_told_with_what_would_change_it() -> None:
    theirs = [runs(f"theirs{at}", f"n{at}", queue="b") for at in range(2)]
    queues = [{"name": "a", "deserved": {GPU: 16}}, {"name": "b", "deserved": {GPU: 8}}]
    said = in_words(simulated(cluster(*theirs, want(2), queues=queues), SimulateOptions(explain=True)))
    assert f"queue b would hold less than the 8 of {GPU} that it deserves; lower what it deserves" in said
