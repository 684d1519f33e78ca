"""Tasks of a gang that keeps to one domain, searched for together and one by one."""

import numpy as np
import pytest

from actors.benchmarks.figures import attempt_on
from actors.configuration.profiles import load_profile
from actors.fleets.generated import GangSpec, GeneratedFleet, generate
from actors.fleets.mixed import MIXED
from pipeline.cluster.cards import freed_on_cards
from pipeline.decision.plan import Plan
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.records import replace
from pipeline.solvers.tasks.candidates import victim_order
from pipeline.solvers.tasks.kind_search import KindSearch
from pipeline.solvers.tasks.kinds import Withheld, facts_of, fleet_of, task_kind
from pipeline.solvers.tasks.rule import Rule
from pipeline.solvers.tasks.sweeping.following import freed


def fleet_with(what: str) -> GeneratedFleet:
    fleet = generate(256, GangSpec(128, 1, "block"), seed=3, queues=0)
    return MIXED[what](fleet, gang=True) if what else fleet


@pytest.mark.parametrize("what", ["", *MIXED])
def test_searching_for_tasks_together_finds_the_places_that_one_by_one_does(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = replace(attempt_on(fleet_with(what), Purpose.PREEMPT), policy=load_profile("volcano"))
    together = propose(attempt)
    assert isinstance(together, Plan)
    monkeypatch.setattr(KindSearch, "swept_together", lambda _self, _many: 1)
    alone = propose(attempt)
    assert isinstance(alone, Plan)
    assert alone.price == together.price
    for column in ("evictions", "nominated", "nominated_node", "nominated_card"):
        assert np.array_equal(getattr(alone.statement, column), getattr(together.statement, column))


def test_queues_that_are_ranked_in_the_sweep_lose_in_the_order_that_plugins_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = generate(256, GangSpec(64, 1, "pod"), seed=3, rigidify=0.0, queues=8)
    attempt = replace(attempt_on(fleet, Purpose.RECLAIM), policy=load_profile("volcano"))
    counted = propose(attempt)
    monkeypatch.setattr(Host, "losing_order", lambda _self, _queue: None)
    asked = propose(attempt)
    assert isinstance(counted, Plan)
    assert isinstance(asked, Plan)
    assert counted.price == asked.price
    for column in ("evictions", "nominated", "nominated_node"):
        assert np.array_equal(getattr(counted.statement, column), getattr(asked.statement, column))


def test_what_candidates_hold_is_counted_node_by_node() -> None:
    fleet = fleet_with("cards")
    snapshot, rule = fleet.snapshot, Rule(Purpose.PREEMPT, (fleet.gang,))
    host, task = Host(Context(snapshot, load_profile("volcano"), 0.0)), int(snapshot.tasks_of(fleet.gang)[0])
    kind = task_kind(host, task, rule, victim_order(host), None, None, Withheld(len(snapshot.nodes)), 0)
    columns = facts_of(snapshot), fleet_of(host, None, None)
    columns[1].gone[::3] = True
    rows = np.flatnonzero(kind.may & ~columns[1].gone)
    room, cards = np.zeros_like(snapshot.room.future), np.zeros_like(snapshot.card_room.future)
    snapshot.add_requests(rows, room, snapshot.tasks.node[rows])
    freed_on_cards(snapshot.tasks, snapshot.shapes, rows, 0, cards)
    for one in (freed, freed.py_func):
        found = one(*columns, kind)
        assert np.array_equal(found[0], room)
        assert np.array_equal(found[1], cards)
