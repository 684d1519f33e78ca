"""``clearway warm`` leaves nothing to compile: a compiler at work in a live role is a decision that is seconds late."""

import subprocess
import sys

import pytest

from actors.warming.warm import uncompiled


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
def test_after_the_warm_up_no_role_waits_for_the_compiler(profile: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.compilations", profile], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_afterwards_machine_code_of_every_kernel_is_on_disk() -> None:
    assert uncompiled() == []
