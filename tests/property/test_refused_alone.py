"""What quotas refuse alone ends the search for other victims; the decisions are those of that search.

More seeds by

    python -m tests.property.test_refused_alone 0 2000
"""

import random
import sys
from typing import Any
from unittest.mock import patch

import pytest

from actors.cli.simulate import Case, open_case
from pipeline.cycle import cycle
from pipeline.policy import Purpose
from pipeline.solvers.bundles.covering.put_right import out_of_order
from tests.support.depth import sampled
from tests.support.seeds import compare
from tests.support.small_clusters import podgroup, world

GPU, NOW = "nvidia.com/gpu", 1_000_000.0


def tight(seed: int, purpose: Purpose) -> dict[str, Any]:
    """Full nodes, whose podgroups may lose little: queues hold hardly more than they deserve, and budgets bind.

    Some podgroups are short of a task, so that all others of theirs are surplus.
    """
    rng, reclaims = random.Random(seed), purpose is Purpose.RECLAIM
    nodes = {f"n{at}": rng.choice([4, 8]) for at in range(rng.randint(6, 16))}
    left, podgroups, held = dict(nodes), list[dict[str, Any]](), dict.fromkeys("acd", 0)
    while any(left.values()):
        size, places = rng.choice([1, 1, 2, 4]), list[str | None]()
        for _ in range(rng.choice([1, 1, 2, 4, 6])):
            if fitting := [name for name in left if left[name] >= size]:
                places.append(rng.choice(fitting))
                left[str(places[-1])] -= size
        if places:
            queue, minimum = rng.choice("acd"), rng.randint(1, len(places)) if rng.random() < 0.4 else len(places)
            held[queue] += size * len(places)
            said = {"priority": rng.randint(0, 2), "started": NOW - 3600 * rng.expovariate(1 / 4), "queue": queue}
            said |= {"phase": "Running", "min_available": minimum, "of_each": {"labels": {"app": rng.choice("xyz")}}}
            asks = {GPU: size, "cpu": size * rng.choice([1, 1, 2])}
            if rng.random() < 0.1:
                places, said["min_available"] = [*places, None], len(places) + 1
            podgroups.append(podgroup(f"low{len(podgroups)}", [asks] * len(places), places, **said))
    for at in range(rng.randint(1, 6)):
        sizes = [rng.choice([1, 2, 4])] * rng.choice([1, 1, 2, 3])
        said = {"queue": "b" if reclaims else rng.choice("acd"), "priority": 9, "phase": "Inqueue"}
        said["min_available"] = len(sizes)
        podgroups.append(podgroup(f"high{at}", [{GPU: size, "cpu": 1} for size in sizes], **said))
    return world(
        {name: {GPU: many, "cpu": 64} for name, many in nodes.items()},
        _queues(rng, held), podgroups, now=NOW, profile="default", actions=[purpose.value],
    ) | {"disruption_budgets": _budgets(rng, reclaims)}  # fmt: skip


def _queues(rng: random.Random, held: dict[str, int]) -> dict[str, dict[str, Any]]:
    whole, spares = sum(held.values()), [0, 0, 1, 2, 3, 8]
    queues = {
        name: {"deserved": {GPU: max(many - rng.choice(spares), 0)}, **({"parent": "r"} if name != "a" else {})}
        for name, many in held.items()
    }
    if rng.random() < 0.3:
        queues["c"]["deserved"]["cpu"] = held["c"]
    of_parent = queues["c"]["deserved"][GPU] + queues["d"]["deserved"][GPU] + rng.choice([0, 0, 1, 2])
    return {"r": {"deserved": {GPU: of_parent}}, **queues, "b": {"deserved": {GPU: whole}}}


def _budgets(rng: random.Random, reclaims: bool) -> list[dict[str, Any]]:
    some = rng.sample("xyz", rng.choice([0, 1, 2]) if reclaims else 3)
    return [
        {"name": one, "match_labels": {"app": one}, "disruptions_allowed": rng.choice([0, 0, 1, 2, 3])} for one in some
    ]


def decided(case: Case, *, asks: bool) -> tuple[str, int]:
    """What a cycle decides and why, and how often other victims are sought; with the question and without it."""
    asked = out_of_order._may_alone if asks else lambda _: True
    with (
        patch.object(out_of_order, "_may_alone", asked),
        patch.object(out_of_order, "searched", wraps=out_of_order.searched) as sought,
    ):
        done = cycle(case.snapshot, case.policy, case.now)
    return repr((done.plans, done.unplaced)), sought.call_count


def defect_of(seed: int) -> str | None:
    """What is decided differently where what quotas refuse alone ends the search; None if nothing is."""
    for purpose in (Purpose.PREEMPT, Purpose.RECLAIM):
        (told, _), (before, _) = (decided(open_case(tight(seed, purpose)), asks=asks) for asks in (True, False))
        if told != before:
            return f"{purpose.value}: {told}, without the question {before}"
    return None


@pytest.mark.parametrize("seed", range(sampled(60)))
def test_the_decisions_and_their_reasons_are_those_of_the_search(seed: int) -> None:
    assert defect_of(seed) is None


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
def test_most_searches_without_a_lawful_victim_are_not_made(purpose: Purpose) -> None:
    made, all_ = (
        sum(decided(open_case(tight(seed, purpose)), asks=asks)[1] for seed in range(30)) for asks in (True, False)
    )
    assert 0 < made < all_ / 5  # by sums alone a quarter in reclaim, by places alone as well


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
