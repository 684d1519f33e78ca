"""A gang that is refused again and again gets its domain for a while."""

from dataclasses import replace
from typing import Any

import pytest

from actors.cli.live.explain import claims, kept_lines
from actors.contracts import CommitResult, Offer
from actors.protocol.bodies import DomainReleased, DomainReserved
from actors.search.batched_search import Spread
from tests.support.assembly import Assembly, decisions, full_racks, gang


class Contested(Assembly):
    """Two racks of four full nodes, a gang that needs a whole one, and plans that come too late when told to."""

    def __init__(self, **more: Any) -> None:
        self.late = False
        super().__init__(full_racks(), **more)
        self.hear()
        self.submit(gang("big", 4, 8, priority=5, topology={"required": "rack"}))

    def commit(self, offers: list[Offer]) -> list[CommitResult]:
        def aged(offer: Offer) -> Offer:
            return replace(offer, plan=replace(offer.plan, expires_at=self.clock.now - 1.0))

        return self.committer.commit([aged(one) if self.late else one for one in offers])

    def refuse(self, times: int) -> None:
        """So many plans are refused in a row."""
        self.late = True
        for at in range(times):
            self.submit(gang(f"news{times}{at}", 1, 0, queue="b"))  # without resources to speak of: only news
            self.clock.now += 4.0
            self.committer.lead()
            (answer,) = [one for one in self.cycle().answers if one.verdict != "accepted" and one.statement is None][:1]
            assert answer.verdict == "stale"
        self.late = False
        self.submit(
            gang(f"after{times}", 1, 0, queue="b")
        )  # a plan that was refused stays refused: the next is another
        self.hear()

    def claims(self) -> list[Any]:
        return [one for one in decisions(self) if isinstance(one, DomainReserved | DomainReleased)]

    def nodes_of(self, podgroup: str) -> set[str]:
        """Where the podgroup's tasks were promised room or run, by our decisions."""
        placed = [one for made in decisions(self) for one in getattr(made, "nominations", ())]
        placed += [one for made in decisions(self) for one in getattr(made, "bindings", ())]
        return {one.node for one in placed if one.task.startswith(f"default/{podgroup}-")}


@pytest.fixture
def claimed() -> Contested:
    contested = Contested()
    contested.refuse(3)
    return contested


def test_after_three_refusals_in_a_row_the_domain_is_kept_for_the_gang(claimed: Contested) -> None:
    (made,) = claimed.claims()
    assert isinstance(made, DomainReserved)
    assert (made.podgroup, made.domain, made.refusals, made.reason) == ("default/big", "r0", 3, "the plan expired")
    assert made.expires_at == claimed.clock.now + claimed.policy.claim_ttl_s
    (claim,) = claimed.news.turn.closed.claims
    assert (claimed.directory.podgroups([claim.podgroup]), claimed.directory.domains([claim.domain])) == (
        ["default/big"],
        ["r0"],
    )


def test_two_refusals_are_not_enough() -> None:
    contested = Contested()
    contested.refuse(2)
    assert contested.claims() == []


def test_an_acceptance_in_between_begins_the_count_anew() -> None:
    contested = Contested()
    contested.refuse(2)
    contested.clock.now += 4.0
    contested.cycle()
    assert contested.nodes_of("big") == {"n0", "n1", "n2", "n3"}
    assert contested.committer._book.claims._refusals == {}


@pytest.mark.parametrize("in_place_cells", [0, 4_096])
def test_others_make_their_room_elsewhere(in_place_cells: int) -> None:
    contested = Contested(spread=Spread(in_place_cells=in_place_cells))
    contested.refuse(3)
    for name in ("x", "y"):
        contested.submit(gang(name, 2, 8, priority=4))
    contested.clock.now += 4.0
    contested.committer.lead()
    contested.cycle()
    assert contested.nodes_of("big") == {"n0", "n1", "n2", "n3"}
    assert contested.nodes_of("x") | contested.nodes_of("y") == {"n4", "n5", "n6", "n7"}


def test_while_the_owner_pauses_no_other_takes_its_domain(claimed: Contested) -> None:
    claimed.submit(gang("x", 4, 8, priority=4))
    claimed.submit(gang("y", 4, 8, priority=4))
    claimed.cycle()
    assert claimed.nodes_of("big") == set()
    assert claimed.nodes_of("x") == {"n4", "n5", "n6", "n7"}
    assert claimed.nodes_of("y") == set()


def test_who_is_served_first_may_still_make_room_there(claimed: Contested) -> None:
    for name in ("x", "y"):
        claimed.submit(gang(name, 4, 8, priority=9))
    claimed.cycle()
    assert claimed.nodes_of("x") | claimed.nodes_of("y") == {f"n{at}" for at in range(8)}


def test_room_that_comes_free_there_is_the_owners(claimed: Contested) -> None:
    """Allocation looks at the gang first and keeps small ones out; what is free elsewhere is theirs."""
    for at in (0, 4):
        claimed.say([claimed.fleet._end(claimed.fleet._tasks[f"default/low{at}-0"], "Succeeded", replaced=False)])
    for name in ("x", "y"):
        claimed.submit(gang(name, 1, 8))
    claimed.cycle()
    assert claimed.nodes_of("x") | claimed.nodes_of("y") == {"n4"}


def test_the_claim_ends_when_the_gang_has_its_room(claimed: Contested) -> None:
    claimed.clock.now += 4.0
    claimed.turns(10)
    assert {claimed.status(f"big-{at}") for at in range(4)} == {"Running"}
    assert [type(one) for one in claimed.claims()] == [DomainReserved, DomainReleased]
    assert claimed.claims()[-1].reason == "its podgroup has its room"
    assert claimed.news.turn.closed.claims == ()
    assert claimed.report().broken == []


def test_the_claim_ends_with_its_podgroup(claimed: Contested) -> None:
    claimed.give_up()
    claimed.hear()
    assert claimed.claims()[-1].reason == "its podgroup is gone"


def test_the_claim_ends_with_its_time(claimed: Contested) -> None:
    assert claimed.committer.next_deadline() == claimed.claims()[0].expires_at
    claimed.clock.now = claimed.claims()[0].expires_at
    claimed.committer.lead()
    claimed.committer.tend()
    assert claimed.claims()[-1].reason == "its time is over"


def test_claims_never_overlap(claimed: Contested) -> None:
    claimed.submit(gang("other", 4, 8, priority=9, topology={"required": "rack"}))
    claimed.refuse(4)
    assert [(one.podgroup, one.domain) for one in claimed.claims()] == [("default/big", "r0")]


def test_a_claim_survives_restarts_of_all_roles(claimed: Contested) -> None:
    before = claimed.news.turn.closed
    claimed.ingest.close()
    claimed.restart_ingestor()
    claimed.hear()
    assert claimed.news.turn.closed == before
    claimed.committer.resign()
    successor = claimed.new_committer("second")
    assert successor.lead()
    assert successor._book.claims.active == tuple(claimed.claims())


def test_a_claim_is_explained_while_it_stands(claimed: Contested) -> None:
    (claim,) = claims(claimed.bus, None)
    first, second = kept_lines(claim)
    assert first.startswith("r0 is kept for default/big until 20")
    assert second == "  3 plans in a row were refused, the last one because the plan expired"
    assert list(claims(claimed.bus, "default/low0")) == []
    claimed.clock.now = claimed.claims()[0].expires_at
    claimed.committer.lead()
    claimed.committer.tend()
    assert list(claims(claimed.bus, None)) == []


def test_what_is_kept_is_no_wider_than_the_plan_needs() -> None:
    """The gang may lie anywhere, and its plan lies in one rack."""
    contested = Contested()
    contested.give_up()
    contested.submit(gang("free", 4, 8, priority=5))
    contested.refuse(3)
    assert [(one.podgroup, one.domain) for one in contested.claims()] == [("default/free", "r1")]


def test_a_lone_task_gets_no_domain() -> None:
    contested = Contested()
    contested.give_up()
    contested.submit(gang("lone", 1, 8, priority=5))
    contested.refuse(4)
    assert contested.claims() == []
