"""What a pod asks for is counted as Kubernetes' scheduler counts it."""

from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.fields import Fields, Manifest
from actors.imports.kubernetes.requests import request_of


def request(spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
    about = Fields(Manifest("f", 0, (), "", "Pod", {}), {"spec": spec, "status": status or {}}, (), [])
    return request_of(about.inside("spec"), about.inside("status"))


def container(name: str = "c", limits: dict[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests, "limits": limits or {}}}


def sidecar(**requests: Any) -> dict[str, Any]:
    return {**container("s", **requests), "restartPolicy": "Always"}


def test_containers_add_up_and_overhead_comes_on_top() -> None:
    spec = {"containers": [container(cpu="500m", memory="1Gi"), container(cpu=1)], "overhead": {"cpu": "250m"}}
    assert request(spec) == {"cpu": "1750m", "memory": 1 << 30}


def test_an_init_container_counts_where_it_needs_more_than_all_containers() -> None:
    spec = {"initContainers": [container(cpu=4), container(cpu=3, memory=5)], "containers": [container(cpu=2)]}
    assert request(spec) == {"cpu": 4, "memory": 5}


def test_a_sidecar_runs_beside_the_containers_and_the_init_containers_after_it() -> None:
    before = {"initContainers": [container(cpu=4), sidecar(cpu=1)], "containers": [container(cpu=2)]}
    after = {"initContainers": [sidecar(cpu=1), container(cpu=4)], "containers": [container(cpu=2)]}
    assert request(before) == {"cpu": 4}
    assert request(after) == {"cpu": 5}
    assert request({"initContainers": [sidecar(cpu=1), sidecar(cpu=2)], "containers": [container(cpu=2)]}) == {"cpu": 5}


def test_a_limit_without_a_request_is_one_and_extended_resources_count() -> None:
    limits = {"nvidia.com/gpu": "2", "cpu": 3}
    assert request({"containers": [container(limits=limits, cpu=1)]}) == {"nvidia.com/gpu": 2, "cpu": 1}


def test_amounts_of_the_pod_itself_replace_those_of_its_containers() -> None:
    spec = {
        "containers": [container(cpu=1, memory=8, **{"nvidia.com/gpu": 1})],
        "resources": {"requests": {"cpu": 6}, "limits": {"memory": 4}},
        "overhead": {"memory": 1},
    }
    assert request(spec) == {"cpu": 6, "memory": 9, "nvidia.com/gpu": 1}


def test_while_a_resize_is_under_way_the_greater_amount_counts() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": 3, "memory": 1}}]}
    assert request({"containers": [container(cpu=2, memory=4)]}, status) == {"cpu": 3, "memory": 4}


def test_a_fraction_of_a_device_is_refused_with_its_path() -> None:
    with pytest.raises(ClusterFileRefused, match=r"spec\.containers\[0\]\.resources\.requests\.nvidia\.com/gpu"):
        request({"containers": [container(**{"nvidia.com/gpu": "500m"})]})
