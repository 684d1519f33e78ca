"""The core without its compiler: every kernel, and all that it calls, as plain Python."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipeline.compiled import Compiled


@contextmanager
def uncompiled() -> Iterator[None]:
    """Let the modules of the core call the plain twins of compiled functions meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("pipeline.")]:
            for name, one in vars(module).copy().items():
                if isinstance(one, Compiled):
                    patch.setattr(module, name, one.py_func)
        yield
