"""The numbers of an explanation never contradict each other, nor what it says in words."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from pipeline.cycle import cycle
from pipeline.decision.explanation import Explanation, Reason, decisive
from pipeline.decision.plan import Plan
from tests.support.simulating import simulate
from tests.support.strategies import documents

TOO_LITTLE = {Reason.BOUND.value, Reason.UNPLACEABLE.value}


@given(document=documents())
def test_where_too_little_can_be_freed_less_is_reachable_than_wanted(document: dict[str, Any]) -> None:
    why = simulate(document, 2, explain=True)["explain"]
    attempts = [one for waits in why["podgroups"].values() for one in waits["attempts"]]
    for told in [*attempts, *why["decisions"]]:
        for domain in told["tried"]:
            if "reachable" not in domain:
                continue
            assert domain["reachable"] < domain["wanted"] or domain["reason"] not in TOO_LITTLE, domain
            assert domain["reachable"] >= domain["wanted"] or domain["reason"] != Reason.NO_PACKING.value, domain
            assert domain["room"] <= domain["reachable"], domain


@given(document=documents(), profile=st.sampled_from(["default", "volcano", "kai", "koordinator"]))
def test_what_costs_more_really_has_the_greater_price_and_the_field_that_decided_shows_it(
    document: dict[str, Any], profile: str
) -> None:
    case = open_case(document, profile)
    for made in cycle(case.snapshot, case.policy, case.now).plans:
        _holds(made, made.explanation)


def _holds(made: Plan, why: Explanation) -> None:
    """Podgroups alike that are served together share what was found for all of them, and its price."""
    chosen = next((entry.price for entry in why.tried if entry.reason is Reason.CHOSEN), made.price)
    assert chosen is not None
    assert why.together > 1 or chosen == made.price
    for entry in why.tried:
        assert (entry.reason is Reason.CHOSEN) == (entry.domain == made.domain)
        if entry.reason in (Reason.COSTLIER, Reason.EQUAL):
            assert entry.price is not None
            assert entry.price > chosen
            found = decisive(chosen, entry.price)
            assert (found is None) == (entry.reason is Reason.EQUAL)
            assert found is None or found.lower < found.higher
        if entry.reason is Reason.BREAKS_MORE:
            assert entry.price is not None
            assert entry.price < chosen
            assert entry.price.gangs_broken > chosen.gangs_broken
    for one in why.spared:
        costs_more = one.reason in (Reason.COSTLIER, Reason.EQUAL)
        assert costs_more == (one.price >= chosen)
        assert one.podgroup not in {bundle.podgroup for bundle in why.bundles}
