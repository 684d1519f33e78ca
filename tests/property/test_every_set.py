"""Profile ``koordinator`` on small clusters with everything that decides, against every set of victims.

A job gets room if some lawful set makes it, in the first layer that has any, and all of its minimum or nothing. What it
takes is lawful; no victim could have stayed; of the domains that cost as much it is the closest fit, and in it
the job is gathered in the lowest domain that takes it. The test takes a sample; more seeds by

    python -m tests.property.test_every_set preempt 0 4000
"""

import sys
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import pytest

from tests.support.depth import sampled
from tests.support.every_set import EverySet, Task
from tests.support.gathering import Outcome
from tests.support.lending_clusters import LendingCluster
from tests.support.seeds import compare

SEEDS = range(sampled(100))
#: Where any of these plays a part, slots alone do not say what fits, or the minimum may be made up in several ways.
_NOT_ALIKE = {"shapes", "repelled", "cards", "subgroups", "multiples", "elastic"}


class Taken(NamedTuple):
    """What a cycle takes for a job: victims, the tasks that get a place, their nodes, and the domain around those."""

    gone: tuple[Task, ...]
    way: tuple[Task, ...]
    on: set[str]
    layer: int
    domain: str


def defect_of(seed: int, purpose: str) -> str | None:
    """What is wrong with what one cycle decides; None if nothing is."""
    cluster = LendingCluster(seed, purpose)
    document = cluster.document()
    found, every = Outcome(document), EverySet(document)
    room = every.best(every.ways, range(len(every.layers)))
    placed = {**found.bound, **found.nominated}
    if not placed or room is None:
        return None if bool(placed) == (room is not None) else f"missed: {room}" if room else f"unlawful: {placed}"
    way = tuple(task for task in every.tasks if task.name in placed)
    if not all(every.reaches(name, [task for task in way if task.group == name]) for name in every.job):
        return f"only a part of the job: {placed}"
    if not found.evicted:
        return None  # where there is room, tasks beyond the minimum may start too
    gone, on = tuple(task for task in every.tasks if task.name in found.evicted), set(placed.values())
    if not set(gone) <= set(every.candidates) or not every.lawful(gone, way):
        return f"may not go: {found.evicted}"
    around = [(at, one) for at, some in enumerate(every.layers) for one in some if on <= set(every.domains[one][1])]
    if not around or around[0][0] > room.layer:
        return f"wider: {placed}, {room}"
    taken = Taken(gone, way, on, *around[0])
    wrong = _wrong_place(every, taken, placed)
    return wrong or (None if cluster.about & _NOT_ALIKE else _wrong_rank(every, taken, purpose))


def _wrong_place(every: EverySet, taken: Taken, placed: dict[str, str]) -> str | None:
    """What is wrong with the nodes or the victims."""
    places = list(every.places(taken.way, taken.gone, taken.domain))
    if placed not in [{name: node for name, (node, _) in one.items()} for one in places]:
        return f"has no room: {placed}"
    if min(_height(every, {node for node, _ in one.values()}) for one in places) < _height(every, taken.on):
        return f"could be closer: {placed}"
    for some in (one for many in range(len(taken.gone)) for one in combinations(taken.gone, many)):
        if every.lawful(some, taken.way) and every.fits(taken.way, some, taken.domain):
            return f"could stay: {[task.name for task in taken.gone if task not in some]}"
    return None


def _height(every: EverySet, on: set[str]) -> int:
    return min(height for height, nodes in every.domains.values() if on <= set(nodes))


def _wrong_rank(every: EverySet, taken: Taken, purpose: str) -> str | None:
    """What else would have come first for a job of tasks alike: less harm, or a closer fit at the same harm."""
    gone, way, on, layer, domain = taken
    harm, best = every.harm(gone, way), every.best([way], [layer])
    if purpose == "preempt":  # in reclaim the order in which quotas are used up decides too
        if best is not None and best.harm < harm:
            return f"costs {harm}: {best}"
        alike = [one for one in every.layers[layer] if _costs(every, way, one) == harm]
        tightest = min((_slots(every, way, one, every.candidates) for one in alike), default=0)
        if alike and tightest < _slots(every, way, domain, every.candidates):
            return f"other domains fit more closely than {domain}: {alike}"
    inside = [one for one, (_, nodes) in every.domains.items() if set(nodes) <= set(every.domains[domain][1])]
    fitting = [one for one in inside if _slots(every, way, one, gone) >= len(way)]
    lowest = [one for one in fitting if every.domains[one][0] == min(every.domains[at][0] for at in fitting)]
    mine = [one for one in lowest if on <= set(every.domains[one][1])]
    if min(_climb(every, way, one, gone) for one in mine) > min(_climb(every, way, one, gone) for one in lowest):
        return f"others fit more closely than {mine}: {lowest}"
    return None


def _costs(every: EverySet, way: tuple[Task, ...], domain: str) -> object:
    some = next(every.sets(way, domain), None)
    return None if some is None else every.harm(some, way)


def _climb(every: EverySet, way: tuple[Task, ...], domain: str, gone: tuple[Task, ...]) -> list[int]:
    """The slots of a domain and of each one around it."""
    height, inside = every.domains[domain][0], set(every.domains[domain][1])
    around = sorted((at, one) for one, (at, nodes) in every.domains.items() if inside <= set(nodes) and at > height)
    return [_slots(every, way, one, gone) for one in (domain, *(one for _, one in around))]


def _slots(every: EverySet, way: tuple[Task, ...], domain: str, gone: Sequence[Task]) -> int:
    """How many tasks of the job the nodes of a domain take, each node by itself, up to all of them."""
    return sum(
        max(many for many in range(len(way) + 1) if every.fits(way[:many], gone, node))
        for node in every.domains[domain][1]
    )


@pytest.mark.parametrize("purpose", ["preempt", "reclaim"])
def test_there_is_room_for_a_job_wherever_any_set_of_victims_makes_it_and_no_victim_could_have_stayed(
    purpose: str,
) -> None:
    assert {seed: defect for seed in SEEDS if (defect := defect_of(seed, purpose))} == {}


@pytest.mark.parametrize("purpose", ["preempt", "reclaim"])
def test_the_sample_is_about_jobs_that_evict_and_jobs_that_are_refused(purpose: str) -> None:
    made = [Outcome(LendingCluster(seed, purpose).document()) for seed in SEEDS]
    assert {bool(one.evicted) for one in made} == {True, False}


if __name__ == "__main__":
    sys.exit(compare(lambda seed: defect_of(seed, sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
