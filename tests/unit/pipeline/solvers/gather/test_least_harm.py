"""In which of two blocks room is made: by budgets, priority, jobs that break, lost work, and the number of tasks."""

from typing import Any

import pytest

from tests.support.gathering import Outcome, cluster_file, running, waiting

BLOCKS = {"s1": {"b1": ["n1"], "b2": ["n2"]}}
JOB = waiting("hp", [4], topology={"required": "block"})


def evicted(podgroups: list[dict[str, Any]], **more: Any) -> list[str]:
    document = cluster_file(BLOCKS, 4, [*podgroups, JOB], **more)
    document["policy"]["plugins"] = {"pdb": {"enabled": {"evictable": False}}}
    return Outcome(document).evicted


@pytest.mark.parametrize("job", [JOB, JOB | {"queue": "other"}])
def test_two_jobs_break_rather_than_one_of_higher_priority(job: dict[str, Any]) -> None:
    """So it is in reclaim too, where no priority decides which tasks may go."""
    two = [running(f"low{at}", ["n2"], 2, priority=1) for at in (0, 1)]
    queues = [{"name": "default", "deserved": {"cpu": 0}}, {"name": "other", "deserved": {"cpu": 8}}]
    groups = [running("mid", ["n1"], 4, priority=2), *two, job]
    assert Outcome(cluster_file(BLOCKS, 4, groups, queues=queues)).evicted == ["low0-0", "low1-0"]


def test_where_budgets_are_only_counted_more_important_work_goes_rather_than_what_a_budget_covers() -> None:
    covered, mid = running("low", ["n1"], 4, priority=1), running("mid", ["n2"], 4, priority=2)
    assert evicted([covered, mid]) == ["low-0"]
    covered["tasks"][0]["labels"] = {"app": "x"}
    budget = {"name": "b", "namespace": "default", "match_labels": {"app": "x"}, "disruptions_allowed": 0}
    assert evicted([covered, mid], disruption_budgets=[budget]) == ["mid-0"]


def test_of_surplus_that_goes_the_least_work_is_lost() -> None:
    spare = [running(f"v{at}", [f"n{at}"], 4, min_available=0, last_checkpoint=1000.0 * at - 1000.0) for at in (1, 2)]
    assert evicted(spare) == ["v2-0"]


def test_of_the_same_work_the_fewest_tasks_go() -> None:
    small, large = running("small", ["n1", "n1"], 2, min_available=0), running("large", ["n2"], 4, min_available=0)
    assert evicted([small, large]) == ["large-0"]


def test_of_blocks_that_cost_as_much_the_tightest_is_taken_by_all_that_could_leave() -> None:
    """The first block has another node, whose more important work could leave too."""
    one, other, high = running("one", ["n1"], 4), running("other", ["n3"], 4), running("high", ["n2"], 4, priority=3)
    blocks = {"s1": {"b1": ["n1", "n2"], "b2": ["n3"]}}
    assert Outcome(cluster_file(blocks, 4, [one, other, high, JOB])).evicted == ["other-0"]
