"""Which processes write for a fleet beside the one that listed it last; this reader's own observation, not state."""

from __future__ import annotations

#: Seconds after which a writer that was refused and says nothing more is gone; how many are remembered.
_GONE_S, _KEPT = 60.0, 64


class OtherWriters:
    """When each of them was last refused, in seconds of a clock that is never set."""

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}

    def heard(self, name: str, now: float) -> None:
        """Note that an entry was refused because of its writer."""
        self._heard.pop(name, None)
        self._heard[name] = now
        while len(self._heard) > _KEPT:
            del self._heard[next(iter(self._heard))]

    def count(self, now: float) -> int:
        """How many there were lately."""
        self._heard = {name: at for name, at in self._heard.items() if now < at + _GONE_S}
        return len(self._heard)
