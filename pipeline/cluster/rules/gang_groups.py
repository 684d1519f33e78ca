"""Which podgroups start together: gang groups, as the lists of Koordinator's annotation ``groups`` say it.

A podgroup starts only with those that its own list names, and with those that theirs name. The lists need not agree:
if a names b and b names none, a waits for b and b waits for no other.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups

#: Rows of podgroups that start together.
GangGroup: TypeAlias = tuple[int, ...]


class GangGroups(NamedTuple):
    """The gang groups of a snapshot.

    Attributes
    ----------
    gang_group
        By row, with which podgroups each starts, itself included; only those that name others. First come those that
        wait for all of them, then the others, each by age and name.
    complete: bool[G]
        False for one that starts only with a podgroup that is not there.
    """

    gang_group: dict[int, GangGroup]
    complete: Bools


def gang_group_of(snapshot: Snapshot, podgroup: int) -> GangGroup:
    """The podgroups that start together with this one, itself included: the first speaks for all."""
    return snapshot.once(gang_groups).gang_group.get(podgroup, (podgroup,))


def waiting_for_all(snapshot: Snapshot, gang_group: GangGroup) -> list[int]:
    """Those podgroups of a gang group that wait for all the others."""
    return [podgroup for podgroup in gang_group if gang_group_of(snapshot, podgroup) == gang_group]


def starting_with(snapshot: Snapshot, podgroups: Iterable[int]) -> set[int]:
    """Those podgroups, and all that start only together with one of them."""
    wanted = set(podgroups)
    listed = snapshot.once(gang_groups).gang_group
    return wanted | {row for row, gang_group in listed.items() if not wanted.isdisjoint(gang_group)}


def gang_groups(snapshot: Snapshot) -> GangGroups:
    """The gang groups; ask for them with ``Snapshot.once``."""
    groups = snapshot.podgroups
    listed, complete = groups.once(_listed), np.ones(len(groups), bool)
    if len(listed) == 0:
        return GangGroups({}, complete)
    named = np.flatnonzero((groups.gang != NONE) & groups.alive)
    row_of = dict(zip(groups.gang[named].tolist(), named.tolist(), strict=True))
    reached = {number: _reached(snapshot, number, row_of) for number in np.unique(groups.gang_group[listed]).tolist()}
    members = {row: reached[int(groups.gang_group[row])] for row in listed.tolist()}
    gang_group: dict[int, GangGroup] = {}
    ordered: dict[frozenset[int], GangGroup] = {}
    for row, found in members.items():
        complete[row] = NONE not in found
        if found not in ordered:
            there = sorted(found - {NONE}, key=lambda one: (members.get(one) != found, int(groups.order[one])))
            ordered[found] = tuple(there)
        gang_group[row] = ordered[found]
    return GangGroups(gang_group, complete)


def _listed(groups: Podgroups) -> Rows:
    """int64[K]: podgroups with a list."""
    return np.flatnonzero((groups.gang_group != NONE) & groups.alive)


def _reached(snapshot: Snapshot, number: int, row_of: dict[int, int]) -> frozenset[int]:
    """Rows of the podgroups that a list names, and those that they name; NONE among them: one is not there."""
    lists, own = snapshot.vocabulary.gang_groups, snapshot.podgroups.gang_group
    found, todo, seen = set[int](), [number], {number}
    while todo:
        for gang in lists[todo.pop()]:
            row = row_of.get(gang, NONE)
            found.add(row)
            further = int(own[row]) if row != NONE else NONE
            if further != NONE and further not in seen:
                seen.add(further)
                todo.append(further)
    return frozenset(found)
