"""Gang groups: podgroups start with those that they name, across namespaces; the lists need not agree."""

from typing import Any

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting


def naming(name: str, tasks: int, *named: str, **more: Any) -> dict[str, Any]:
    """A podgroup that waits, and names some."""
    return waiting(name, [1] * tasks, gang_group=list(named), **more)


def test_one_that_is_named_starts_without_the_one_that_names_it() -> None:
    groups = [naming("a", 2, "default/a", "default/b") | {"min_available": 3}, naming("b", 2, "default/b")]
    assert Outcome(cluster_file(TWO_BY_TWO, 1, groups)).bound.keys() == {"b-0", "b-1"}


def test_one_that_names_another_waits_for_it() -> None:
    groups = [naming("a", 2, "default/a", "default/b"), naming("b", 2, "default/b") | {"min_available": 3}]
    assert Outcome(cluster_file(TWO_BY_TWO, 1, groups)).bound == {}


def test_it_waits_for_those_that_the_named_one_names() -> None:
    groups = [
        naming("a", 1, "default/a", "default/b"), naming("b", 1, "default/b", "default/c"),
        naming("c", 1, "default/c") | {"min_available": 2},
    ]  # fmt: skip
    assert Outcome(cluster_file(TWO_BY_TWO, 1, groups)).bound == {}


def test_both_start_where_there_is_room_for_both() -> None:
    groups = [naming("a", 2, "default/a", "default/b"), naming("b", 2, "default/b")]
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, groups)).bound) == 4


def test_where_there_is_room_for_the_named_one_alone_it_starts_alone() -> None:
    groups = [naming("a", 7, "default/a", "default/b", created=1.0), naming("b", 2, "default/b", created=2.0)]
    assert Outcome(cluster_file(TWO_BY_TWO, 1, groups)).bound.keys() == {"b-0", "b-1"}


def test_names_are_of_namespaces() -> None:
    groups = [
        naming("a", 1, "default/a", "team/b"), naming("b", 1, namespace="team", priority=1),
        naming("b", 9, namespace="default") | {"tasks": []},
    ]  # fmt: skip
    assert Outcome(cluster_file(TWO_BY_TWO, 1, groups)).bound.keys() == {"a-0", "b-0"}


def test_room_is_made_for_the_named_one_when_the_one_that_names_it_cannot_have_it() -> None:
    low = running("low", [f"n{at}" for at in range(1, 9)], 1, min_available=1)
    groups = [naming("a", 8, "default/a", "default/b"), naming("b", 2, "default/b")]
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [low, *groups]))
    assert (len(found.evicted), found.nominated.keys()) == (2, {"b-0", "b-1"})


def test_no_room_is_made_where_the_queue_of_one_of_them_may_not_take_more() -> None:
    queues = [{"name": "default"}, {"name": "full", "deserved": {"cpu": 1}, "capability": {"cpu": 1}}]
    low = running("low", [f"n{at}" for at in range(1, 9)], 1, min_available=1)
    both = ["default/a", "default/b"]
    groups = [naming("a", 2, *both), naming("b", 2, *both, queue="full")]
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [low, *groups], queues=queues)).evicted == []
    groups = [naming("a", 2, *both), naming("b", 1, *both, queue="full")]
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [low, *groups], queues=queues)).evicted) == 3


def test_room_is_made_for_all_that_start_together() -> None:
    low = running("low", [f"n{at}" for at in range(1, 9)], 1, min_available=1)
    groups = [naming("a", 3, "default/a", "default/b"), naming("b", 2, "default/b")]
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [low, *groups]))
    assert (len(found.evicted), len(found.nominated)) == (5, 5)
