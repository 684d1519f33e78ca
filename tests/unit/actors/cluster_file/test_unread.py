"""What nobody reads yet is refused and not ignored."""

from typing import Any

import pytest

from actors.cli.simulate import simulate
from actors.cluster_file.reader import ClusterFileRefused, read_cluster
from tests.support.clusters import changed


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "policy.placement",
            "spread",
            'policy.placement: placement is not supported yet: expected none, found "spread"',
        ),
        ("queues.1.over_quota_weight", 1.0, "queues[1].over_quota_weight: over_quota_weight is not supported yet"),
    ],
)
def test_a_key_that_nobody_reads_is_refused_where_it_stands(path: str, value: Any, sentence: str) -> None:
    with pytest.raises(ClusterFileRefused) as refused:
        read_cluster(changed(path, value))
    assert str(refused.value).startswith(sentence)


def test_a_profile_that_is_to_come_is_refused_as_a_whole() -> None:
    document = changed("policy.placement", "spread")
    document["policy"]["profile"] = "kai"
    assert simulate(document)["error"] == "policy.profile: 'kai' is not supported yet"
