"""Instances of the optimality benchmark that were once far off: what is chosen costs the proven least."""

import pytest

from actors.benchmarks.optimality import compare


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        (44, "roles"),  # one task of surplus instead of a podgroup of 20
        (84, "roles"),  # two small podgroups and surplus of a higher priority instead of a wide one
        (92, "two shapes"),
    ],
)
def test_what_is_chosen_costs_the_least(seed: int, kind: str) -> None:
    found = compare(seed)
    assert found is not None
    assert found.kind == kind
    assert found.least is not None
    assert found.chosen == pytest.approx(found.least, abs=1e-5)
