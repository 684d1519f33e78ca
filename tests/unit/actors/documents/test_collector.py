import gc
import json
import os
import subprocess
import sys

import pytest

from actors.documents.collector import settle


@pytest.mark.parametrize(("told", "seldom"), [({}, False), ({"RAY_RAYLET_PID": "1"}, True)])
def test_only_in_a_process_of_ray_does_the_import_change_how_often_garbage_is_looked_for(
    told: dict[str, str], seldom: bool
) -> None:
    script = "import gc; often = gc.get_threshold(); import actors.ray_runtime; print([gc.get_threshold(), often])"
    usual = {name: value for name, value in os.environ.items() if name != "RAY_RAYLET_PID"}
    out = subprocess.run([sys.executable, "-c", script], env=usual | told, capture_output=True, check=True).stdout
    now, often = json.loads(out.replace(b"(", b"[").replace(b")", b"]"))
    assert (now != often) is seldom


def test_what_a_decision_makes_is_too_little_for_a_role_to_look_for_garbage() -> None:
    before = gc.get_threshold()
    try:
        settle()
        looks = sum(one["collections"] for one in gc.get_stats())
        made = [[number] for number in range(10_000)]
        assert (sum(one["collections"] for one in gc.get_stats()), len(made)) == (looks, 10_000)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
