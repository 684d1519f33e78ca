"""What `clearway bench` measures of fleets in which more than resources matter, on small ones."""

import pytest

from actors.benchmarks import mixed_measurements
from actors.benchmarks.mixed_measurements import MIXED_MEASUREMENTS


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_each_podgroup_that_starves_gets_a_plan_whatever_the_kinds_are(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixed_measurements, "_NODES", 5)
    also = MIXED_MEASUREMENTS[f"waiting_{profile}_800"]().also
    assert {also[f"{one}_plans"] for one in ("one_kind", "kinds", "launcher")} == {40}
