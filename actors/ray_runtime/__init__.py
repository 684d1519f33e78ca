"""The roles as Ray actors; the only folder that knows Ray."""

import os

from actors.documents.collector import collect_seldom

if "RAY_RAYLET_PID" in os.environ:
    # Ray starts a process before it knows for which role: this import is the first of ours there.
    collect_seldom()
