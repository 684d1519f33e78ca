"""What `clearway bench` measures of states, once each on a small fleet; the object store needs Ray, and is left out."""

import pytest

from actors.benchmarks import figures, state_measurements
from actors.benchmarks.figures import generated_fleet
from actors.benchmarks.state_measurements import STATE_MEASUREMENTS


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FEW", 1)
    monkeypatch.setattr(figures, "WARM_UP", 0)
    monkeypatch.setattr(figures, "_LIMIT_MS", 0.0)
    monkeypatch.setattr(state_measurements, "generated_fleet", lambda _, *spec: generated_fleet(200, *spec))


@pytest.mark.parametrize("name", ["fold_10k", "snapshot_1m", "what_if", "node_join"])
def test_what_is_done_to_a_state_is_measured(name: str) -> None:
    figure = STATE_MEASUREMENTS[name]()
    assert figure.p50_ms is not None
    assert figure.also["tasks"] == len(generated_fleet(200, state_measurements.GangSpec()).snapshot.tasks)


def test_the_memory_that_a_task_takes_is_measured() -> None:
    also = STATE_MEASUREMENTS["memory"]().also
    assert 0 < float(also["snapshot_bytes_per_task"]) <= float(also["decided_bytes_per_task"])
    assert float(also["decided_bytes_per_task"]) <= float(also["peak_bytes_per_task"])
