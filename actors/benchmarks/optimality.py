"""How far the price of victims is from the optimum: random fleets, each also solved to proven optimality.

There are five kinds: gangs with one GPU for each task, with whole nodes, with two shapes, and with four GPUs for each
task beside work that is elastic or bound by roles. Fleets have 16 to 128 nodes; the purpose is preempt, or reclaim from
three queues. Prices are compared field by field, as prices of plans are: an instance counts with the first field in
which it is above the least, else with its first field that is not zero. Whether a reclaim takes from the fairest queues
that suffice (the first field of its price) is reported separately, since a rank is no amount. In reclaim the policy
touches a higher priority only if that saves a step of efficiency ("Gang-Aware Preemption and Reclaim", section 3.5). So
the least is sought among sets without a priority above those chosen, and among sets that do save such a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from actors.benchmarks.exact_program import Levels, Program
from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, GeneratedFleet, generate
from pipeline.cluster.arrays import Floats, frozen
from pipeline.decision.attempt import Attempt
from pipeline.decision.price import Price
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.selection import select
from pipeline.solvers.bundles.solver import search_of

KINDS = ("one GPU", "whole nodes", "two shapes", "elastic", "roles")
_SIZES = (16, 32, 64, 128)
#: By kind: GPUs of a task, and the number of nodes for each task of the gang.
_GANGS = {"one GPU": (1, 1 / 2), "whole nodes": (8, 5), "two shapes": (2, 1), "elastic": (4, 2), "roles": (4, 2)}
#: Distance between two of the ten priorities that are drawn.
_PRIORITIES = 3
_EQUAL = 2e-6


@dataclass(frozen=True)
class Comparison:
    """An instance: its kind, size and purpose, and the deciding field of what was chosen and of the least.

    ``least`` is None if the program did not prove it in time. ``fair``: whether it is proved that no fairer queues
    suffice for a reclaim; if not, ``least`` is that of victims whose queues are as unfair to take from as those chosen.
    """

    kind: str
    nodes: int
    purpose: Purpose
    chosen: float
    least: float | None
    fair: bool = True


def compare(seed: int) -> Comparison | None:
    """Make an instance, choose victims and solve it exactly; None if no eviction is needed, or none helps."""
    kind, nodes = KINDS[seed % len(KINDS)], _SIZES[seed // len(KINDS) % len(_SIZES)]
    purpose = (Purpose.PREEMPT, Purpose.RECLAIM)[seed // (len(KINDS) * len(_SIZES)) % 2]
    attempt = _attempt(seed, kind, nodes, purpose)
    host, need = host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False)
    search = search_of(attempt, host, need)
    found = select(search, 0)
    if not isinstance(found, Selection) or len(found.victims) == 0:
        return None
    fair, program = _is_fair(search, found.price.queue_rank), Program(search, found.price.queue_rank)
    chosen, least = Levels.of(found.price, program.levels), _least(program, search, found.price)
    if least is None:
        return Comparison(kind, nodes, purpose, float(chosen.work.sum()), None, fair)
    return Comparison(kind, nodes, purpose, *_deciding(chosen.work, least.work), fair)


def _is_fair(search: BundleSearch, chosen: int) -> bool:
    """Whether it is proved that no fairer queues suffice."""
    fairer = np.unique(search.queue_rank[search.snapshot.tasks.podgroup[search.candidate]])
    fairer = fairer[fairer < chosen]
    return len(fairer) == 0 or Program(search, int(fairer[-1])).works() is False


def _least(program: Program, search: BundleSearch, chosen: Price) -> Levels | None:
    """The least of all sets that policy may choose instead; None if that was not proved in time."""
    least, step = program.least(), search.rules.tolerance
    highest = search.snapshot.podgroups.priority[search.snapshot.tasks.podgroup[search.candidate]].max()
    if least is None or step == 0 or chosen.highest_priority >= highest:
        return least
    same = Program(search, chosen.queue_rank, chosen.highest_priority).least()
    return least if same is not None and least.saves(same, step) else same


def _deciding(chosen: Floats, least: Floats) -> tuple[float, float]:
    """Both values of the first field that differs, else of the first that is not zero."""
    differs = np.flatnonzero(np.abs(chosen - least) > _EQUAL)
    at = differs[0] if len(differs) else np.argmax(least > 0)
    return float(chosen[at]), float(least[at])


def _attempt(seed: int, kind: str, nodes: int, purpose: Purpose) -> Attempt:
    gpus, every = _GANGS[kind]
    rigid = {"elastic": 0.0, "roles": 0.3}.get(kind, (0.0, 0.6, 0.9)[seed // 40 % 3])
    queues = 0 if purpose is Purpose.PREEMPT else 3
    fleet = generate(nodes, GangSpec(max(int(nodes / every), 2), gpus, "pod"), seed=seed, rigidify=rigid, queues=queues)
    fleet = _of_kind(fleet, kind)
    policy = load_profile("default")
    return Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW, purpose.value)


def _of_kind(fleet: GeneratedFleet, kind: str) -> GeneratedFleet:
    snapshot = fleet.snapshot
    groups, tasks = snapshot.podgroups, snapshot.tasks
    priority = np.minimum(groups.priority, _PRIORITIES * 3) // 3
    changed = replace(groups, priority=frozen(priority, np.int32))
    if kind == "elastic":
        least = np.where(np.arange(len(groups)) == fleet.gang, groups.min_available, groups.min_available // 2)
        changed = replace(changed, min_available=frozen(least, np.int32))
    shape = tasks.shape.copy()
    if kind == "two shapes":
        mine = np.flatnonzero(tasks.podgroup == fleet.gang)
        eights = np.flatnonzero(snapshot.shapes.request[:, -1] == 4)  # noqa: PLR2004 - four GPUs
        shape[mine[::3]] = eights[0]
    shapes = replace(tasks, shape=frozen(shape, np.int32), priority=frozen(priority[tasks.podgroup], np.int32))
    return GeneratedFleet(replace(snapshot, podgroups=changed, tasks=shapes), fleet.gang)
