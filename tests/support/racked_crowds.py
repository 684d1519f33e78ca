"""Three racks full of small podgroups, for a gang that waits, some of it in parts; and what victims lose there."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, Floats, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.decision.price import in_units, needed_by
from pipeline.placement.need import need_of
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from tests.support.builders import searching
from tests.support.placing import RACK, Work, placed

#: How many nodes each rack of the one block has.
RACKS = (2, 1, 2)


def crowd(draw: st.DrawFn, parts: Sequence[Sequence[int]], others: Sequence[int]) -> tuple[Snapshot, Floats]:
    """Nodes with podgroups 1 to 3 on them, and podgroup 0, the gang; and what each podgroup weighs.

    Parameters
    ----------
    parts, others
        The cores that each task of the gang asks for, by part; and those of its tasks that are in none.
    """
    cores = draw(st.lists(st.integers(1, 4), min_size=sum(RACKS), max_size=sum(RACKS)))
    work = [Work(0, cpu, subgroup=part) for part, tasks in enumerate(parts) for cpu in tasks]
    work += [Work(0, cpu) for cpu in others]
    groups = [{"min_available": len(work)}]
    groups += [{"min_available": draw(st.integers(0, 4)), "priority": draw(st.integers(0, 3))} for _ in range(3)]
    left = list(cores)
    for _ in range(draw(st.integers(1, 8))):
        task = Work(draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(0, len(cores) - 1)))
        if left[task.node] >= task.cpu:
            left[task.node] -= task.cpu
            work.append(task)
    weights = np.array([1.0, *(draw(st.sampled_from([0.0, 0.5, 1.0, 7.25])) for _ in range(3))])
    subgroups = [(0, NONE, len(tasks), RACK) for tasks in parts]
    return placed(cores, work, racks=RACKS, racks_a_block=3, groups=groups, subgroups=subgroups), weights


def search_on(snapshot: Snapshot, weights: Floats, **said: Any) -> BundleSearch:
    """A search for the gang, in which all running tasks of the other podgroups are candidates."""
    candidate = (snapshot.tasks.status == RUNNING) & (snapshot.tasks.podgroup != 0)
    return searching(snapshot, 0, candidate=frozen(candidate, bool), lost_work=frozen(weights, float), **said)


Lost = tuple[tuple[int, float], ...]


def lost(snapshot: Snapshot, weights: Floats, rows: Rows) -> tuple[Lost, Lost]:
    """Work that victims lose, by priority from the highest: of podgroups that break, and as surplus.

    A podgroup that breaks loses all it has everywhere, one that was broken before loses nothing.
    """
    tasks, need = snapshot.tasks, need_of(snapshot, (0,))
    unit = in_units(snapshot.shapes.request, needed_by(need.total))[tasks.shape] * weights[tasks.podgroup]
    have, minimum, running = snapshot.counts.running, snapshot.podgroups.min_available, tasks.status == RUNNING
    gone = np.bincount(tasks.podgroup[rows], minlength=len(have))
    broken: dict[int, float] = {}
    surplus: dict[int, float] = {}
    for group in np.flatnonzero(gone).tolist():
        priority = int(snapshot.podgroups.priority[group])
        if have[group] >= minimum[group] > have[group] - gone[group]:
            broken[priority] = broken.get(priority, 0.0) + float(unit[running & (tasks.podgroup == group)].sum())
        else:
            mine = unit[rows[tasks.podgroup[rows] == group]].sum() if have[group] >= minimum[group] else 0.0
            surplus[priority] = surplus.get(priority, 0.0) + float(mine)
    ordered = (tuple(sorted(one.items(), reverse=True)) for one in (broken, surplus))
    return next(ordered), next(ordered)
