"""The garbage collector, which stands still while documents are read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
