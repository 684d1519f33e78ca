"""The garbage collector of this process: how often it runs, and where it stands still."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: How often a role looks for garbage. Its values refer to each other in no circle, so a look finds next to nothing; as
#: often as Python does it (after 700 new values), there would be one in nearly every decision.
_IN_ROLES = (20_000, 10, 10)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let nothing be collected meanwhile; also a decorator.

    The values of a large file refer to each other in no circle, and the collector would walk all that there are again
    and again, which takes a third of the time.
    """
    ran = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ran:
            gc.enable()


def collect_seldom() -> None:
    """Look for garbage seldom until `settle`, while a program is loaded or compiled.

    Nearly all that is made meanwhile stays; looking for garbage in it again and again takes a tenth of the time.
    """
    gc.set_threshold(200_000, 20, 100)


def settle() -> None:
    """Leave what is loaded by now out of later collections; each would go through it for about 80 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_IN_ROLES)
