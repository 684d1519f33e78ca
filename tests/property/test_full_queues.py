"""Room and quota made for a gang in one block, against every set of victims on small clusters; and within budgets."""

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
    case = _Case(runs, tasks, cores, most, level)
    for at, group in enumerate(case.groups):
        group["tasks"][0]["labels"] = {"app": "xy"[at % 2]}
    limits = [
        {"name": name, "namespace": "default", "match_labels": {"app": name}, "disruptions_allowed": allowed}
        for name, allowed in budgets.items()
    ]
    found = case.decided(disruption_budgets=limits)
    lawful = [some for some in case.sets if all(sum("xy"[at % 2] == of for at in some) <= budgets[of] for of in "xy")]
    case.check(found, lawful, min(most, found.fair_share["a"]["cpu"]))


@given(RUNNING, st.integers(1, 4), st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=sampled(400), deadline=None)
def test_a_gang_whose_queue_is_full_starts_in_its_block_wherever_quota_is_held(
    runs: list[Task], tasks: int, cores: int, missing: int
) -> None:
    most = sum(held for _, held, queue, _ in runs if queue == "a") + max(0, tasks * cores - missing)
    case = _Case(runs, tasks, cores, most, "block")
    case.check(case.decided(profile="default"), case.sets, most, exact=False)


class _Case:
    """Work that runs, each task a podgroup of its own, and a gang ``job`` that waits."""

    def __init__(self, runs: list[Task], tasks: int, cores: int, most: int, level: str | None) -> None:
        self._free, self._tasks, self._cores, self._level, self._most = (
            dict.fromkeys(NODES, CORES),
            tasks,
            cores,
            level,
            most,
        )
        self._kept: list[Task] = []
        for node, held, queue, priority in runs:
            if self._free[node] >= held:
                self._free[node] -= held
                self._kept.append((node, held, queue, priority))
        self.groups = [
            running(f"v{at}", [node], held, priority=priority, queue=queue)
            for at, (node, held, queue, priority) in enumerate(self._kept)
        ]
        may = [at for at, (_, _, queue, priority) in enumerate(self._kept) if queue == "a" and priority < 10]
        self.sets = [set(some) for many in range(len(may) + 1) for some in combinations(may, many)]

    def decided(self, profile: str = "koordinator", **more: Any) -> Outcome:
        """What a cycle decides."""
        topology = {"required": self._level} if self._level else {}
        job = waiting("job", [self._cores] * self._tasks, priority=10, queue="a", topology=topology)
        limit = {"cpu": self._most}
        queues = [{"name": "a", "deserved": limit, "capability": limit}, {"name": "b"}]
        file = cluster_file({"s": BLOCKS}, CORES, [*self.groups, job], queues=queues, **more)
        file["policy"] = {"profile": profile, "actions": ["allocate", "preempt"]}
        return Outcome(file)

    def check(self, found: Outcome, lawful: list[set[int]], limit: float, *, exact: bool = True) -> None:
        """The job gets room if a lawful set gives it; ``exact``: by a least one, of the lowest priority that does."""
        gone = {int(name.removeprefix("v").partition("-")[0]) for name in found.evicted}
        working = [some for some in lawful if self._works(some, limit)]
        assert bool(working) == bool(found.nominated or found.bound)
        if working:
            assert gone in working
        if working and exact:
            assert not any(some < gone for some in working)
            assert self._highest(gone) == min(self._highest(some) for some in working)

    def _highest(self, some: set[int]) -> int:
        return max((self._kept[at][3] for at in some), default=0)

    def _works(self, gone: set[int], limit: float) -> bool:
        """Whether the queue is within its quota without some tasks, and one of the domains takes the gang."""
        held = sum(held for at, (_, held, queue, _) in enumerate(self._kept) if queue == "a" and at not in gone)
        room = dict(self._free)
        for at in gone:
            room[self._kept[at][0]] += self._kept[at][1]
        domains = list(BLOCKS.values()) if self._level else [NODES]
        return held + self._tasks * self._cores <= limit and any(
            sum(room[node] // self._cores for node in domain) >= self._tasks for domain in domains
        )
