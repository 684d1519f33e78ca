"""The benchmark rows beside KAI Scheduler: each fleet on which it was measured, judged by the fleet's file alone."""

import json
from pathlib import Path

import pytest

from actors.benchmarks.figures import NotAvailable
from actors.benchmarks.peers import peer_measurements, peers_measured
from actors.benchmarks.run import measured, run
from actors.configuration.settings import SettingsRefused

FLEETS = """
import json, sys
node = {"name": "n0", "allocatable": {"cpu": 8, "nvidia.com/gpu": 2, "pods": 9}}
def job(name, **what):
    task = {"name": name + "-0", "request": {"nvidia.com/gpu": 1}}
    return {"name": name, "queue": "q", "min_available": 1, "tasks": [task | what.pop("task", {})]} | what
running = [job(f"r{n}", priority=50, phase="Running", task={"status": "Running", "node": "n0"}) for n in (0, 1)]
print(json.dumps({
    "version": 1, "now": 1000.0, "policy": {"profile": "default", "actions": ["preempt"]}, "nodes": [node],
    "queues": [{"name": "q"}], "podgroups": [*running, job("w", priority=75, phase="Inqueue")],
}))
"""
JUDGE = """
def judge(fleet, evicted, placed):
    return {"placed_gangs": len(placed), "gangs": 1, "broken": 0, "lone": len(evicted), "wrong": []}
"""


def test_every_fleet_on_which_kai_was_measured_has_a_row():
    rows = peer_measurements(None)
    assert len(rows) == sum(row["peer"] == "kai" for row in peers_measured()) > 20
    assert {name.split()[1] for name in rows} == {"jobs", "shape"}


def test_a_row_has_the_peer_s_figure_and_the_judge_s_beside_ours(tmp_path: Path):
    (tmp_path / "fleets.py").write_text(FLEETS)
    (tmp_path / "judge.py").write_text(JUDGE)
    figure = peer_measurements(tmp_path)["kai jobs 100 preempt --gang 64"]()
    assert figure.p50_ms is not None
    assert figure.also["kai_ms"] == 255
    assert figure.also["times_faster"] == pytest.approx(255 / figure.p50_ms, rel=0.01)
    assert (figure.also["gangs_placed"], figure.also["broken"], figure.also["kai_broken"]) == (
        "1 of 1",
        "0 + 1",
        "8 + 0",
    )
    assert figure.also["unlawful"] == "no"


def test_without_the_folder_the_row_says_what_it_needs(tmp_path: Path):
    for peers in (None, tmp_path):
        row = peer_measurements(peers)["kai shape many 50"]
        if peers is None:
            assert "--peers" in str(measured(row)["not_available"])
        else:
            (peers / "fleets.py").write_text("print('{}')")
            with pytest.raises(NotAvailable, match=r"judge\.py"):
                row()


def test_the_beginning_of_a_name_names_several_rows(capsys: pytest.CaptureFixture[str]):
    assert run(("kai shape large",), as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in said["benchmarks"]] == ["kai shape large 200", "kai shape large 500"]
    with pytest.raises(SettingsRefused, match="kai"):
        run(("kai nothing",), as_json=True)
