"""Scenario S2: gangs of PAI over eleven queues. Each queue reclaims what it deserves and borrows what is idle."""

from __future__ import annotations

from actors.replays.pai import open_gangs
from actors.replays.streams.scenario import StreamScenario

#: By default the whole stream is replayed.
S2 = StreamScenario("s2", 48.0, open_gangs)
