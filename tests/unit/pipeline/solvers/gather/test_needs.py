"""Which tasks of a gang are gathered: a task that has no place does not keep the others from theirs."""

from typing import Any

import pytest

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting


@pytest.mark.parametrize("odd", [{"node_selector": {"zone": "none"}}, {"request": {"cpu": 9}}])
@pytest.mark.parametrize("wish", [{}, {"topology": {"required": "spine"}}])
@pytest.mark.parametrize("full", [False, True])
def test_a_task_that_no_node_takes_leaves_the_minimum_to_the_others(
    odd: dict[str, Any], wish: dict[str, Any], full: bool
) -> None:
    """Also where it is the first in rank, and where room has to be made."""
    low = [running(f"low{at}", [f"n{at}"], 2) for at in range(1, 9)] if full else []
    job = waiting("job", [2, 2, 2], min_available=2, **wish)
    job["tasks"][0] |= odd
    found = Outcome(cluster_file(TWO_BY_TWO, 2, [*low, job]), 2)
    assert found.bound.keys() == {"job-1", "job-2"}
    assert len(found.evicted) == (2 if full else 0)
