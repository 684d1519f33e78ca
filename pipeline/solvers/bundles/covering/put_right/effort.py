"""How much is tried to put a set of victims right."""

#: Between these many other sets are tried, fewer in large fleets.
_FEWEST, _MOST, _ALL = 4, 64, 16_000


def tries(nodes: int) -> int:
    """How many other sets are placed and judged in a fleet of that many nodes."""
    return min(max(_ALL // nodes, _FEWEST), _MOST)
