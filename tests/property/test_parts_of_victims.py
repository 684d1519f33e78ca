"""What the solver `scenarios` relies on: plugins that say so accept every part of a set of victims that they accept."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from actors.configuration.profiles import load_profile
from pipeline.cluster.tables import RUNNING
from pipeline.errors import PolicyRefused
from pipeline.plugins.extension_points import ValidatesVictims
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.plugins.registry import PLUGINS
from pipeline.policy import Purpose
from pipeline.solvers.scenarios.asking import asked_for

GPU = "nvidia.com/gpu"
#: Plugins that judge sets, with arguments under which they refuse some.
JUDGES: dict[str, dict[str, object]] = {
    "fairshare": {}, "minruntime": {"elastic": True}, "pdb": {},
    "evictionbudget": {"at_once": 3, "ratio": 1.5, "breaks": 1},
}  # fmt: skip
#: Plugins by which more victims may be lawful where fewer are not: what goes keeps their ceilings.
CEILINGS = "capacity", "elasticquota", "proportion"
COUNT = st.integers(0, 4)


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, object]:
    """Two departments with queues that run up to three podgroups each, and a podgroup that waits in one of them."""
    queues: list[dict[str, object]] = [{"name": name, "deserved": {GPU: draw(COUNT)}} for name in ("x", "y")]
    leaves = [("x1", "x"), ("y1", "y"), ("y2", "y")]
    queues += [
        {
            "name": name,
            "parent": parent,
            "deserved": {GPU: draw(COUNT)},
            "reclaim_min_runtime": draw(st.sampled_from([0, 50])),
        }
        for name, parent in leaves
    ]
    groups = []
    for at in range(draw(st.integers(1, 4))):
        sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
        tasks = [
            {
                "name": f"r{at}-{one}",
                "request": {"cpu": 1, GPU: size},
                "status": "Running",
                "node": "n",
                "labels": {"a": "b"},
            }
            for one, size in enumerate(sizes)
        ]
        groups.append({
            "name": f"r{at}", "queue": draw(st.sampled_from(["x1", "y1", "y2"])), "phase": "Running",
            "min_available": draw(st.integers(1, len(sizes))), "created": float(at), "tasks": tasks,
            "started": draw(st.sampled_from([10.0, 90.0])),
        })  # fmt: skip
    waiting = {"name": "w-0", "request": {"cpu": 1, GPU: draw(st.integers(1, 4))}}
    groups.append({"name": "w", "queue": "x1", "phase": "Inqueue", "tasks": [waiting]})
    return {
        "version": 1, "now": 100.0, "policy": {"profile": "kai"},
        "nodes": [{"name": "n", "allocatable": {"cpu": 99, GPU: 12, "pods": 99}}], "queues": queues,
        "podgroups": groups,
        "disruption_budgets": [{"name": "b", "match_labels": {"a": "b"}, "disruptions_allowed": draw(COUNT)}],
    }  # fmt: skip


@pytest.mark.parametrize("name", JUDGES)
@given(document=clusters())
def test_every_part_of_an_accepted_set_is_accepted(name: str, document: dict[str, object]) -> None:
    document = document | {
        "policy": {"profile": "kai", "tiers": [[{"name": name, "enabled": {"*": True}, "arguments": JUDGES[name]}]]}
    }
    case = open_case(document)
    host = Host(Context(case.snapshot, case.policy, case.now))
    waiting = len(case.snapshot.podgroups) - 1
    preemptor = Preemptor((waiting,), asked_for(host, (waiting,)).total, Purpose.RECLAIM)
    tasks, queue = case.snapshot.tasks, case.snapshot.podgroups.queue
    others = queue[tasks.podgroup] != queue[waiting]
    rows = np.flatnonzero((tasks.status == RUNNING) & others)[:6]
    accepted = {
        some: host.validate_set(preemptor, np.array(some, np.int64))
        for many in range(len(rows) + 1)
        for some in combinations(rows.tolist(), many)
    }
    for some, lawful in accepted.items():
        if lawful:
            assert all(accepted[tuple(row for row in some if row != one)] for one in some), some


def test_every_plugin_that_judges_sets_is_asked_here_or_says_that_parts_may_not_do() -> None:
    judges = {name for name, plugin in PLUGINS.items() if ValidatesVictims in plugin.__mro__}
    assert judges - set(CEILINGS) == set(JUDGES)
    assert not any(PLUGINS[name].ACCEPTS_PARTS for name in CEILINGS)


@pytest.mark.parametrize("plugin", CEILINGS)
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_a_ceiling_beside_scenarios_is_refused_with_the_key(plugin: str, action: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "mine.toml"
    path.write_text(
        f'actions = ["allocate", "{action}"]\nsolvers = {{ {action} = "scenarios" }}\n[[plugins]]\nname = "{plugin}"\n'
    )
    with pytest.raises(PolicyRefused, match=rf"policy\.solvers\.{action}: expected another solver .*{plugin}"):
        load_profile(str(path))
    path.write_text(path.read_text().replace(action, "consolidation"))
    assert load_profile(str(path)).solver("consolidation") == "scenarios"
