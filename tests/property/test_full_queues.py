"""Room and quota made for a gang in one block, within budgets, against every set of victims on small clusters."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.depth import sampled
from tests.support.gathering import Outcome, cluster_file, running, waiting

CORES = 4
BLOCKS = {"b0": ["n0", "n1"], "b1": ["n2", "n3"], "b2": ["n4"]}
NODES = [node for nodes in BLOCKS.values() for node in nodes]
#: Of each task that runs its node, cores, queue and priority; the gang's is 10.
RUNNING = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(1, 3), st.sampled_from("aab"), st.sampled_from([1, 2, 3, 50])),
    min_size=1, max_size=8,
)  # fmt: skip
Task = tuple[str, int, str, int]
#: How many tasks may go of those that have each label.
BUDGETS = st.fixed_dictionaries({"x": st.integers(0, 3), "y": st.integers(0, 3)})


@given(RUNNING, st.integers(1, 4), st.integers(1, 3), st.integers(0, 24), st.sampled_from(["block", None]), BUDGETS)
@settings(max_examples=sampled(150), deadline=None)
def test_a_gang_gets_room_and_quota_where_any_set_of_victims_gives_both(
    runs: list[Task], tasks: int, cores: int, most: int, level: str | None, budgets: dict[str, int]
) -> None:
    free = dict.fromkeys(NODES, CORES)
    kept: list[Task] = []
    for node, held, queue, priority in runs:
        if free[node] >= held:
            free[node] -= held
            kept.append((node, held, queue, priority))
    groups = [running(f"v{at}", [node], cpu, priority=pri, queue=of) for at, (node, cpu, of, pri) in enumerate(kept)]
    for at, group in enumerate(groups):
        group["tasks"][0]["labels"] = {"app": "xy"[at % 2]}
    job = waiting("job", [cores] * tasks, priority=10, queue="a", topology={"required": level} if level else {})
    queues = [{"name": "a", "deserved": {"cpu": most}, "capability": {"cpu": most}}, {"name": "b"}]
    limits = [
        {"name": name, "namespace": "default", "match_labels": {"app": name}, "disruptions_allowed": allowed}
        for name, allowed in budgets.items()
    ]
    file = cluster_file({"s": BLOCKS}, CORES, [*groups, job], queues=queues, disruption_budgets=limits)
    file["policy"]["actions"] = ["allocate", "preempt"]
    found = Outcome(file)
    gone = {int(name.removeprefix("v").partition("-")[0]) for name in found.evicted}
    domains = list(BLOCKS.values()) if level else [NODES]
    lawful = [some for some in _sets(kept) if all(sum("xy"[at % 2] == of for at in some) <= budgets[of] for of in "xy")]
    working = [some for some in lawful if _works(kept, some, free, domains, tasks, cores, found, most)]
    assert bool(working) == bool(found.nominated or found.bound)
    if working:
        assert gone in working
        assert not any(some < gone for some in working)
        assert _highest(kept, gone) == min(_highest(kept, some) for some in working)


def _sets(kept: list[Task]) -> Iterator[set[int]]:
    may = [at for at, (_, _, queue, priority) in enumerate(kept) if queue == "a" and priority < 10]
    return (set(some) for many in range(len(may) + 1) for some in combinations(may, many))


def _highest(kept: list[Task], some: set[int]) -> int:
    return max((kept[at][3] for at in some), default=0)


def _works(
    kept: list[Task], gone: set[int], free: dict[str, int], domains: list[list[str]], tasks: int, cores: int,
    found: Any, most: int,
) -> bool:  # fmt: skip
    """Whether the queue is within its quota without some tasks, and one of the domains takes the gang."""
    limit = min(most, found.fair_share["a"]["cpu"])
    used = sum(held for at, (_, held, queue, _) in enumerate(kept) if queue == "a" and at not in gone)
    room = dict(free)
    for at in gone:
        room[kept[at][0]] += kept[at][1]
    return used + tasks * cores <= limit and any(
        sum(room[node] // cores for node in domain) >= tasks for domain in domains
    )
