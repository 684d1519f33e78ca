"""Which candidates stay where the tasks of a gang differ, so that slots do not decide."""

from typing import Any

from actors.cli.simulate import simulate


def runs(name: str, cores: int) -> dict[str, Any]:
    task = {"name": name, "request": {"cpu": cores}, "status": "Running", "node": "n"}
    return {"name": name, "queue": "q", "min_available": 0, "tasks": [task]}


def test_a_candidate_stays_although_the_one_before_it_has_to_go() -> None:
    """The gang asks for four cores and two of eight: the middle task is enough, the smallest returns after it."""
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": "koordinator"}, "queues": [{"name": "q"}],
            "nodes": [{"name": "n", "allocatable": {"cpu": 8, "memory": "8Gi", "pods": 110}}],
            "podgroups": [
                runs("small", 1), runs("middle", 4),
                {
                    "name": "gang", "queue": "q", "priority": 1, "min_available": 2,
                    "tasks": [{"name": f"gang-{cores}", "request": {"cpu": cores}} for cores in (4, 2)],
                },
            ],
        }
    )  # fmt: skip
    assert [one["task"] for one in found["cycles"][0]["evictions"]] == ["default/middle"]
    assert len(found["cycles"][0]["nominations"]) == 2
