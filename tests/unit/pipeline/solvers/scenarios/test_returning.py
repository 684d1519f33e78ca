"""The return of units one after the other, where only a placement says whether the preemptor still fits."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout.topology_packing import Packing
from pipeline.placement.need import need_of
from pipeline.solvers.scenarios.returning import _back_by_halves
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits
from tests.support.placing import NOWHERE, RACK, Work, placed


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(0, 20), st.data())
def test_units_are_given_up_only_where_more_stay_gone_than_may(
    sizes: list[int], asked: int, data: st.DataObject
) -> None:
    """Each unit is a task that holds so much, and the preemptor fits if those that go hold what it asks for."""
    each = np.arange(len(sizes))
    units = VictimUnits(each, np.arange(len(sizes) + 1), each, each >= 0, each)
    tested = list[bytes]()

    def fits(rows: Rows) -> bool:
        tested.append(rows.tobytes())
        return int(np.array(sizes)[rows].sum()) >= asked

    scenario: Any = SimpleNamespace(law=SimpleNamespace(takes=lambda _: True), ground=SimpleNamespace(fits=fits))
    order, most = np.array(data.draw(st.permutations(range(len(sizes))))), data.draw(st.integers(0, len(sizes)))
    whole = _back_by_halves(scenario, units, each, order, None)
    many = len(tested)
    tested.clear()
    some = _back_by_halves(scenario, units, each, order, most)
    assert len(tested) <= many
    if (~whole).sum() <= most:
        assert some.tolist() == whole.tolist()
    else:
        assert (~some).sum() > most


def test_whether_it_fits_without_the_same_tasks_is_found_once(monkeypatch: Any) -> None:
    work = [Work(0, cpu, subgroup=part) for part in range(2) for cpu in (1, 2)]
    subgroups = [(0, NONE, 2, RACK)] * 2
    groups = [{"min_available": 4}, {}]
    snapshot = placed([3, 3], [*work, Work(1, node=0)], racks=[1, 1], groups=groups, subgroups=subgroups)
    need, found = need_of(snapshot, (0,)), list[bool]()
    ground = NodeSlice(snapshot, need, allowed(snapshot, need.shapes), 0, 0, 2)
    assert not ground.plain
    places = Packing.places

    def counted(self: Packing, *given_to: Any) -> Rows | None:
        made = places(self, *given_to)
        found.append(made is not None)
        return made

    monkeypatch.setattr(Packing, "places", counted)
    runs = np.flatnonzero(snapshot.tasks.node != NONE)
    assert [ground.fits(runs), ground.fits(runs), ground.fits(NOWHERE), ground.fits(runs)] == [True, True, False, True]
    assert found == [True]  # without any the slots do not suffice
