"""Whose search, verdict and record a span is of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.configuration.settings import TelemetrySettings
from actors.contracts import Offer
from actors.observability.telemetry import start
from actors.observability.traces import SPAN_ATTEMPT, SPAN_JUDGE, SPAN_RECORD, SpanRecord
from actors.search.batched_search import Spread
from tests.support.assembly import Assembly, full, gang


def traced(spans: list[SpanRecord], spread: Spread | None = None) -> Assembly:
    """Racks that are full, and a gang that needs one."""
    telemetry = start(TelemetrySettings(), "test", ship=spans.extend, ship_at_once=True)
    assembly = full(4, telemetry=telemetry, spread=spread)
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    return assembly


@pytest.mark.parametrize("spread", [None, Spread(domains=1, in_place_cells=0)], ids=["here", "elsewhere"])
def test_the_verdict_on_a_plan_names_the_gang_that_an_attempt_has_as_a_row(spread: Spread | None) -> None:
    spans: list[SpanRecord] = []
    assembly = traced(spans, spread)
    (answer,) = assembly.cycle().answers
    by_name = {
        name: [span["attributes"] for span in spans if span["name"] == name]
        for name in (SPAN_ATTEMPT, SPAN_JUDGE, SPAN_RECORD)
    }
    (row,) = assembly.directory.podgroup_rows(["default/big"]).tolist()
    found = [one for one in by_name[SPAN_ATTEMPT] if one.get("plan") == answer.plan_id]
    assert {one["podgroup"] for one in found} == {row}
    for name in (SPAN_JUDGE, SPAN_RECORD):
        (said,) = by_name[name]
        assert (said["plan"], said["preemptor"], said["queue"]) == (answer.plan_id, "default/big", "a")


def test_a_plan_of_another_epoch_is_judged_without_a_name_since_its_rows_are_others_now() -> None:
    spans: list[SpanRecord] = []
    assembly, offered = traced(spans), list[Offer]()
    commit = assembly.commit

    def later(offers: list[Offer]) -> object:
        assumes = replace(offers[0].plan.assumes, epoch=offers[0].plan.assumes.epoch + 1)
        offered.append(replace(offers[0], plan=replace(offers[0].plan, assumes=assumes)))
        return commit(offered)

    assembly.dispatcher._commit = later
    (answer,) = assembly.cycle().answers
    assert answer.verdict == "stale"
    (judged,) = [span["attributes"] for span in spans if span["name"] == SPAN_JUDGE]
    assert "preemptor" not in judged
