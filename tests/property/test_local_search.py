"""The local search compiled, and as plain Python."""

import pytest

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, generate
from actors.fleets.mixed import with_shapes_in_subgroups
from actors.warming.local_search import all_but_one
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.records import replace
from pipeline.solvers.bundles.covering.cheaper import of_local_search
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.solver import search_of
from tests.support.twins import uncompiled


def searched(queues: int, purpose: Purpose, gang: GangSpec) -> str:
    """What a local search finds that begins with all candidates but one, on 32 nodes."""
    fleet = generate(32, gang, queues=queues)
    attempt = Attempt(fleet.snapshot, load_profile("default"), purpose, (fleet.gang,), None, NOW, purpose.value)
    search = search_of(attempt, host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False))
    return repr(of_local_search(DomainBundles(search, 0), all_but_one(search)))


@pytest.mark.parametrize(
    ("queues", "purpose", "gang"),
    [
        (0, Purpose.PREEMPT, GangSpec(8)),
        (0, Purpose.PREEMPT, GangSpec(4, gpus=4)),
        (3, Purpose.RECLAIM, GangSpec(16)),
    ],
)
def test_the_compiled_local_search_and_its_plain_twin_find_the_same(
    queues: int, purpose: Purpose, gang: GangSpec
) -> None:
    compiled = searched(queues, purpose, gang)
    with uncompiled():
        assert searched(queues, purpose, gang) == compiled


@pytest.mark.parametrize(
    ("nodes", "tasks", "seed", "queues", "purpose"),
    [
        (60, 16, 1, 4, Purpose.RECLAIM),
        (60, 16, 2, 0, Purpose.PREEMPT),
        (520, 256, 4, 8, Purpose.RECLAIM),
        (520, 256, 3, 0, Purpose.PREEMPT),
    ],
)
def test_cheaper_victims_are_found_for_parts_of_several_shapes_that_need_a_rack_each(
    nodes: int, tasks: int, seed: int, queues: int, purpose: Purpose
) -> None:
    plain = generate(nodes, GangSpec(tasks), seed=seed, queues=queues, rigidify=0.5)
    fleet = with_shapes_in_subgroups(plain, gang=True)
    polished = load_profile("default")
    plans = [
        propose(Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW, purpose.value))
        for policy in (replace(polished, polish=False), polished)
    ]
    kept, searched = (one.price for one in plans if isinstance(one, Plan))
    assert searched < kept
