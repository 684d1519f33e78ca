"""How much work one search may do, counted in scenarios and not in time: the outcome is the same on every machine."""

from dataclasses import dataclass

#: One scenario more for this many victims.
_VICTIMS = 64


def work_of(victims: int) -> int:
    """As how many scenarios of few victims a scenario counts."""
    return 1 + victims // _VICTIMS


@dataclass(slots=True)
class Budget:
    """What is left to spend in one search; it lives as long as the search. ``left`` below 0: more was asked for.

    A search that has spent it takes the best that it has found so far.
    """

    left: int

    def spend(self, scenarios: int = 1) -> bool:
        """Spend the work of some scenarios; returns whether that much was left."""
        self.left -= scenarios
        return self.left >= 0
