"""A search for places on its own, to compile its kernels."""

from collections import Counter
from typing import Any

import pytest

from actors.configuration.profiles import load_profile
from actors.warming.placing import let_return, place_task_by_task, refuse_regions
from pipeline.placement.layout import one_by_one, topology_packing
from pipeline.solvers.bundles.covering import free_room


def test_it_tries_groups_and_then_task_by_task(monkeypatch: pytest.MonkeyPatch) -> None:
    found, settled, put = list[tuple[str, Any]](), topology_packing.settled, one_by_one.put

    def in_groups(*given: Any) -> Any:
        placed = settled(*given)
        found.append(("groups", len(placed[0])))
        return placed

    def by_task(*given: Any) -> Any:
        found.append(("task", put(*given)))
        return put(*given)

    monkeypatch.setattr(topology_packing, "settled", in_groups)
    monkeypatch.setattr(one_by_one, "put", by_task)
    place_task_by_task()
    assert set(found) == {("groups", 0), ("task", False)}


def test_it_refuses_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    found, may_find_regions = list[bool](), topology_packing.may_find_regions

    def refused(*given: Any) -> Any:
        found.append(bool(may_find_regions(*given)))
        return found[-1]

    monkeypatch.setattr(topology_packing, "may_find_regions", refused)
    refuse_regions()
    assert found == [False]


def test_it_takes_back_what_may_not_return_of_a_gang_that_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[str]()

    def counted(name: str) -> Any:
        kernel = getattr(free_room, name)

        def ask(*given: Any) -> Any:
            asked[name] += 1
            return kernel(*given)

        return ask

    for name in ("placed_return", "go_again"):
        monkeypatch.setattr(free_room, name, counted(name))
    let_return(load_profile("default"))
    assert set(asked) == {"placed_return", "go_again"}
