"""The core without its compiler: every kernel, and all that it calls, as plain Python."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

from pipeline.compiled import Compiled


@contextmanager
def uncompiled() -> Iterator[None]:
    """Let the modules of the core call the plain twins of compiled functions meanwhile."""
    modules = tuple(module for name, module in sys.modules.items() if name.startswith("pipeline."))
    compiled = [(names, name, names[name]) for names, name in _places(modules) if isinstance(names[name], Compiled)]
    for names, name, one in compiled:
        names[name] = one.py_func
    try:
        yield
    finally:
        for names, name, one in compiled:
            names[name] = one


@lru_cache(maxsize=1)
def _places(modules: tuple[ModuleType, ...]) -> list[tuple[dict[str, Any], str]]:
    """Where compiled functions stand: looked up once, since tests ask for many examples."""
    return [
        (vars(module), name) for module in modules for name, one in vars(module).items() if isinstance(one, Compiled)
    ]
