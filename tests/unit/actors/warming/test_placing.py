"""A search for places on its own, to compile its kernels."""

from typing import Any

import pytest

from actors.warming.placing import place_task_by_task, refuse_regions
from pipeline.placement.layout import one_by_one, topology_packing


def test_it_tries_groups_and_then_task_by_task(monkeypatch: pytest.MonkeyPatch) -> None:
    found, settled, put = list[tuple[str, Any]](), topology_packing.settled, one_by_one.put

    def in_groups(*given: Any) -> Any:
        found.append(("groups", len(settled(*given))))
        return settled(*given)

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
