"""Groups of a gang in regions: what is not tried since it would fail again."""

import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout.settled_groups import no_groups_placed, settled
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import need_of
from tests.support.placing import BLOCK, NOWHERE, RACK, Work, placed
from tests.support.twins import uncompiled

#: One for each block, two for the parts that fit in the first one, three in the second.
_TRIALS = 7


def _found(trials: int) -> bool:
    """Whether a gang of three parts of two cores, which need a rack each, is placed in the block with three such racks.

    The block with two of them comes first, since it has fewer slots.
    """
    work, parts = [Work(0, subgroup=1 + at // 2) for at in range(6)], [(0, NONE, 0, BLOCK), *[(0, 0, 2, RACK)] * 3]
    racks = [2, 2, 1, 1, 2, 2, 2, 1]
    snapshot = placed(racks, work, racks=[1] * 8, racks_a_block=4, groups=[{"min_available": 6}], subgroups=parts)
    need = need_of(snapshot, (0,))
    packing = Packings(need, allowed(snapshot, need.shapes), snapshot).on(0, len(racks))
    outline = packing._outline
    assert outline is not None
    room, before = packing._room(snapshot.room.future, NOWHERE), no_groups_placed(outline.tree, packing._asked_of_room)
    return len(settled(outline.tree, room, trials, before)[0]) > 0


@pytest.mark.parametrize("trials", [_TRIALS, _TRIALS - 1])
def test_parts_that_ask_for_the_same_are_not_tried_in_another_order(trials: int) -> None:
    with uncompiled():
        assert _found(trials) == (trials == _TRIALS)
    assert _found(trials) == (trials == _TRIALS)
