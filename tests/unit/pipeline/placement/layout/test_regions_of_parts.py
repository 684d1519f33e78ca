"""Whether regions may hold parts of several shapes together, against every way to place the parts."""

from itertools import product

import numpy as np
import pytest

from pipeline.placement.layout.regions_of_parts import _may_hold_together


@pytest.mark.parametrize("seed", range(60))
def test_regions_may_hold_parts_where_there_is_a_way_to_place_them(seed: int) -> None:
    """Slots of two shapes, and what there is of the scarcest resource; the last part asks for nothing."""
    rng = np.random.default_rng(seed)
    part = rng.integers(1, 4, (rng.integers(2, 5), 3))
    part[1] = part[0] if seed % 2 else part[1]
    have = np.array([part[rng.random(len(part)) < 0.6].sum(axis=0) for _ in range(3)]).T
    have = np.maximum(have + rng.integers(-1, 2, have.shape), 0)

    def holds(where: tuple[int, ...]) -> bool:
        taken = np.zeros(have.shape, int)
        np.add.at(taken.T, np.array(where), part)
        return bool((taken <= have).all())

    found = _may_hold_together(have, np.vstack([part, np.zeros((1, 3), int)]))
    assert found is any(map(holds, product(range(3), repeat=len(part))))
