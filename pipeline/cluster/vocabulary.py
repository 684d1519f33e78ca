"""Strings that decisions depend on, interned: labels, taints, constraints, namespaces.

They are few (one entry for each distinct value, not for each node), so plain tuples serve.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Floats
from pipeline.keeping import Keeping, cached_property

#: Every node has this label, with its name as value. It becomes a column only if a task asks for it.
HOSTNAME = "kubernetes.io/hostname"
#: Taint effects that keep a task off a node. PreferNoSchedule only scores.
HARD_EFFECTS = ("NoSchedule", "NoExecute")
#: Among the namespaces of an anti-affinity term.
ALL_NAMESPACES = "*"


@dataclass(frozen=True)
class Taint:
    """A taint of a node: key, value (empty if not stated), effect."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class Toleration:
    """A toleration of a task: operator Exists or Equal; an empty key with Exists tolerates all, an empty effect any."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True)
class Requirement:
    """One requirement of a selector: operator In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class AntiAffinity:
    """A task must not share a domain of a label key with tasks that a selector matches: Kubernetes' pod anti-affinity.

    Attributes
    ----------
    topology_key
        The label key.
    match_labels
        Labels that such a task has.
    match_expressions
        What else holds for its labels; In, NotIn, Exists and DoesNotExist.
    namespaces
        Namespaces of such tasks; empty: that of the task that has the term; `ALL_NAMESPACES` among them: any.
    """

    topology_key: str
    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[Requirement, ...] = ()
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constraint:
    """Where a task may run, beside resources.

    Attributes
    ----------
    node_selector
        Requirements that must all hold.
    node_affinity
        Terms, each a conjunction; one of them must hold. Empty: no affinity.
    tolerations
        Taints that do not repel the task.
    anti_affinity
        Its own terms; the terms of running tasks bind it as well.
    namespace
        Row in ``namespaces``: anti-affinity terms look there unless they name others.
    """

    node_selector: tuple[Requirement, ...] = ()
    node_affinity: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    anti_affinity: tuple[AntiAffinity, ...] = ()
    namespace: int = 0


@dataclass(frozen=True)
class Gather:
    """What a podgroup says of how close it wants to be, beside its required and its preferred level.

    Attributes
    ----------
    layers
        Names of the levels that are preferred, if not all from the preferred one upwards.
    multiples
        Names of levels and numbers: in a domain of that level it places a multiple of that number of tasks.
    near
        It wants to be near the tasks of all podgroups that say the same.
    """

    layers: tuple[str, ...] = ()
    multiples: tuple[tuple[str, int], ...] = ()
    near: str | None = None


@dataclass(frozen=True)
class Vocabulary(Keeping):
    """All interned strings of a snapshot.

    Attributes
    ----------
    resources
        Names of the axis R, see ``resources.axis``.
    levels
        Names of the topology's levels, widest first.
    label_keys, label_values
        Node labels: per key the values that occur, in the order of first use; ``label_values[k]`` belongs to
        ``label_keys[k]``.
    taint_sets
        Distinct sets of taints; the first is the empty one.
    constraints
        Distinct constraints.
    label_sets
        Distinct sets of task labels as sorted pairs; the first is the empty one.
    cooldowns
        Rows of label sets that state a cool-down, and its seconds; infinite where it cannot be read.
    namespaces
        Namespaces of podgroups.
    gangs
        Podgroups that are named in gang groups, by namespace and name; some may not be there.
    gang_groups
        Distinct lists of podgroups that one podgroup starts with, as rows of ``gangs``.
    gathers
        Distinct wishes for closeness.
    card_sets
        Distinct lists of the names of a node's cards; the first is the empty one.
    """

    resources: tuple[str, ...]
    levels: tuple[str, ...] = ()
    label_keys: tuple[str, ...] = ()
    label_values: tuple[tuple[str, ...], ...] = ()
    taint_sets: tuple[tuple[Taint, ...], ...] = ((),)
    constraints: tuple[Constraint, ...] = ()
    label_sets: tuple[tuple[tuple[str, str], ...], ...] = ((),)
    namespaces: tuple[str, ...] = ()
    gangs: tuple[str, ...] = ()
    gang_groups: tuple[tuple[int, ...], ...] = ()
    gathers: tuple[Gather, ...] = ()
    card_sets: tuple[tuple[str, ...], ...] = ((),)
    cooldowns: tuple[tuple[int, float], ...] = ()

    @cached_property
    def cooldown_s(self) -> Floats:
        """float64[A]: the cool-down of tasks by label set, 0 without one."""
        found = np.zeros(len(self.label_sets))
        for row, seconds in self.cooldowns:
            found[row] = seconds
        return found
