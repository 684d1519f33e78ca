"""The quota that a gang lacks: of what it asks for, and freed by the least harm that frees it."""

from typing import Any

import pytest

from pipeline.solvers.gather import preemption
from tests.support.gathering import Outcome, cluster_file, running, waiting
from tests.support.small_clusters import Document, named, played, podgroup, world

NODES = {"n0": {"cpu": 8, "gpu": 4}, "n1": {"cpu": 8, "gpu": 4}}
#: A queue that holds more devices than its maximum, and has no maximum of cores.
OVER = {"q": {"deserved": {"gpu": 1}, "capability": {"gpu": 1}}}
CORES = podgroup("cores", [{"cpu": 8}], priority=9)


def decided(podgroups: list[Document]) -> Document:
    (cycle,) = played(world(NODES, OVER, podgroups, profile="koordinator"))
    return cycle


def test_a_gang_frees_no_quota_of_what_it_does_not_ask_for() -> None:
    devices = [podgroup(f"gpu{at}", [{"cpu": 4, "gpu": 2}], f"n{at}", priority=1) for at in (0, 1)]
    cycle = decided([*devices, CORES])
    assert len(cycle["evictions"]) == 1
    assert named(cycle["nominations"]) == ["cores-0"]


def test_it_gets_room_though_work_that_may_not_go_holds_more_of_that_than_the_quota() -> None:
    fixed = podgroup("fixed", [{"cpu": 1, "gpu": 4}], "n1", priority=20)
    cycle = decided([fixed, podgroup("low", [{"cpu": 4}], "n0", priority=1), CORES])
    assert (named(cycle["evictions"]), named(cycle["nominations"])) == (["low-0"], ["cores-0"])


def test_a_promise_elsewhere_stays_where_the_queue_is_over_what_is_not_asked_for() -> None:
    fixed = podgroup("fixed", [{"cpu": 5, "gpu": 4}], "n1", priority=20)
    before = podgroup("before", [{"cpu": 3}], "n1", {"status": "Terminating", "gone_when_evicted": True})
    promised = podgroup("promised", [{"cpu": 3}], of_each={"nominated_node": "n1"}, priority=2)
    cycle = decided([fixed, before, promised, podgroup("low", [{"cpu": 4}], "n0", priority=1), CORES])
    assert named(cycle["evictions"]) == ["low-0"]
    assert sorted(named(cycle["nominations"])) == ["cores-0", "promised-0"]


def full(cores: int, podgroups: list[dict[str, Any]], cpus: int = 4) -> Outcome:
    """What comes of podgroups on two nodes, in a queue that may hold so many cores."""
    queues = [{"name": "default", "deserved": {"cpu": cores}, "capability": {"cpu": cores}}, {"name": "other"}]
    return Outcome(cluster_file({"s1": {"b1": ["n1", "n2"]}}, cpus, podgroups, queues=queues))


def test_two_tasks_of_a_gang_go_that_free_the_quota_and_not_a_more_important_one_that_frees_it_alone() -> None:
    """One of them would make room, but the queue holds more than it may."""
    low, mid = running("low", ["n1", "n2", "n2"], 1, priority=1), running("mid", ["n1"], 2, priority=3)
    other = [running("x1", ["n1"], 1, queue="other"), running("x2", ["n2"], 2, queue="other")]
    found = full(4, [low, mid, *other, waiting("hp", [1])])
    assert (found.evicted, len(found.nominated)) == (["low-1", "low-2"], 1)


@pytest.mark.parametrize(("priority", "searched"), [(1, True), (1000, False)])
def test_no_domain_is_searched_where_all_that_may_go_free_less_quota_than_is_lacked(
    monkeypatch: pytest.MonkeyPatch, priority: int, searched: bool
) -> None:
    asked, search = list[object](), preemption.hopeful
    monkeypatch.setattr(preemption, "hopeful", lambda *given: asked.append(given) or search(*given))
    low, other = running("low", ["n1"], 4, priority=priority), running("x", ["n2"], 4, queue="other")
    found = full(4, [low, other, waiting("hp", [4])])
    assert (found.evicted == ["low-0"], bool(asked)) == (searched, searched)
