"""What `clearway bench` measures of decisions, once each on a small fleet: at their true size they take hours."""

import math

import pytest

from actors.benchmarks import decision_measurements, figures
from actors.benchmarks.decision_measurements import DECISION_MEASUREMENTS
from actors.benchmarks.figures import generated_fleet


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FEW", 1)
    monkeypatch.setattr(figures, "WARM_UP", 0)
    monkeypatch.setattr(figures, "_LIMIT_MS", 0.0)
    for name, value in {"FEW": 1, "RUNS": 1, "WARM_UP": 0, "_NEWS": 10}.items():
        monkeypatch.setattr(decision_measurements, name, value)
    monkeypatch.setattr(
        decision_measurements, "generated_fleet", lambda nodes, *spec: generated_fleet(250 + nodes // 1_000, *spec)
    )


@pytest.mark.parametrize("name", ["decide_10k", "decide_pod_100k", "domain_128", "domain_1024", "fresh_10k"])
def test_a_decision_that_evicts_is_measured(name: str) -> None:
    figure = DECISION_MEASUREMENTS[name]()
    assert figure.runs == 1
    assert figure.p50_ms
    assert figure.also.get("victims", 1)


@pytest.mark.parametrize("name", ["allocate_10k", "gather_100k"])
def test_a_gang_that_is_placed_in_room_that_is_there_is_measured(name: str) -> None:
    figure = DECISION_MEASUREMENTS[name]()
    assert figure.p50_ms
    assert int(figure.also["tasks"]) >= 512


def test_the_growth_is_that_of_three_sizes() -> None:
    figure = DECISION_MEASUREMENTS["growth"]()
    assert sorted(figure.also) == sorted(
        ["exponent", *(f"{what}_{nodes}" for what in ("tasks", "p50_ms") for nodes in (10_000, 50_000, 200_000))]
    )
    assert all(math.isfinite(float(one)) for one in figure.also.values())
