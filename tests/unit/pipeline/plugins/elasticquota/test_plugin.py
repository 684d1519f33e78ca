"""Elastic quota: runtime quotas, who is kept out by them, and what is taken back."""

from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.cluster.resources import CPU
from pipeline.cluster.tables import RUNNING
from pipeline.plugins.elasticquota.runtime import by_largest_remainder
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace
from tests.support.gathering import Outcome, cluster_file, running, waiting

GPU = "nvidia.com/gpu"
ONE, PAIR = {"s1": {"b1": ["n1"]}}, {"s1": {"b1": ["n1", "n2"]}}


def queue(name: str, least: float | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, **({} if least is None else {"deserved": {"cpu": least}}), **more}


def shares(
    total: int, queues: list[dict[str, Any]], asks: dict[str, float], *, scaled: bool = False
) -> dict[str, float]:
    """The runtime quota of each queue; ``scaled``: minima that do not all fit shrink."""
    groups = [waiting(name, [cpu], queue=name) for name, cpu in asks.items() if cpu]
    document = cluster_file(ONE, total, groups, queues=queues)
    document["policy"]["actions"] = []
    if scaled:
        setting = {"name": "elasticquota", "enabled": {"*": True}, "arguments": {"scale_minima": True}}
        document["policy"]["tiers"] = [[setting]]
    return {name: share["cpu"] for name, share in Outcome(document).fair_share.items()}


def test_what_is_left_is_shared_by_weight_in_rounds() -> None:
    queues = [
        queue("a", 10, weight=40),
        queue("b", 15, weight=60),
        queue("c", 20, weight=50),
        queue("d", 15, weight=80),
    ]
    got = shares(100, queues, {"a": 5, "b": 20, "c": 40, "d": 70})
    assert got == {"a": 5, "b": 20, "c": 35, "d": 40}


def test_a_minimum_is_lent_while_it_is_unused_and_a_guarantee_is_not() -> None:
    queues = [queue("a", 60), queue("b", 20)]
    assert shares(100, queues, {"b": 90}) == {"a": 0, "b": 90}
    queues[0]["guarantee"] = {"cpu": 30}
    assert shares(100, queues, {"b": 90}) == {"a": 30, "b": 70}


def test_a_maximum_bounds_what_is_asked_for() -> None:
    assert shares(100, [queue("a", 10, capability={"cpu": 40})], {"a": 90}) == {"a": 40}


def test_children_share_the_runtime_quota_of_their_parent() -> None:
    queues = [queue("p", 50), queue("o", 50), queue("c", 30, parent="p"), queue("d", 20, parent="p")]
    got = shares(100, queues, {"o": 100, "c": 100, "d": 5})
    assert got == {"p": 50, "o": 50, "c": 45, "d": 5}


def test_a_parent_asks_for_the_guarantees_of_its_children_whether_they_use_them_or_not() -> None:
    queues = [
        queue("p", 40),
        queue("o", 20),
        queue("c", 30, parent="p", guarantee={"cpu": 30}),
        queue("d", 10, parent="p"),
    ]
    assert shares(100, queues, {"o": 100, "c": 5, "d": 12}) == {"p": 42, "o": 58, "c": 30, "d": 12}
    queues[0] = queue("p", 0, weight=0)  # the guarantees of its children are its own, and all that it gets
    assert shares(100, queues, {"o": 100, "c": 5, "d": 12}) == {"p": 30, "o": 70, "c": 30, "d": 10}


def test_what_queues_without_a_statement_hold_is_not_there_to_be_shared() -> None:
    queues = [queue("default"), queue("a", 10), queue("b", 20)]
    groups = [running("free", ["n1"], 40), *(waiting(name, [100], queue=name) for name in "ab")]
    document = cluster_file(ONE, 100, groups, queues=queues)
    document["policy"]["actions"] = []
    assert {name: share["cpu"] for name, share in Outcome(document).fair_share.items()} == {
        "default": 40, "a": 25, "b": 35,
    }  # fmt: skip


def test_what_is_over_its_part_of_the_rest_is_taken_back() -> None:
    """``a`` has 60 beside 40 that no quota binds: half of them are due to ``b``."""
    queues = [queue("default"), queue("a", 0), queue("b", 0)]
    borrowed = [running(f"a{at}", ["n1"], 10, queue="a") for at in range(6)]
    groups = [running("free", ["n1"], 40), *borrowed, waiting("b", [10] * 3, queue="b")]
    found = Outcome(cluster_file(ONE, 100, groups, queues=queues), 3)
    assert len(found.evicted) == 3
    assert found.bound.keys() == {"b-0", "b-1", "b-2"}


def test_a_task_that_ends_and_starts_over_asks_for_as_much_as_before() -> None:
    """Otherwise its queue's part would be lent for a moment, and what was given then would be taken again."""
    queues, ends = [queue("a", 50), queue("b", 50)], running("a", ["n1"], cpu=50, queue="a")
    document = cluster_file(ONE, 100, [ends, waiting("b", [100], queue="b")], queues=queues)
    document["policy"]["actions"] = []
    (task,) = document["podgroups"][0]["tasks"]
    task["status"] = "Terminating"
    assert {name: share["cpu"] for name, share in Outcome(document).fair_share.items()} == {"a": 50, "b": 50}
    task["gone_when_evicted"] = True
    assert {name: share["cpu"] for name, share in Outcome(document).fair_share.items()} == {"a": 0, "b": 100}


def test_pieces_are_shared_out_to_the_last_one() -> None:
    assert by_largest_remainder(10, [1, 1, 1, 0]) == [4, 3, 3, 0]


def test_weights_may_differ_from_resource_to_resource() -> None:
    queues = [
        queue("a", over_quota_weight={"cpu": 3, "memory": 1}),
        queue("b", over_quota_weight={"cpu": 1, "memory": 3}),
    ]
    groups = [waiting(name, [80], queue=name) for name in ("a", "b")]
    for group in groups:
        group["tasks"][0]["request"]["memory"] = 800
    document = cluster_file(ONE, 80, groups, queues=[{**one, "capability": {"cpu": 80}} for one in queues])
    document["nodes"][0]["allocatable"]["memory"] = 800
    document["policy"]["actions"] = []
    got = Outcome(document).fair_share
    assert [(got[name]["cpu"], got[name]["memory"]) for name in ("a", "b")] == [(60, 200), (20, 600)]


def test_minima_that_do_not_all_fit_shrink_in_proportion_where_the_policy_says_so() -> None:
    queues = [queue("a", 60), queue("b", 90)]
    asks = {"a": 100.0, "b": 100.0}
    assert shares(100, queues, asks) == {"a": 60, "b": 90}
    assert shares(100, queues, asks, scaled=True) == {"a": 40, "b": 60}


def test_one_minimum_beyond_the_cluster_stands_too_or_shrinks_in_proportion() -> None:
    queues, asks = [queue("a", 300), queue("b", 100)], {"a": 400.0, "b": 100.0}
    assert shares(200, queues, asks) == {"a": 300, "b": 100}
    assert shares(200, queues, asks, scaled=True) == {"a": 150, "b": 50}
    children = [queue("p", 300), queue("c", 100, parent="p"), queue("d", 100, parent="p")]
    assert shares(200, children, {"c": 200, "d": 200}) == {"p": 300, "c": 150, "d": 150}


def test_work_that_is_never_evicted_stays_within_the_minimum() -> None:
    queues = [queue("a", 4)]
    lasting = waiting("lasting", [3, 3], queue="a", min_available=1, preemptible=False)
    found = Outcome(cluster_file(PAIR, 8, [lasting], queues=queues))
    assert found.bound.keys() == {"lasting-0"}
    gathered = {**lasting, "topology": {"preferred": "block"}}
    assert Outcome(cluster_file(PAIR, 8, [gathered], queues=queues)).bound.keys() == {"lasting-0"}
    spared = [{**lasting, "preemptible": True}]
    assert len(Outcome(cluster_file(PAIR, 8, spared, queues=queues)).bound) == 2


def test_no_room_is_made_for_work_that_may_not_stay() -> None:
    queues = [queue("a", 4)]
    low = running("low", ["n1", "n2"], 8, queue="a", priority=1)
    lasting = waiting("lasting", [8], queue="a", preemptible=False)
    assert Outcome(cluster_file(PAIR, 8, [low, lasting], queues=queues)).evicted == []
    assert Outcome(cluster_file(PAIR, 8, [low, {**lasting, "preemptible": True}], queues=queues)).evicted != []


def test_a_gang_that_its_quota_keeps_out_evicts_no_task_for_nothing() -> None:
    # Of 16 cores b may use 4 at most and uses 2 of them: a gang of 8 of b stays out, whatever else there is to evict.
    queues = [queue("a", 8), queue("b", 4, capability={"cpu": 4})]
    groups = [running("a", ["n1", "n2"], 7, queue="a"), running("b", ["n1"], 2, queue="b")]
    found = Outcome(cluster_file(PAIR, 9, [*groups, waiting("gang", [4, 4], queue="b")], queues=queues))
    assert (found.evicted, found.nominated, found.bound) == ([], {}, {})


def test_a_gang_under_its_quota_takes_back_what_others_use_beyond_theirs() -> None:
    queues = [queue("a", 8), queue("b", 8)]
    over = [running(f"a{at}", ["n1" if at < 4 else "n2"], 2, queue="a", priority=5000) for at in range(8)]
    found = Outcome(cluster_file(PAIR, 8, [*over, waiting("gang", [4, 4], queue="b", priority=0)], queues=queues))
    assert len(found.evicted) == 4
    assert len(found.nominated) == 2


def test_reclaim_takes_gangs_whole_and_leaves_the_minimum() -> None:
    # a holds 12 of its 8: the gang of 4 goes whole; the gang of 8, which a's minimum is for, stays.
    queues = [queue("a", 8), queue("b", 8)]
    over = [running("keep", ["n1", "n1"], 4, queue="a"), running("spare", ["n2", "n2"], 2, queue="a")]
    found = Outcome(cluster_file(PAIR, 8, [*over, waiting("gang", [8], queue="b")], queues=queues))
    assert found.evicted == ["spare-0", "spare-1"]
    assert found.nominated == {"gang-0": "n2"}


def lent(nodes: int = 2, **more: Any) -> dict[str, Any]:
    """Queue ``b`` runs tasks of a core and a device on nodes with four devices each, and ``l`` wants four devices back.

    ``b`` holds fewer cores than its minimum of twelve.
    """
    tasks = [running(f"b{at}", [f"n{at // 4 + 1}"], 1, queue="b") for at in range(4 * nodes)]
    queues = [{"name": "l", "deserved": {"cpu": 4, GPU: 4}}, {"name": "b", "deserved": {"cpu": 12, GPU: 4}, **more}]
    names = [f"n{at + 1}" for at in range(nodes)]
    document = cluster_file({"s1": {"b1": names}}, 8, [*tasks, waiting("l", [1] * 4, queue="l")], queues=queues)
    for one in document["nodes"]:
        one["allocatable"][GPU] = 4
    for podgroup in document["podgroups"]:
        for task in podgroup["tasks"]:
            task["request"][GPU] = 1
    return document


@pytest.mark.parametrize(("profile", "gone"), [("koordinator", 4), ("default", 0)])
def test_devices_are_taken_back_though_their_tasks_hold_cores_of_a_minimum(profile: str, gone: int) -> None:
    """As Koordinator's revoker, which takes what is over in any resource; ``default`` keeps each share."""
    document = lent()
    document["policy"]["profile"] = profile
    assert len(Outcome(document).evicted) == gone


def test_of_what_a_queue_is_over_it_keeps_its_minimum_whatever_else_its_tasks_hold() -> None:
    assert Outcome(lent(deserved={"cpu": 12, GPU: 5})).evicted == []  # eight are not enough for both minima
    assert len(Outcome(lent(3, deserved={"cpu": 12, GPU: 8})).evicted) == 4


def test_the_parent_of_a_queue_keeps_its_minimum_of_what_is_taken_and_not_of_the_rest() -> None:
    document = lent()
    above, below = {"cpu": 12, GPU: 4}, {"name": "b", "parent": "p", "deserved": {GPU: 0}}
    document["queues"][1:] = [{"name": "p", "deserved": above}, below]
    assert len(Outcome(document).evicted) == 4
    above[GPU] = 5
    assert Outcome(document).evicted == []


def test_victims_are_lawful_only_while_their_queue_is_over_its_quota_of_what_is_asked_for() -> None:
    document = lent()
    case = open_case(document)
    waits = (len(case.snapshot.podgroups) - 1,)
    request = case.snapshot.request_of(case.snapshot.pending(waits[0])).sum(axis=0)
    host, preemptor = Host(Context(case.snapshot, case.policy, case.now)), Preemptor(waits, request, Purpose.RECLAIM)
    rows = np.flatnonzero(case.snapshot.tasks.status == RUNNING)
    assert host.validate_set(preemptor, rows[:4])
    assert not host.validate_set(preemptor, rows[:5])
    cores = replace(preemptor, request=np.where(np.arange(len(request)) == CPU, request, 0))
    assert not host.validate_set(cores, rows[:1])


class Asked:
    """What the plugins say of a gang that asks for some cores in the queue ``b``, beside work that runs."""

    def __init__(self, queues: list[dict[str, Any]], works: dict[str, int], cores: int = 4, **switches: bool) -> None:
        groups = [running(f"{name}-runs", ["n1"] * many, 1, queue=name) for name, many in works.items()]
        document = cluster_file(ONE, 16, [*groups, waiting("gang", [cores], queue="b")], queues=queues)
        setting = {"name": "elasticquota", "enabled": {"*": True}, "arguments": switches}
        document["policy"]["tiers"] = [[setting]]
        case = open_case(document)
        self._snapshot, self._last = case.snapshot, len(case.snapshot.podgroups) - 1
        self._host = Host(Context(case.snapshot, case.policy, case.now))
        request = case.snapshot.request_of(case.snapshot.pending(self._last)).sum(axis=0)
        self._preemptor = Preemptor((self._last,), request, Purpose.RECLAIM)
        self._starts = dict(zip(works, np.cumsum([0, *works.values()]), strict=False))

    @property
    def may_reclaim(self) -> bool:
        return self._host.preemptive(self._preemptor)

    def may_take(self, name: str, many: int) -> bool:
        """Whether it may take the first tasks of a queue."""
        return self._host.validate_set(self._preemptor, np.arange(many) + self._starts[name])

    def may_lose(self) -> list[bool]:
        return self._host.may_lose(self._preemptor).tolist()


def test_of_waiting_podgroups_that_of_the_highest_priority_comes_first_whatever_its_queue() -> None:
    groups = [waiting("low", [8], queue="a", priority=1), waiting("high", [8], queue="b", priority=5)]
    assert Outcome(cluster_file(ONE, 8, groups, queues=[queue("a", 8), queue("b", 8)])).bound.keys() == {"high-0"}


@pytest.mark.parametrize(
    ("least", "cores", "may"), [(8, 4, True), (8, 8, True), (8, 9, False), (None, 4, False)],
)  # fmt: skip
def test_a_queue_reclaims_up_to_its_runtime_quota_and_not_without_a_statement(
    least: int | None, cores: int, may: bool
) -> None:
    queues = [queue("a", 8), queue("b", least, capability={"cpu": 8})] if least else [queue("a", 8), queue("b")]
    assert Asked(queues, {"a": 16}, cores).may_reclaim == may


def test_a_queue_that_is_not_open_takes_nothing_back() -> None:
    opened, closed = queue("b", 8), queue("b", 8, state="Closed")
    assert [Asked([queue("a", 8), one], {"a": 16}).may_reclaim for one in (opened, closed)] == [True, False]
    assert [Asked([queue("a", 8), one], {"a": 16}).may_take("a", 4) for one in (opened, closed)] == [True, False]


def test_victims_must_bring_the_queue_and_its_ancestors_within_their_quotas() -> None:
    own = [queue("a", 8), queue("b", 6, capability={"cpu": 6})]
    assert Asked(own, {"a": 12, "b": 2}).may_take("a", 2)
    assert not Asked(own, {"a": 12, "b": 3}).may_take("a", 2)
    own[1]["guarantee"] = {"cpu": 8}  # the maximum holds all the same
    assert not Asked(own, {"a": 12, "b": 3}).may_take("a", 2)
    above = [queue("a", 8), queue("p", 8, capability={"cpu": 6}), queue("b", 8, parent="p"), queue("c", 0, parent="p")]
    assert Asked(above, {"a": 12, "c": 2}).may_take("a", 2)
    assert not Asked(above, {"a": 12, "c": 3}).may_take("a", 2)


def test_of_minima_that_shrink_reclaim_leaves_what_is_left() -> None:
    queues = [queue("a", 24), queue("b", 8)]
    assert not Asked(queues, {"a": 16}).may_take("a", 4)
    assert Asked(queues, {"a": 16}, scale_minima=True).may_take("a", 4)
    assert not Asked(queues, {"a": 16}, scale_minima=True).may_take("a", 5)


def test_what_an_ancestor_of_both_queues_loses_and_takes_is_no_loss() -> None:
    """It holds less than its minimum before and afterwards."""
    queues = [queue("p", 16), queue("a", 4, parent="p"), queue("b", 8, parent="p")]
    assert Asked(queues, {"a": 13}).may_take("a", 4)


def test_an_ancestor_that_is_within_its_quota_may_lose_what_a_queue_below_it_is_over() -> None:
    queues = [queue("p", 2), queue("a", 0, parent="p", weight=0), queue("c", 0, parent="p"), queue("b", 4)]
    assert Asked(queues, {"a": 8, "b": 1}, 3).may_take("a", 3)


def test_a_queue_that_holds_many_pods_is_over_nothing_that_a_gang_asks_for() -> None:
    few_pods = queue("a", 8, capability={"pods": 1})
    assert Asked([few_pods, queue("b", 8)], {"a": 12}).may_lose() == [False, False]
    assert Asked([few_pods, queue("b", 8)], {"a": 13}).may_lose() == [True, False]


def test_what_fits_the_minimum_is_not_taken_by_another_queue() -> None:
    queues = [queue("a", 16), queue("b", 8)]
    found = Outcome(
        cluster_file(PAIR, 8, [running("a", ["n1", "n2"], 8, queue="a"), waiting("b", [8], queue="b")], queues=queues)
    )
    assert (found.evicted, found.nominated) == ([], {})


@pytest.mark.parametrize("purpose", ["same", "other"])
def test_preempt_stays_inside_a_queue(purpose: str) -> None:
    queues = [queue("a"), queue("b")]
    low = running("low", ["n1"], 8, queue="a")
    found = Outcome(
        cluster_file(ONE, 8, [low, waiting("high", [8], queue="a" if purpose == "same" else "b")], queues=queues)
    )
    assert found.evicted == (["low-0"] if purpose == "same" else [])


def test_a_budget_keeps_its_tasks_from_being_victims() -> None:
    low = running("low", ["n1"], 8)
    low["tasks"][0]["labels"] = {"app": "x"}
    budget = {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 0}
    document = cluster_file(PAIR, 8, [low, running("other", ["n2"], 8, priority=9), waiting("high", [8])])
    assert Outcome(document).evicted == ["low-0"]
    assert Outcome({**document, "disruption_budgets": [budget]}).evicted == ["other-0"]
