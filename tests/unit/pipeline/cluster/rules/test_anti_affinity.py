"""Anti-affinity in a fleet that has no node: all are lost, or none is known yet."""

from typing import Any

import pytest

from tests.support.small_clusters import played, world


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "zone"])
def test_a_podgroup_whose_tasks_repel_each_other_waits_where_there_is_no_node(profile: str, key: str) -> None:
    """The nodes of tasks were looked up among none, and the cycle failed."""
    apart: dict[str, Any] = {"pod_anti_affinity": [{"topology_key": key, "match_labels": {"app": "x"}}]}
    tasks = [{"name": f"w-{at}", "request": {}, **said} for at, said in enumerate(({"labels": {"app": "x"}}, apart))]
    waits = {"name": "w", "queue": "q", "priority": 9, "tasks": tasks}
    assert not any(cycle[kind] for cycle in played(world({}, {"q": {}}, [waits], profile=profile), 2) for kind in cycle)
