"""No thrash: whoever is evicted starts over, and the evictions end all the same (DESIGN section 6).

Preempt takes strictly lower priority, and reclaim never leaves a queue below what it deserves; so what a victim may
take in turn is less each time, and two gangs cannot evict each other.
"""

import random

import pytest

from tests.support.assembly import decisions
from tests.support.starting_over import arrival, crowded

TURNS, QUIET = 40, 15


@pytest.mark.parametrize("seed", [5, 9, 13, 16, 17])
def test_evictions_end_though_every_victim_starts_over(seed: int) -> None:
    draw = random.Random(seed)
    assembly = crowded(draw)
    made = []
    for turn in range(TURNS):
        if turn in (0, 4, 8):
            assembly.say([said for at in "xy" for said in assembly.fleet.submit(arrival(draw, f"{at}{turn}"))])
        assembly.committer.lead()
        assembly.cycle()
        assembly.clock.now += 0.01  # the fleet answers a moment later
        assembly.obey()
        assembly.pass_time(2.0)
        made.append(len(decisions(assembly)))
    assert made[0], "there is something to decide"
    assert made[-1] == made[-QUIET], "nothing new is decided on a state in which nothing happens"
    report = assembly.report()
    assert report.broken == []
    assert report.victims
    assert assembly.fleet.tally.misfits == 0
