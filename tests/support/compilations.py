"""Which kernels the warm-up does not know, of those that fleets reach as they live; run in a process of its own."""

import random
import sys

from actors.configuration.profiles import load_profile
from actors.warming.warm import kernels, warm_up
from tests.support.starting_over import arrival, crowded

_SEEDS, _TURNS = (5, 9, 13), 12


def play(profile: str, seed: int) -> int:
    """A history with arrivals, evictions, promises, a lost node and a new one; how many decisions it has."""
    draw = random.Random(seed)
    assembly, made = crowded(draw, load_profile(profile)), 0
    for turn in range(_TURNS):
        if turn % 4 == 0:
            assembly.say([said for at in "xy" for said in assembly.fleet.submit(arrival(draw, f"{at}{turn}"), 3.0)])
        if turn == _TURNS // 2:
            assembly.say(assembly.fleet.fail_node(assembly.fleet.nodes[0]))
        if turn == _TURNS // 2 + 1:
            assembly.say(assembly.fleet.join_node({"name": "n00", "allocatable": {"gpu": 4, "pods": 110}}))
        made += len(assembly.turn().answers)
    return made


def known() -> set[str]:
    """Every kernel of the core with each signature for which there is machine code in this process."""
    return {f"{one.py_func.__qualname__}{signature}" for one in kernels() for signature in one.signatures}


def main(profiles: list[str]) -> int:
    """Print what only the fleets reached, one name a line; 1 if nothing was decided."""
    for profile in profiles:
        warm_up(load_profile(profile))
    before = known()
    made = [sum(play(profile, seed) for seed in _SEEDS) for profile in profiles]
    sys.stdout.write("\n".join(sorted(known() - before)))
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
