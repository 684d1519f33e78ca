import gc

from actors.ray_runtime import OFTEN
from actors.ray_runtime.process import RoleProcess


def test_once_a_role_has_started_garbage_is_looked_for_as_often_as_python_does() -> None:
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        RoleProcess.settle()
        assert gc.get_threshold() == OFTEN
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
