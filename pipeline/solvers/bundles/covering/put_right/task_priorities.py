"""Surplus by task priority ("Gang-Aware Preemption and Reclaim", section 3.4.1, phase 1).

Of a podgroup's tasks that cover as much of the need, the one of the lowest priority goes first, whatever its size. A
price does not know this order, so that a set that was made cheaper may lack it; here it is put right.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows, distinct, is_among
from pipeline.cluster.orders import first_of
from pipeline.kernels import kernel
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.records import Entries
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.cover import each_alone
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.every_set import selected_of, tries
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.sets import Sets, outcome_of_set


class _Surplus(NamedTuple):
    """What goes as surplus of podgroups that do not break, and what could go instead; both in the order of victims.

    Attributes
    ----------
    goes: int64[C]
        Entries of the selection.
    other: int64[D]
        Entries of the same podgroups that stay, by podgroup.
    first, last: int64[C]
        For each that goes, those of ``other`` that are of its podgroup; those before ``first`` were refused.
    """

    goes: Rows
    other: Rows
    first: Rows
    last: Rows


def by_task_priority(here: DomainBundles, found: Selection) -> Selection:
    """The selection with tasks of lower priority in place of others of their podgroup, as far as the gang places.

    They cover as much of the need, and have the same role and subgroup. All are exchanged at once if that is lawful,
    else a half of them, and so on. What is not needed any more then returns.
    """
    if not _is_outranked(here, found):
        return found
    terms, surplus, changed = here.search.terms, _surplus_of(here, found), False
    left = tries(len(here.search.snapshot.nodes))
    done, used = np.zeros(len(surplus.goes), bool), np.zeros(len(surplus.other), bool)
    while left > 0:
        goes, instead = _pairs(surplus, done, used, terms.entries, terms.worth.coverage)
        todo = [np.arange(len(goes))] if len(goes) else []
        if not todo:
            break
        while todo and left > 0:
            some, left = todo.pop(), left - 1
            stay, leave = surplus.goes[goes[some]], surplus.other[instead[some]]
            other = _selection_of(here, np.append(found.entry[~is_among(found.entry, stay)], leave), found)
            if other is not None:
                found, changed, done[goes[some]], used[instead[some]] = other, True, True, True
            elif len(some) == 1:
                surplus.first[goes[some]] = instead[some] + 1
            else:
                todo += [some[len(some) // 2 :], some[: len(some) // 2]]
    return _without_needless(here, found) if changed else found


def _selection_of(here: DomainBundles, entry: Rows, found: Selection) -> Selection | None:
    """The entries as a selection in which the same podgroups break, if the gang places and the law allows it."""
    terms = here.search.terms
    entry = entry[np.lexsort((entry, terms.entries.podgroup[entry]))]
    owner = terms.entries.podgroup[entry].astype(np.int64)
    start = first_of(owner)[0]
    owner, gone = owner[start], np.ones((1, len(entry)), bool)
    sets = Sets(owner, np.append(start, len(entry)), entry, gone, is_among(owner, found.broken)[None])
    made = selected_of(here, outcome_of_set(sets, 0, terms, here.search.seats()), NO_ROWS)
    return None if made is None else replace(made, given_back=found.given_back)


def _without_needless(here: DomainBundles, found: Selection) -> Selection:
    """The selection without surplus that may return by slots, that of the most important podgroups first.

    Within a podgroup the last in the order of victims returns first.
    Slots of each shape are counted alone: where all that may return leaves tasks of several shapes without a place, a
    half of it returns, and so on.
    """
    goes = _in_order(here, _going(here, found))[::-1]
    ranked = here.search.rank_before[here.search.terms.entries.podgroup[goes]]
    goes = goes[np.argsort(-ranked, kind="stable")]
    returned = FreeRoom(here.search, here.domain, found.entry).reprieve(each_alone(goes), None)
    todo = [goes[returned]] if returned.any() else []
    left = tries(len(here.search.snapshot.nodes))
    while todo and left > 0:
        some, left = todo.pop(), left - 1
        fewer = _selection_of(here, found.entry[~is_among(found.entry, some)], found)
        if fewer is not None:
            found = fewer
        elif len(some) > 1:
            todo += [some[len(some) // 2 :], some[: len(some) // 2]]
    return found


def _going(here: DomainBundles, found: Selection) -> Rows:
    """int64[C]: the entries of the selection whose podgroups do not break."""
    return found.entry[~is_among(here.search.terms.entries.podgroup[found.entry], found.broken)]


def _in_order(here: DomainBundles, some: Rows) -> Rows:
    """Entries in the order of victims: the most coverage, lowest priority, least waste, the youngest, the last name."""
    worth, entries = here.search.terms.worth, here.search.terms.entries
    task, shape = entries.task[some], entries.shape[some]
    details = entries.of_tasks
    keys = -details.order[task], worth.waste[shape], details.priority[task], worth.coverage[shape]
    return some[np.lexsort(keys)]


def _is_outranked(here: DomainBundles, found: Selection) -> bool:
    """Whether a candidate of the domain has a lower priority than a task of its podgroup that goes as surplus."""
    search, tasks = here.search, here.search.snapshot.tasks
    rows = search.terms.entries.task[_going(here, found)]
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


def _surplus_of(here: DomainBundles, found: Selection) -> _Surplus:
    entries, goes = here.search.terms.entries, _in_order(here, _going(here, found))
    begin, end = (int(here.search.site.start[node]) for node in here.nodes)
    owner = entries.podgroup[goes].astype(np.int64)
    mine = is_among(entries.podgroup[begin:end], distinct(entries.podgroup[goes])) & entries.candidate[begin:end]
    other = begin + mine.nonzero()[0]
    other = _in_order(here, other[~is_among(other, found.entry)])
    theirs = entries.podgroup[other].astype(np.int64)
    order = theirs.argsort(kind="stable")
    first, last = (np.searchsorted(theirs[order], owner, side=side) for side in ("left", "right"))
    return _Surplus(goes, other[order], first, last)


@kernel
def _pairs(surplus: _Surplus, done: Bools, used: Bools, entries: Entries, coverage: Longs) -> tuple[Rows, Rows]:
    """Positions of entries that may stay, the last first, and of those that may go instead.

    What is ``done`` is matched no more, and what is ``used`` goes for nothing else.
    """
    goes, details, used = surplus.goes, entries.of_tasks, used.copy()
    stay, leave, many = np.empty(len(goes), np.int64), np.empty(len(goes), np.int64), 0
    for at in range(len(goes) - 1, -1, -1):
        row, covers = entries.task[goes[at]], coverage[entries.shape[goes[at]]]
        for one in range(surplus.first[at], 0 if done[at] else surplus.last[at]):
            lower = entries.task[surplus.other[one]]
            alike = details.role[lower] == details.role[row] and details.subgroup[lower] == details.subgroup[row]
            less = details.priority[lower] < details.priority[row]
            if alike and less and not used[one] and coverage[entries.shape[surplus.other[one]]] <= covers:
                stay[many], leave[many], used[one] = at, one, True
                many += 1
                break
    return stay[:many], leave[:many]
