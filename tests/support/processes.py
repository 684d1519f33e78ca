"""What this machine shows of processes: where they listen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Listener:
    host: str
    port: int
    program: str


def listeners(pids: list[int]) -> list[Listener]:
    """Where any of the processes waits for others over the network."""
    owners = {}
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                socket = re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink()))
            except OSError:
                continue
            if socket:
                owners[socket[1]] = pid
    found = []
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in owners:  # it listens
                host, _, port = words[1].partition(":")
                program = Path(f"/proc/{owners[words[9]]}/cmdline").read_text().partition("\0")[0]
                found.append(Listener(host, int(port, 16), program))
    return found
