"""Names under which processes are known to others."""

from __future__ import annotations

import os
import socket
import time


def unique_name() -> str:
    """A name that nothing else ever has, on this machine or another, nor what is named by this process later."""
    return f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
