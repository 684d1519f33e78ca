"""Values that travel between roles as bytes, for calls that a decision waits for.

Ray pickles each argument of a call by itself, with a pickler in Python, and sends arrays apart. For some hundred small
objects that takes half a millisecond longer than to pickle them at once. Ray must see references: they are arguments.
"""

from __future__ import annotations

import pickle
from typing import Any

_PROTOCOL = 5


def pickled(*values: Any) -> bytes:
    """The values, without references of Ray, for ``unpickled``."""
    return pickle.dumps(values, protocol=_PROTOCOL)


def unpickled(said: bytes) -> tuple[Any, ...]:
    """The values that another role of the same service pickled."""
    values: tuple[Any, ...] = pickle.loads(said)  # noqa: S301 # as Ray does with all arguments of its calls
    return values
