"""Sets of victims that are refused at once for a gang in parts: the same harm as if fewer had been tried as well."""

from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.gather import victims
from pipeline.solvers.gather.victims import harm_of
from tests.support.depth import sampled
from tests.support.gathering import cluster_file, running, spines

#: Of each podgroup how many nodes it holds, how many cores of each, its priority, and whether all its tasks are needed.
GROUPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.booleans()), max_size=10)
#: Of each part of the gang the cores of its tasks, and the layer of which it needs one domain.
PARTS = st.lists(
    st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from(["block", "block", "spine"])),
    min_size=1, max_size=3,
)  # fmt: skip


def cluster(made: tuple[Any, dict[str, int]], groups: list[Any], parts: list[Any]) -> dict[str, Any]:
    tree, cores = made
    free, work = dict(cores), list[dict[str, Any]]()
    for at, (many, cpu, priority, rigid) in enumerate(groups):
        on = [node for node in free if free[node] >= cpu][at % 2 :][:many]
        free |= {node: free[node] - cpu for node in on}
        least = len(on) if rigid else 0
        work += [running(f"v{at}", on, cpu, priority=priority, min_available=least)] if on else []
    tasks = [
        {"name": f"p{part}-{at}", "subgroup": f"p{part}", "request": {"cpu": cpu}}
        for part, (sizes, _) in enumerate(parts)
        for at, cpu in enumerate(sizes)
    ]
    subgroups = [
        {"name": f"p{part}", "min_available": len(sizes), "topology": {"required": inner}}
        for part, (sizes, inner) in enumerate(parts)
    ]
    gang = {"name": "gang", "queue": "default", "priority": 9, "phase": "Inqueue", "min_available": len(tasks),
            "subgroups": subgroups, "tasks": tasks, "topology": {"required": "spine"}}  # fmt: skip
    return cluster_file(tree, cores, [*work, gang])


@given(spines(), GROUPS, PARTS)
@settings(max_examples=sampled(150), deadline=None)
def test_the_same_harm_as_if_no_set_of_victims_were_refused_at_once(
    made: tuple[Any, dict[str, int]], groups: list[Any], parts: list[Any]
) -> None:
    case = open_case(cluster(made, groups, parts))
    attempt = Attempt(
        case.snapshot, case.policy, Purpose.PREEMPT, (len(case.snapshot.podgroups) - 1,), None, case.now, "preempt"
    )
    found = propose(attempt)
    with patch.object(victims, "_may_gather", return_value=True):
        tried = propose(attempt)
    assert isinstance(found, Plan) == isinstance(tried, Plan)
    if isinstance(found, NoPlan) or isinstance(tried, NoPlan):
        return
    assert harm_of(found.price) <= harm_of(tried.price)
