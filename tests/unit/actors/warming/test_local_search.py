"""A local search on its own, to compile its kernels."""

from typing import Any

import pytest

from actors.configuration.profiles import load_profile
from actors.warming.local_search import search_locally
from pipeline.solvers.bundles.covering import cheaper


def test_it_finds_cheaper_victims_in_preempt_and_in_reclaim(monkeypatch: pytest.MonkeyPatch) -> None:
    found, real = list[tuple[bool, int, int]](), cheaper.cheaper_sets

    def searched(*given: Any) -> Any:
        sets, terms, budget = real(*given), given[4], given[-2]
        found.append((terms.rules.by_priority, budget.rounds, len(sets.gone)))
        return sets

    monkeypatch.setattr(cheaper, "cheaper_sets", searched)
    search_locally(load_profile("default"))
    assert {(by_priority, rounds > 0, many > 0) for by_priority, rounds, many in found} == {
        (True, True, True), (False, True, True),
    }  # fmt: skip
