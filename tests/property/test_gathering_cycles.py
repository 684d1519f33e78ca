"""Profile ``koordinator`` over several cycles of small random clusters: rooms, layers, judgement and rest."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import answered, open_case
from pipeline.cycle import cycle
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from tests.support.deciding import overfull, torn
from tests.support.depth import sampled
from tests.support.gathering import cluster_file, running, spines, waiting

LAYERS = (
    {}, {"required": "block"}, {"required": "spine"}, {"preferred": "block"}, {"preferred": "spine"},
    {"required": "spine", "preferred": "block"},
)  # fmt: skip


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    """Spines of blocks of nodes, queues with quotas, gangs that run on them, and some that wait, also together."""
    tree, cpus = draw(spines(most=2, cores=(2, 8)))
    queues = [
        {"name": "default"},
        {"name": "a", "deserved": {"cpu": draw(st.integers(0, 10))}, "weight": draw(st.integers(0, 3))},
        {"name": "b", "deserved": {"cpu": draw(st.integers(0, 10))}, "capability": {"cpu": draw(st.integers(10, 30))}},
    ]
    queue = st.sampled_from([one["name"] for one in queues])
    left, groups = dict(cpus), []
    for at in range(draw(st.integers(0, 7))):
        on, cpu = [], draw(st.integers(1, 3))
        for node in draw(st.lists(st.sampled_from(sorted(cpus)), min_size=1, max_size=4)):
            if left[node] >= cpu:
                left[node] -= cpu
                on.append(node)
        if on:
            said = {"priority": draw(st.integers(1, 5)), "min_available": draw(st.integers(1, len(on)))}
            groups.append(running(f"r{at}", on, cpu, queue=draw(queue), **said))
            groups[-1]["tasks"][0]["status"] = draw(st.sampled_from(["Running", "Running", "Running", "Terminating"]))
    for at in range(draw(st.integers(1, 3))):
        alike = draw(st.booleans())
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
        sizes = sizes[:1] * len(sizes) if alike else sizes
        job = waiting(f"w{at}", sizes, priority=draw(st.integers(1, 9)), queue=draw(queue))
        job |= {"topology": draw(st.sampled_from(LAYERS)), "min_available": draw(st.integers(1, len(sizes)))}
        groups.append(job)
    jobs = [one for one in groups if one["phase"] == "Inqueue"][: draw(st.integers(1, 3))]
    for job in jobs if len(jobs) > 1 else ():  # in one queue or in several
        job["gang_group"] = [f"default/{one['name']}" for one in jobs]
    return cluster_file(tree, cpus, groups, queues=queues)


@given(clusters())
@settings(max_examples=sampled(80), deadline=None)
def test_every_plan_holds_and_after_some_cycles_nothing_is_evicted_any_more(document: dict[str, Any]) -> None:
    case = open_case(document)
    snapshot, evicted = case.snapshot, []
    for _ in range(6):
        done = cycle(snapshot, case.policy, case.now)
        for plan in done.plans[:1]:
            verdict = judge(plan, snapshot, case.policy, case.now)
            assert isinstance(verdict, Accepted), verdict
            assert verdict.dropped == 0
        assert overfull(done.snapshot) == []
        assert torn(done.snapshot) == set()
        evicted.append(sum(len(made.evictions) for made in done.statements))
        snapshot = answered(done, case.now)
    assert evicted[-1] == 0
