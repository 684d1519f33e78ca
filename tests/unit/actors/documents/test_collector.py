import gc
import json
import os
import subprocess
import sys

import pytest

from actors.documents.collector import collect_seldom, settle


@pytest.mark.parametrize(("told", "seldom"), [({}, False), ({"RAY_RAYLET_PID": "1"}, True)])
def test_only_in_a_process_of_ray_does_the_import_change_how_often_garbage_is_looked_for(
    told: dict[str, str], seldom: bool
) -> None:
    script = "import gc; often = gc.get_threshold(); import actors.ray_runtime; print([gc.get_threshold(), often])"
    usual = {name: value for name, value in os.environ.items() if name != "RAY_RAYLET_PID"}
    out = subprocess.run([sys.executable, "-c", script], env=usual | told, capture_output=True, check=True).stdout
    now, often = json.loads(out.replace(b"(", b"[").replace(b")", b"]"))
    assert (now != often) is seldom


def test_once_a_role_has_started_garbage_is_looked_for_as_often_as_python_does() -> None:
    before = gc.get_threshold()
    collect_seldom()
    try:
        settle()
        assert gc.get_threshold() == before
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
