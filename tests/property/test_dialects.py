"""A cluster that is written as manifests of a scheduler, imported and simulated, decides as its cluster file does."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.imports.kubernetes.manifests import cluster_of
from tests.support.depth import sampled
from tests.support.dialects import SCHEDULERS, cluster_file, drawn, manifests
from tests.support.simulating import simulate

SEEDS = range(sampled(12, least=8))


def decided(document: dict[str, Any], profile: str) -> list[dict[str, Any]]:
    """What each of three cycles does, as sets."""
    result = simulate(document, 3, profile)
    assert result["error"] is None, result["error"]
    kinds = ("evictions", "nominations", "bindings")
    return [
        {kind: sorted((one["task"], str(one.get("node"))) for one in cycle[kind]) for kind in kinds}
        for cycle in result["cycles"]
    ]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_manifests_decide_as_the_cluster_file_that_says_the_same(scheduler: str, tmp_path: Path) -> None:
    profile, evicting = SCHEDULERS[scheduler][0], 0
    for seed in SEEDS:
        small, file = drawn(seed, scheduler), tmp_path / f"{seed}.yaml"
        file.write_text(yaml.safe_dump_all(manifests(small, scheduler)), encoding="utf-8")
        imported, _, findings = cluster_of([file])
        assert [str(one) for one in findings] == []
        expected = decided(cluster_file(small, scheduler), profile)
        assert decided(imported, profile) == expected, seed
        evicting += any(cycle["evictions"] for cycle in expected)
    assert evicting >= len(SEEDS) // 4
