"""Obstacles: what stands in the way of a plan, or of being scheduled at all, in rows and numbers."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.cluster.arrays import NONE


class Cause(StrEnum):
    """What stands in the way of a plan, or of being scheduled at all."""

    TASKS = "too few tasks"
    ROLE = "too few tasks of a role"
    SUBGROUP = "too few tasks of a subgroup"
    GATED = "tasks are gated"
    ADMISSION = "not admitted"
    LEVEL = "no domain of the level"
    CLOSED = "the queue is not open"
    CEILING = "the queue may not hold more"
    LASTING = "the queue may not hold more that can never be evicted"
    SHARES = "the shares of other queues leave no more"
    QUEUE = "the queue may not take more"
    CUT = "the queue cannot deserve more"
    NEVER = "the task may not preempt"
    DELAY = "the delay is not over"
    NO_NODE = "there is no node"
    NODES = "no node admits the task"
    CORDONED = "nodes are cordoned"
    TAINTED = "nodes have taints that the task does not tolerate"
    UNSELECTED = "nodes that the task does not select"
    SIZE = "no node is large enough for the task"
    CLUSTER = "all nodes together are too small"
    TOTAL = "all nodes together have too little"
    MIXED = "tasks of several shapes never fit together"
    WIDTH = "no domain of the level is large enough"
    FREE = "the free room of all nodes together is too small"
    SHAPES = "tasks of several shapes want the same room"
    REPELLED = "anti-affinity keeps tasks apart"
    CARDS = "no card has enough"
    TORN = "a required level of a part cannot be kept"
    PRIORITY = "not of lower priority"
    OTHER_QUEUES = "in other queues"
    SAME_QUEUE = "in the same queue"
    UNRECLAIMABLE = "in queues that do not let others reclaim"
    UNENTITLED = "no plugin says what queues are entitled to"
    UNPREEMPTIBLE = "not preemptible"
    CRITICAL = "critical to the cluster"
    YOUNG = "within their minimum runtime"
    YOUNG_MINIMA = "minima within their minimum runtime"
    COOLING = "within their cool-down"
    STARTING = "started in this cycle"
    SHIELDED = "shielded"
    BREAKS = "their podgroups would break"
    QUOTA = "their queues may not spare them"
    THEIR_SHARE = "their queues hold no more than their share"
    POORER = "their holders would have the smaller share"
    BUDGET = "a disruption budget protects them"
    WINDOW = "no more may be evicted in this time"
    TOGETHER = "not lawful together"


@dataclass(frozen=True)
class Obstacle:
    """One cause and what it is about; fields that do not apply are empty, NONE or 0.

    Attributes
    ----------
    cause
        See ``Cause``.
    plugin
        Name of the plugin that objects.
    queue, podgroup, task, budget
        Rows. The task stands for all of its shape.
    what
        A resource, a level, a taint or the state of a queue.
    wanted, found
        How much is needed, and how much there is, less than 0 where a limit is exceeded; for running tasks that may not
        be evicted, and for nodes that would help, ``found`` counts them. For a window of time: how many tasks may be
        evicted in it, and how many were.
    until
        When that changes by itself, for the first of the tasks, in seconds; 0 if it does not.
    passes
        Of a limit of a queue: whether what is asked for is within it once other work of the queue has ended.
    """

    cause: Cause
    plugin: str = ""
    queue: int = NONE
    podgroup: int = NONE
    task: int = NONE
    budget: int = NONE
    what: str = ""
    wanted: float = 0
    found: float = 0
    until: float = 0
    passes: bool = False
