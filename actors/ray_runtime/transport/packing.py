"""Messages between roles as bytes. Ray's own way to pack looks at each object in Python, at several times the price."""

from __future__ import annotations

import pickle
from typing import Any

from ray import cloudpickle


def packed(*message: Any) -> bytes:
    """A message in one piece; it has no references of Ray's."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def unpacked(message: bytes) -> Any:
    """What `packed` was given, as a tuple; the message is from another role of our own."""
    return cloudpickle.loads(message)
