"""Regions that are refused for parts of a gang before these are placed: the same places as if none were refused."""

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.configuration.profiles import load_profile
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.statement import Statement
from pipeline.placement.layout.by_score import gang_allocation
from pipeline.placement.layout.by_score.part_placer import PartPlacer
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.records import replace
from tests.support.grouped_gangs import APART, with_cards
from tests.support.placing import ANYWHERE, BLOCK, RACK, Work, placed

POLICIES = {name: load_profile(name) for name in ("default", "kai", "volcano")}


@st.composite
def gangs(draw: st.DrawFn) -> Snapshot:
    """A gang of subgroups in each other that may have more tasks than they need; some of them may run already."""
    racks = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    nodes = sum(racks)
    cores = draw(st.lists(st.integers(0, 6), min_size=nodes, max_size=nodes))
    many, repels = draw(st.integers(1, 4)), draw(st.booleans())
    levels, parts = st.sampled_from([NONE, BLOCK, RACK, RACK]), st.integers(NONE, many - 1)
    parents = [draw(st.integers(NONE, part - 1)) for part in range(many)]
    leaves = [part for part in range(many) if part not in parents]
    constraints = st.sampled_from([ANYWHERE, *APART] if repels else [ANYWHERE])
    labels = st.sampled_from([(("app", "a"),), (("app", "b"),)] if repels else [()])
    where = st.sampled_from([NONE, NONE, NONE, NONE, draw(st.integers(0, nodes - 1))])
    tasks = draw(st.lists(st.tuples(st.sampled_from([1, 1, 2, 4]), parts, constraints, labels, where), max_size=14))
    work = [
        Work(0, cpu, node=node, subgroup=part if part in leaves else NONE, constraint=one, labels=said)
        for cpu, part, one, said, node in [(1, leaves[0], ANYWHERE, (), NONE), *tasks]
    ]
    have = Counter(task.subgroup for task in work)
    tree = [
        (0, parents[part], draw(st.integers(max(have[part] - 2, 0), have[part])) if part in leaves else 0, draw(levels))
        for part in range(many)
    ]
    wanted = st.sampled_from([NONE, NONE, NONE, 1, 2])
    top = {"min_available": draw(st.integers(0, len(work))), "min_subgroups": draw(wanted)}
    top |= {"required_level": draw(st.sampled_from([NONE, NONE, BLOCK])), "preferred_level": NONE}
    others = [Work(1, draw(st.integers(1, 3)), node=node) for node in draw(st.sets(st.integers(0, nodes - 1)))]
    zones = [{"zone": str(node // 2)} for node in range(nodes)]
    snapshot = placed(
        cores, [*work, *others], racks=racks, racks_a_block=2, groups=[top, {}], subgroups=tree, labels=zones
    )
    preferred = frozen(draw(st.lists(st.sampled_from([NONE, NONE, RACK]), min_size=many, max_size=many)), np.int32)
    inner = frozen([draw(wanted) if part not in leaves else NONE for part in range(many)], np.int32)
    subgroups = replace(snapshot.subgroups, preferred_level=preferred, min_subgroups=inner)
    snapshot = replace(snapshot, subgroups=subgroups)
    return with_cards(draw, snapshot) if draw(st.booleans()) else snapshot


def put(snapshot: Snapshot, policy: str, limit: int | None) -> Statement | None:
    host = Host(Context(snapshot, POLICIES[policy], 0.0))
    return gang_allocation.allocate_by_score(host, (0,), "allocate", surplus_limit=limit)


def said(made: Statement | None) -> str:
    return repr(made)


@given(gangs(), st.sampled_from([*POLICIES]), st.sampled_from([None, None, 0, 2]))
def test_a_gang_goes_where_it_goes_if_no_region_is_refused_beforehand(
    snapshot: Snapshot, policy: str, limit: int | None
) -> None:
    made = put(snapshot, policy, limit)
    with (
        patch.object(gang_allocation, "_asked_at_least", lambda *_: None),
        patch.object(PartPlacer, "_hopeful", lambda _self, _part, regions: regions),
    ):
        tried = put(snapshot, policy, limit)
    assert said(made) == said(tried)


@pytest.mark.parametrize("policy", ["default", "kai"])
def test_no_part_is_tried_where_regions_are_too_few(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Racks hold two parts of the three, though there are slots for all of them."""
    racks = [2, 2, 2]
    work = [Work(0, subgroup=part) for part in range(3) for _ in range(3)]
    subgroups = [(0, NONE, 3, RACK)] * 3
    groups = [{"min_available": 9, "required_level": BLOCK}]
    snapshot = placed([3, 2, 2, 1, 1, 1], work, racks=racks, racks_a_block=3, groups=groups, subgroups=subgroups)
    tried = list[int]()
    monkeypatch.setattr(PartPlacer, "place_inside", lambda _self, part, *_, **__: tried.append(part))
    assert put(snapshot, policy, None) is None
    assert tried == []
