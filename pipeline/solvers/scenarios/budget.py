"""How much work one search may do, counted in scenarios and not in time, so that it never shows on which machine."""

from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    """What is left to spend in one search; lives as long as that. ``left`` below 0: it was asked for more.

    A search that has spent it takes the best that it has found so far.
    """

    left: int

    def spend(self) -> bool:
        """Take one scenario's work; whether there was any left."""
        self.left -= 1
        return self.left >= 0
