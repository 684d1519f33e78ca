"""Surplus by task priority ("Gang-Aware Preemption and Reclaim", section 3.4.1, phase 1).

Of a podgroup's tasks that cover as much of the need, the one of the lowest priority goes first, whatever its size. A
price does not know this order, so that a set that was made cheaper may lack it; here it is put right.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows, distinct, first_of, is_among
from pipeline.kernels import kernel
from pipeline.records import replace
from pipeline.solvers.bundles.covering.cheaper import selected_of
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.sets import Sets, outcome_of_set

#: At most this many other sets are tried.
_TRIED = 64

#: An entry that stays, and those that go in its place.
_Change = tuple[int, Rows]


def by_task_priority(here: DomainBundles, found: Selection) -> Selection:
    """The selection with tasks of lower priority in place of others of their podgroup, as far as the gang places.

    They cover as much of the need, and have the same role and subgroup. What is not needed any more then returns.
    """
    left, changed = _TRIED, False
    while left > 0 and _is_outranked(here, found):
        left, other = _first_lawful(here, found, _exchanges(here, found), left)
        if other is None:
            break
        found, changed = other, True
    while changed and left > 0:
        left, other = _first_lawful(here, found, _returns(here, found), left)
        if other is None:
            break
        found = other
    return found


def _first_lawful(
    here: DomainBundles, found: Selection, changes: Iterable[_Change], left: int
) -> tuple[int, Selection | None]:
    """How many tries are left, and the selection after the first change that is lawful; None if none is."""
    for stays, instead in changes:
        if left == 0:
            break
        left -= 1
        other = _selection_of(here, np.append(found.entry[found.entry != stays], instead), found)
        if other is not None:
            return left, other
    return left, None


def _selection_of(here: DomainBundles, entry: Rows, found: Selection) -> Selection | None:
    """The entries as a selection in which the same podgroups break, if the gang places and the law allows it."""
    terms = here.search.terms
    entry = entry[np.lexsort((entry, terms.entries.podgroup[entry]))]
    owner = terms.entries.podgroup[entry].astype(np.int64)
    start = first_of(owner)[0]
    owner, gone = owner[start], np.ones((1, len(entry)), bool)
    sets = Sets(owner, np.append(start, len(entry)), entry, gone, is_among(owner, found.broken)[None], complete=False)
    made = selected_of(here, outcome_of_set(sets, 0, terms, here.search.seats()), NO_ROWS)
    return None if made is None else replace(made, given_back=found.given_back)


def _surplus(here: DomainBundles, found: Selection) -> Rows:
    """int64[C]: the entries of the selection whose podgroups do not break, in the order of victims."""
    some = found.entry[~is_among(here.search.terms.entries.podgroup[found.entry], found.broken)]
    return some[_order(here, some)]


def _order(here: DomainBundles, some: Rows) -> Rows:
    """The order of victims: the most coverage, the lowest priority, the least waste, the youngest, the last name."""
    worth, entries = here.search.terms.worth, here.search.terms.entries
    task, shape = entries.task[some], entries.shape[some]
    details = entries.of_tasks
    return np.lexsort((-details.order[task], worth.waste[shape], details.priority[task], worth.coverage[shape]))


def _is_outranked(here: DomainBundles, found: Selection) -> bool:
    """Whether a candidate of the domain has a lower priority than a task of its podgroup that goes as surplus."""
    search, tasks = here.search, here.search.snapshot.tasks
    entries = search.terms.entries
    rows = entries.task[found.entry[~is_among(entries.podgroup[found.entry], found.broken)]]
    start, member = search.snapshot.by_podgroup
    columns = search.candidate, tasks.node, tasks.podgroup, tasks.priority
    return bool(_lower_there(rows, start, member, here.nodes, *columns))


@kernel
def _lower_there(
    rows: Rows, start: Longs, member: Rows, nodes: tuple[int, int],
    candidate: Bools, node: Ids, podgroup: Ids, priority: Ids,
) -> bool:  # fmt: skip
    """Whether a podgroup of ``rows`` has a candidate of lower priority on nodes from the first up to the second."""
    group, known = NONE, 0
    for row in rows:
        if podgroup[row] == group and priority[row] <= known:
            continue
        group, known = podgroup[row], priority[row]
        for other in member[start[group] : start[group + 1]]:
            if candidate[other] and priority[other] < known and nodes[0] <= node[other] < nodes[1]:
                return True
    return False


def _exchanges(here: DomainBundles, found: Selection) -> Iterator[_Change]:
    """The surplus that may stay, the last first; for each what may go instead, in the order of victims."""
    entries, surplus = here.search.terms.entries, _surplus(here, found)
    begin, end = (int(here.search.site.start[node]) for node in here.nodes)
    mine = is_among(entries.podgroup[begin:end], distinct(entries.podgroup[surplus])) & entries.candidate[begin:end]
    others = begin + mine.nonzero()[0]
    others = others[~is_among(others, found.entry)]
    others = others[_order(here, others)]
    for one in surplus[::-1].tolist():
        for other in others[_may_go_for(here, one, others)].tolist():
            yield one, np.array([other])


def _may_go_for(here: DomainBundles, one: int, others: Rows) -> Bools:
    """bool[K]: others of its podgroup, role and subgroup that have a lower priority and cover as much of the need."""
    entries, coverage = here.search.terms.entries, here.search.terms.worth.coverage
    details, task, row = entries.of_tasks, entries.task[others], entries.task[one]
    alike = (entries.podgroup[others] == entries.podgroup[one]) & (details.role[task] == details.role[row])
    alike &= details.subgroup[task] == details.subgroup[row]
    covers = coverage[entries.shape[others]] <= coverage[entries.shape[one]]
    return np.asarray(alike & covers & (details.priority[task] < details.priority[row]))


def _returns(here: DomainBundles, found: Selection) -> Iterator[_Change]:
    """The surplus one after the other, with nothing in its place: the last in the order of victims first."""
    for one in _surplus(here, found)[::-1].tolist():
        yield one, NO_ROWS
