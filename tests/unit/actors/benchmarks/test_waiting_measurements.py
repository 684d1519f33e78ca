"""The benchmark of many small podgroups that starve, on a small fleet."""

import pytest

from actors.benchmarks import waiting_measurements
from actors.benchmarks.waiting_measurements import WAITING_MEASUREMENTS


@pytest.mark.parametrize("name", WAITING_MEASUREMENTS)
def test_each_podgroup_gets_a_plan_whatever_the_kinds_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_measurements, "_NODES", 5)
    also = WAITING_MEASUREMENTS[name]().also
    assert {also[f"{one}_plans"] for one in ("one_kind", "kinds", "launcher")} == {40}
