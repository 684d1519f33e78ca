"""What decides before any slice of nodes is searched: surplus, how far the queue must be followed, units of use."""

from itertools import pairwise

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, generate
from actors.fleets.mixed import with_subgroups
from pipeline.cluster.arrays import NONE, Rows, frozen, is_among
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING, Subgroups
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.placement.domains import domains_of
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.records import replace
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.grounds import _units_by_node, _useful
from pipeline.solvers.scenarios.slices.lead_bounds import leads
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.surplus_first import surplus_first
from pipeline.solvers.scenarios.units import victim_units
from tests.support.twins import uncompiled

SEEDS = range(8)


def divided(seed: int) -> Snapshot:
    """A small fleet with roles that bind; a tenth of the podgroups have subgroups, and a third of these are trees."""
    rng = np.random.default_rng(seed)
    snapshot = with_subgroups(generate(32, GangSpec(8), seed=seed, rigidify=0.2), gang=False).snapshot
    table, many = snapshot.subgroups, len(snapshot.podgroups)
    wanted = np.where(rng.random(many) < 0.3, 1, NONE)  # of some one subgroup is enough
    wanted = np.where(is_among(np.arange(many), table.podgroup), wanted, snapshot.podgroups.min_subgroups)
    some = rng.random(len(table)) < 0.5
    least = np.where(some, table.min_available // 2, table.min_available)
    return replace(
        snapshot,
        podgroups=replace(snapshot.podgroups, min_subgroups=frozen(wanted, np.int32)),
        subgroups=Subgroups(
            table.podgroup, table.parent, frozen(least, np.int32), table.min_subgroups, table.required_level,
            table.preferred_level,
        ),
    )  # fmt: skip


def given_up(snapshot: Snapshot, group: int, rows: Rows) -> list[int]:
    """Tasks without which the podgroup keeps its minima, each step worked out anew."""
    if not has_minimum(snapshot, group):
        return []
    after, left, given = WhatIf.of(snapshot), rows.tolist(), list[int]()
    part, active = snapshot.tasks.subgroup, snapshot.subgroup_counts.ready.astype(np.int64)
    least = np.maximum(snapshot.subgroups.min_available, 1)
    while left:
        full = {row: active[part[row]] / least[part[row]] if part[row] != NONE else 0.0 for row in left}
        for row in sorted(left, key=lambda one: (-full[one], -int(part[one]), left.index(one))):
            if has_minimum(after.evicting(np.array([row])), group):
                break
        else:
            break
        after = after.evicting(np.array([row]))
        given.append(row)
        active[part[row]] -= part[row] != NONE
        left.remove(row)
    return given


@pytest.mark.parametrize("seed", SEEDS)
def test_a_podgroup_with_parts_gives_up_what_it_can_lose_from_the_fullest_part_first(seed: int) -> None:
    snapshot = divided(seed)
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(snapshot.tasks.status == RUNNING))
    rows = rows[np.argsort(snapshot.tasks.podgroup[rows], kind="stable")]
    owner = snapshot.tasks.podgroup[rows].astype(np.int64)
    found, spare = surplus_first(snapshot, rows, owner)
    bound = snapshot.roles.podgroup[snapshot.roles_bind[snapshot.roles.podgroup]]
    parted = np.append(bound, snapshot.subgroups.podgroup)
    for group in np.unique(owner).tolist():
        mine, here = rows[owner == group].tolist(), owner == group
        if group in parted:
            given = given_up(snapshot, group, rows[here])
            assert found[here].tolist() == given + [row for row in mine if row not in given]
            assert int(spare[here].sum()) == len(given)
        else:
            assert found[here].tolist() == mine
        assert spare[here].tolist() == sorted(spare[here].tolist(), reverse=True)


def asked(seed: int, purpose: Purpose) -> tuple[Attempt, Preemptor]:
    fleet = generate(64, GangSpec(12), seed=seed, queues=0 if purpose is Purpose.PREEMPT else 3, rigidify=0.3)
    attempt = Attempt(fleet.snapshot, load_profile("kai"), purpose, (fleet.gang,), None, NOW, purpose.value)
    return attempt, Preemptor((fleet.gang,), asked_for(host_of(attempt), (fleet.gang,)).total, purpose)


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_lead_of_a_slice_is_where_its_own_count_of_units_ends(seed: int, purpose: Purpose) -> None:
    attempt, preemptor = asked(seed, purpose)
    host, snapshot = host_of(attempt), attempt.snapshot
    need, units = asked_for(host, attempt.podgroups), victim_units(host, preemptor)
    domains, allowed = domains_of(host, attempt.podgroups, purpose), host.allowed(need.shapes)
    allowed &= np.random.default_rng(seed).random(allowed.shape) < 0.9
    node = snapshot.tasks.node
    by_node = _units_by_node(snapshot, units)
    counted = CountedNeed(snapshot, need, allowed, units.rows)
    for domain, lead in zip(domains.tolist(), leads(counted, units, domains).tolist(), strict=True):
        start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
        there = np.flatnonzero(allowed.any(axis=0))
        there = there[(there >= start) & (there < stop)]
        use = [bool(is_among(node[units.rows[a:b]], there).any()) for a, b in pairwise(units.start)]
        falls = units.podgroup[np.array(use) & units.whole]
        useful = _useful(*by_node, start, stop, allowed, units.podgroup, units.whole)
        assert useful.tolist() == (np.array(use) | is_among(units.podgroup, falls)).tolist()
        some = units.only(useful)
        count = NodeSlice(counted, domain, start, stop).reached(some)
        assert lead == (len(units) if count == NONE else some.turn[:count].max(initial=NONE))


def test_the_kernels_say_the_same_uncompiled() -> None:
    attempt, preemptor = asked(1, Purpose.PREEMPT)
    host, snapshot = host_of(attempt), attempt.snapshot
    need, units = asked_for(host, attempt.podgroups), victim_units(host, preemptor)
    domains, allowed = domains_of(host, attempt.podgroups, attempt.purpose), host.allowed(need.shapes)
    by_node = _units_by_node(snapshot, units)
    useful = _useful(*by_node, 0, 20, allowed, units.podgroup, units.whole)
    counted = CountedNeed(snapshot, need, allowed, units.rows)
    first = leads(counted, units, domains)
    rows = np.flatnonzero(snapshot.tasks.status == RUNNING)
    owner = snapshot.tasks.podgroup[rows].astype(np.int64)
    surplus = surplus_first(snapshot, rows, owner)
    with uncompiled():
        again = _units_by_node(snapshot, units)
        assert [part.tolist() for part in again] == [part.tolist() for part in by_node]
        assert _useful.py_func(*again, 0, 20, allowed, units.podgroup, units.whole).tolist() == useful.tolist()
        assert leads(counted, units, domains).tolist() == first.tolist()
        assert [part.tolist() for part in surplus_first(snapshot, rows, owner)] == [part.tolist() for part in surplus]
