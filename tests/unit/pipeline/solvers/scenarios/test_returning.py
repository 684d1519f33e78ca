"""The return of units one after the other, where only a placement says whether the preemptor still fits."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.rules.constraints import allowed
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.topology_packing import Packing
from pipeline.placement.need import need_of
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.records import replace
from pipeline.solvers.scenarios.returning import _back_by_halves
from pipeline.solvers.scenarios.slices.halves import Spare
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits
from tests.support.grouped_gangs import crowded
from tests.support.placing import NOWHERE, RACK, Work, placed
from tests.support.twins import uncompiled


def by_halves(scenario: Any, units: VictimUnits, leaving: Rows, order: Rows, most: int) -> list[bool]:
    """The same search, which asks about every return."""
    back, gone, todo = np.ones(len(units), bool), 0, [order]
    back[order] = False
    while todo and gone <= most:
        some = todo.pop()
        tried = back.copy()
        tried[some] = True
        rest = leaving[~np.isin(leaving, units.rows_of(tried))]
        if len(rest) and scenario.law.takes(rest) and scenario.ground.fits(rest):
            back = tried
        elif len(some) > 1:
            todo += [some[len(some) // 2 :], some[: len(some) // 2]]
        else:
            gone += 1
    answer: list[bool] = back.tolist()
    return answer


@given(crowded(), st.data())
def test_units_return_as_if_every_return_were_asked_about(
    given_snapshot: tuple[Snapshot, Rows], data: st.DataObject
) -> None:
    """Also where the queue may not take all, where others leave as well, and where few may stay gone."""
    snapshot, _ = given_snapshot
    runs = np.flatnonzero(snapshot.tasks.node != NONE)
    need, nodes = need_of(snapshot, (0,)), len(snapshot.nodes)
    first = data.draw(st.integers(0, nodes - 1))
    slices = NodeSlice(CountedNeed(snapshot, need, allowed(snapshot, need.shapes), runs), 0, first, nodes)
    keeping = replace(slices, keeps=True)
    rows = np.array(data.draw(st.permutations(runs.tolist())), np.int64)
    apart = data.draw(st.integers(0, len(runs)))  # these leave, and are in no unit
    own = rows[apart:]
    ends = [at for at in range(1, len(own)) if data.draw(st.booleans())]
    start = np.array([0, *ends, len(own)] if len(own) else [0], np.int64)
    each = np.arange(len(start) - 1)
    units = VictimUnits(own, start, each, each >= 0, each)
    some = data.draw(st.integers(0, len(units)))
    leaving = np.concatenate([rows[:apart], own[: start[some]]])
    order = np.array(data.draw(st.permutations(range(some))), np.int64)
    least, most = data.draw(st.integers(0, 3)), data.draw(st.integers(0, len(runs)))
    spare = Spare(np.array([len(leaving) - least]), np.diff(units.start)[None]) if data.draw(st.booleans()) else None
    asked: Any = SimpleNamespace(law=SimpleNamespace(takes=lambda rest: len(rest) >= least), ground=slices)
    law = SimpleNamespace(takes=lambda rest: spare is not None or len(rest) >= least, spare=lambda *_: spare)
    expected = by_halves(asked, units, leaving, order, most)
    with uncompiled():
        anew: Any = SimpleNamespace(law=law, ground=replace(slices))
        assert _back_by_halves(anew, units, leaving, order, most).tolist() == expected
    anew = SimpleNamespace(law=law, ground=replace(slices))
    assert _back_by_halves(anew, units, leaving, order, most).tolist() == expected
    last = by_halves(asked, units, leaving, order, 99)
    assert _back_by_halves(anew, units, leaving, order, None).tolist() == last
    if len(leaving) and slices.fits(leaving):
        assert not slices.too_few_return(units.first(some), leaving, some - sum(last[:some]))
        kept: Any = SimpleNamespace(law=law, ground=keeping)
        back = _back_by_halves(kept, units, leaving, order, None)
        rest = leaving[~np.isin(leaving, units.rows_of(back))]
        assert sum(back) >= sum(last) or slices.fits(rest)


def test_whether_it_fits_without_the_same_tasks_is_found_once(monkeypatch: Any) -> None:
    work = [Work(0, cpu, subgroup=part) for part in range(2) for cpu in (1, 2)]
    subgroups = [(0, NONE, 2, RACK)] * 2
    groups = [{"min_available": 4}, {}]
    snapshot = placed([3, 3], [*work, Work(1, node=0)], racks=[1, 1], groups=groups, subgroups=subgroups)
    need, found = need_of(snapshot, (0,)), list[bool]()
    runs = np.flatnonzero(snapshot.tasks.node != NONE)
    ground = NodeSlice(CountedNeed(snapshot, need, allowed(snapshot, need.shapes), runs), 0, 0, 2)
    assert not ground.plain
    finds = Packing.finds

    def counted(self: Packing, *given_to: Any) -> bool:
        found.append(finds(self, *given_to))
        return found[-1]

    monkeypatch.setattr(Packing, "finds", counted)
    assert [ground.fits(runs), ground.fits(runs), ground.fits(NOWHERE), ground.fits(runs)] == [True, True, False, True]
    assert found == [True]  # without any the slots do not suffice
