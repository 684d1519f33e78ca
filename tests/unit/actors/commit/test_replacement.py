"""What becomes of a decision of which victims do not end."""

from typing import Any

import pytest

from actors.cli.live.explain import concerning
from actors.commit.committer import TimeLimits
from actors.fleets.simulated import SimulatedFleet
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from pipeline.cluster.tables import RUNNING
from tests.support.assembly import Assembly, decisions, full_racks, gang

DEADLINE_S = 20.0


class Deaf(SimulatedFleet):
    """A fleet in which the tasks on some nodes do not hear that they are to end."""

    deaf: tuple[str, ...] = ()

    def _evict(self, name: str, incarnation: int, grace_s: float, now: float) -> Any:
        if self._tasks[name].node not in self.deaf:
            yield from super()._evict(name, incarnation, grace_s, now)


class Watched(Assembly):
    """An assembly with short deadlines, whose fleet may be deaf."""

    def __init__(self, racks: int = 2) -> None:
        super().__init__(full_racks(racks))
        self.committer.resign()
        self.committer = self.new_committer("watchdog", TimeLimits(eviction_deadline_s=DEADLINE_S))
        self.committer.lead()
        self.fleet.__class__ = Deaf
        self.hear()

    def overdue(self, **more: Any) -> None:
        """The first decision is made, and its victims had their time; the others end."""
        self.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}, **more))
        while self.clock.now < 1_700_000_000.0 + DEADLINE_S - 1.0:
            self.turn()

    def late(self, **more: Any) -> None:
        """The same a moment later."""
        self.overdue(**more)
        self.pass_time(2.0)
        self.hear()

    def victims(self, at: int = 0) -> list[str]:
        return [one.task for one in decisions(self)[at].evictions]

    def node(self, task: str) -> str | None:
        return self.fleet._tasks[task].node


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_decision_whose_victims_do_not_end_is_replaced_by_one_that_does_without_them(watched: Watched) -> None:
    watched.fleet.deaf = ("n1",)
    watched.overdue()
    assert "default/low1-0" in watched.victims()
    watched.turns(12)
    first, second, *_ = (one for one in decisions(watched) if isinstance(one, PlanCommitted) and one.nominations)
    assert (second.replaces, [one.task for one in second.overdue]) == (first.plan_id, ["default/low1-0"])
    assert len(second.evictions) == 1, "the room that the others had freed is kept"
    assert second.planned_on is None, "the committer planned it as it judged it"
    assert second.judged_on is not None
    assert second.judged_on.at >= 1_700_000_000.0 + DEADLINE_S
    assert "n1" not in {one.node for one in second.nominations}
    assert {watched.status(f"big-{at}") for at in range(3)} == {"Running"}
    assert watched.status("low1-0") == "Running"
    assert watched.report().broken == []
    ends = [made.end for made in concerning(watched.bus, "default/big", 10) if made.body.evictions]
    assert str(ends[0]).startswith("fulfilled at ")
    assert ends[1:] == ["replaced by decision 2: default/low1-0 did not end in time"]


@pytest.mark.parametrize("wait_s", [60.0, 3_000.0])
def test_victims_have_as_long_however_long_the_gang_waits_for_room(watched: Watched, wait_s: float) -> None:
    watched.fleet.deaf = ("n1",)
    watched.overdue(wait_seconds=wait_s)
    assert len(decisions(watched)) == 1
    watched.pass_time(2.0)
    watched.hear()
    assert decisions(watched)[1].replaces == decisions(watched)[0].plan_id


def test_without_another_way_the_decision_is_withdrawn_and_the_victims_are_named() -> None:
    watched = Watched(racks=1)
    watched.fleet.deaf = ("n1", "n2")
    watched.late()
    withdrawn = decisions(watched)[-1]
    assert isinstance(withdrawn, PlanWithdrawn)
    assert withdrawn.reason.startswith("victims did not end in time: default/low1")
    assert {one.task for one in withdrawn.overdue} == {"default/low1-0", "default/low2-0"}


def test_no_plan_counts_on_an_overdue_victim_until_its_time_is_over() -> None:
    watched = Watched(racks=1)
    watched.fleet.deaf = ("n1", "n2")
    watched.late()
    made = len(decisions(watched))
    assert watched.turn().answers == ()
    at = watched.dispatcher.next_at(watched.ingest.snapshot)
    assert at == decisions(watched)[-1].overdue[0].avoided_until
    watched.fleet.deaf = ()
    watched.pass_time(at - watched.clock.now)
    watched.turn()
    again = decisions(watched)[made:]
    assert [(one.preemptor, len(one.evictions)) for one in again if one.evictions] == [("default/big", 2)]
    assert watched.report().broken == []


def test_an_overdue_victim_that_ends_after_all_leaves_its_node_to_all_podgroups(watched: Watched) -> None:
    watched.fleet.deaf = ("n1",)
    watched.late()
    assert [node for node, _ in watched.news.turn.closed.overdue] == [1]
    watched.say([watched.fleet._end(watched.fleet._tasks["default/low1-0"], "Failed", replaced=True)])
    watched.hear()
    assert watched.news.turn.closed.overdue == ()


def test_a_successor_reserves_what_was_put_in_the_place_of_another(watched: Watched) -> None:
    watched.fleet.deaf = ("n1",)
    watched.late()
    held = watched.committer.reservations
    watched.committer.resign()
    successor = watched.new_committer("second", TimeLimits(eviction_deadline_s=DEADLINE_S))
    assert successor.lead()
    assert successor.reservations == held
    assert [one.plan_id for one in held] == [f"{decisions(watched)[0].plan_id}:instead"]


def test_a_replaced_decision_leaves_the_same_state_in_every_reader_that_folds_it(watched: Watched) -> None:
    watched.fleet.deaf = ("n1",)
    watched.late()
    live = watched.ingest.snapshot
    watched.restart_ingestor()
    watched.hear()
    again = watched.ingest.snapshot
    assert again.decided == live.decided
    for column in ("status", "nominated", "node", "incarnation"):
        assert getattr(again.tasks, column).tolist() == getattr(live.tasks, column).tolist()


def test_victims_that_were_not_told_to_end_are_spared_when_the_need_is_gone(watched: Watched) -> None:
    """The fleet has not carried anything out yet: the withdrawal cancels the evictions."""
    watched.submit(gang("big", 3, 8, priority=5))
    watched.cycle()
    watched.give_up()
    watched.hear()
    cancelled = decisions(watched)[-1]
    assert isinstance(cancelled, PlanWithdrawn)
    assert cancelled.reason.startswith("the need is gone: default/big-0")
    watched.hear()
    tasks = watched.ingest.snapshot.tasks
    rows = watched.directory.task_rows(watched.victims())
    assert (tasks.status[rows] == RUNNING).all()
    assert watched.committer.reservations == ()


def test_what_takes_a_decisions_place_does_without_the_overdue_victims_of_another() -> None:
    watched = Watched(racks=1)
    watched.fleet.deaf = ("n2", "n3")
    for at in range(2):
        watched.submit(gang(f"big{at}", 1, 8, priority=5))
    while watched.clock.now < 1_700_000_000.0 + DEADLINE_S + 1.0:
        watched.turn()
    chosen = [watched.victims(at) for at in range(4)]
    assert sorted(chosen[:2]) == [["default/low2-0"], ["default/low3-0"]]
    assert sorted(chosen[2:]) == [["default/low0-0"], ["default/low1-0"]]
    assert watched.report().broken == []
