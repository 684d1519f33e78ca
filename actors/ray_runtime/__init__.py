"""The roles as Ray actors; the only folder that knows Ray."""

import gc
import os

#: How often Python looks for garbage by itself.
OFTEN = gc.get_threshold()


def collect_seldom() -> None:
    """Look for garbage seldom until `RoleProcess.settle`.

    Nearly all that is imported meanwhile stays; looking for garbage in it again and again takes a tenth of the time.
    """
    gc.set_threshold(200_000, 20, 100)


if "RAY_RAYLET_PID" in os.environ:
    # Ray starts a process before it knows for which role: this import is the first of ours there.
    collect_seldom()
