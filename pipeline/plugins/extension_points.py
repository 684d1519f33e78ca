"""The extension points: the questions to plugins, each a Protocol, with the points at which a policy switches it.

A plugin is a class made once for a snapshot. It derives from `Plugin` and from the Protocol of each question that it
answers; `registry` refuses a class whose methods do not match. Orders are key columns, smaller first, compared plugin
after plugin; so an order is total and costs one sort, where a comparator would be called for every pair. Filters are
masks. Nothing here is called for each task.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypeVar

from pipeline.cluster.arrays import Bools, Codes, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.node_scores import ScoreTerms
from pipeline.cluster.rules.quota import LosingOrder, QueueLimits
from pipeline.cluster.rules.sparing import Quota, TaskQuota
from pipeline.plugins.plugin import BeyondPace, Follows, OfPodgroups, Opinion, Preemptor
from pipeline.policy import ExtensionPoint, Purpose

Key = Longs | Floats | Codes
Question = TypeVar("Question")

#: The points at which a policy switches each question; none: it is always on.
POINTS_OF: dict[type, tuple[ExtensionPoint, ...]] = {}
_BY_TASK = (ExtensionPoint.PREEMPTABLE, ExtensionPoint.RECLAIMABLE)


def asked_at(*points: ExtensionPoint) -> Callable[[type[Question]], type[Question]]:
    """Enter a question into the table."""

    def entered(question: type[Question]) -> type[Question]:
        POINTS_OF[question] = points
        return question

    return entered


# -- orders ------------------------------------------------------------------------------------------------------------


@asked_at(ExtensionPoint.JOB_ORDER)
class OrdersJobs(Protocol):
    """Which podgroup is served first."""

    JOB_ORDER_FOLLOWS: ClassVar[Follows] = Follows.NOTHING

    def job_order(self) -> Key:
        """Key[G]."""


@asked_at(ExtensionPoint.TASK_ORDER)
class OrdersTasks(Protocol):
    """Which task is placed first."""

    def task_order(self, rows: Rows) -> Key:
        """Key[K] of the tasks ``rows``."""


@asked_at(ExtensionPoint.QUEUE_ORDER)
class OrdersQueues(Protocol):
    """Which queue is served first; ``LOOKS_AHEAD``: the order depends on the podgroup that each queue has next."""

    QUEUE_ORDER_FOLLOWS: ClassVar[Follows] = Follows.NOTHING
    LOOKS_AHEAD: ClassVar[bool] = False

    def queue_order(self, following: Ids) -> tuple[Key, ...]:
        """Keys[Q], the most significant first; ``following`` int32[Q] is the podgroup that each has next, or NONE."""


@asked_at(ExtensionPoint.VICTIM_QUEUE_ORDER)
class OrdersVictimQueues(Protocol):
    """From which queue to take first."""

    def victim_queue_order(self, queue: int) -> Key:
        """Key[Q], for a preemptor of ``queue``."""


@asked_at(ExtensionPoint.QUEUE_ORDER)
class TellsLosingOrder(Protocol):
    """An order of queues to take from that a solver can work out itself."""

    def losing_order(self, queue: int) -> LosingOrder | None:
        """What ``queue_order`` and ``victim_queue_order`` come to together; None where they have to be asked."""


@asked_at(ExtensionPoint.QUEUE_ORDER)
class InterleavesVictims(Protocol):
    """From which queue the next victims go, if that depends on what went before."""

    def across_queues(self, queue: Longs, held: Floats, rest: Floats) -> Rows:
        """int64[U]: units of victims in the order in which they go, those of one queue in the order given.

        ``queue`` int64[U] is the queue of each, ``held`` float64[U, R] what it holds, and ``rest`` float64[U, R] what
        is left of its podgroup when its turn comes.
        """


# -- states of podgroups -----------------------------------------------------------------------------------------------


@asked_at(ExtensionPoint.JOB_VALID)
class ValidatesJobs(Protocol):
    """Whether a podgroup is fit to be scheduled."""

    def job_valid(self) -> Bools:
        """bool[G]."""


@asked_at(ExtensionPoint.JOB_READY)
class ReadiesJobs(Protocol):
    """Whether a podgroup may start on the room that it holds."""

    def job_ready(self) -> Bools:
        """bool[G]."""


@asked_at(ExtensionPoint.JOB_PIPELINED)
class PipelinesJobs(Protocol):
    """Whether a podgroup may start once its promised room is free."""

    def job_pipelined(self) -> Bools:
        """bool[G]."""


@asked_at(ExtensionPoint.JOB_STARVING)
class FindsStarving(Protocol):
    """Whether a podgroup needs room that others hold; once it does not, promises to its tasks leave it so."""

    def job_starving(self) -> Bools:
        """bool[G]."""


@asked_at(ExtensionPoint.JOB_ENQUEUED)
class AdmitsJobs(Protocol):
    """Whether a podgroup is admitted."""

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """The opinion on one podgroup; ``admitted`` bool[G] marks podgroups admitted in this cycle."""


# -- queues ------------------------------------------------------------------------------------------------------------


@asked_at(ExtensionPoint.ALLOCATABLE)
class LimitsQueues(Protocol):
    """What each queue may hold, and so what it may still take; evictions never narrow it.

    ``CEILINGS_STAY``: whatever tasks come and go, so that a solver can count the limits itself.
    """

    CEILINGS_STAY: ClassVar[bool] = False

    def queue_limits(self) -> QueueLimits:
        """The limits on the state as it is."""


@asked_at(ExtensionPoint.ALLOCATABLE)
class LimitsLastingWork(Protocol):
    """What each queue may still take of work that can never be evicted."""

    def lasting_headroom(self) -> Longs:
        """int64[Q, R], ancestors included; UNLIMITED without bound."""


@asked_at(ExtensionPoint.OVERUSED)
class FindsOverused(Protocol):
    """Which queues get no more room, neither free room nor room of other queues."""

    def overused(self) -> Bools:
        """bool[Q]."""


@asked_at(ExtensionPoint.PREEMPTIVE)
class AllowsReclaim(Protocol):
    """Whether a queue may take from other queues.

    ``GRANTS_TOGETHER``: it depends on nothing that changes but what queues hold. What is granted for several tasks
    together is then granted for each of them after the others, whatever other queues have lost meanwhile.
    """

    GRANTS_TOGETHER: ClassVar[bool] = False

    def preemptive(self, preemptor: Preemptor) -> bool | None:
        """For the preemptor's queue; None: no opinion."""


@asked_at()
class SharesFairly(Protocol):
    """What each queue is entitled to; for reports, so it is always on."""

    def fair_share(self) -> Longs:
        """int64[Q, R]."""


# -- victims -----------------------------------------------------------------------------------------------------------


@asked_at(ExtensionPoint.EVICTABLE, *_BY_TASK)
class ShieldsTasks(Protocol):
    """Which tasks may be victims, each judged alone."""

    def evictable(self, preemptor: Preemptor) -> Bools | OfPodgroups | bool | None:
        """bool[T], or an answer for podgroups or for all; None: no opinion. Evictions may only make it stricter."""


@asked_at(ExtensionPoint.EVICTABLE, *_BY_TASK)
class ShieldsAnew(Protocol):
    """For plugins whose answers about single tasks may change as other tasks are evicted."""

    def shields_anew(self) -> bool:
        """Whether they may on this state; where no plugin says so, they are asked for once."""


@asked_at(ExtensionPoint.EVICTABLE, *_BY_TASK)
class TimesShields(Protocol):
    """For plugins that shield tasks for some time only; for reports."""

    def over_at(self, preemptor: Preemptor) -> Floats:
        """float64[T]: when that is over for each task that is shielded, in seconds; infinite if it never is."""


@asked_at(ExtensionPoint.EVICTABLE)
class FiltersBundles(Protocol):
    """Quotas that are used up along the ordered candidates of a gang-aware action."""

    def has_quota(self, preemptor: Preemptor) -> bool:
        """Whether the quota could refuse any candidate for this preemptor; if not, the filter is not asked."""

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: which of the ordered candidates may go.

        ``unit`` int64[C]: neighbours with one number go together or not at all, and use up nothing if they stay; NONE,
        or no units: each by itself.
        """


@asked_at(ExtensionPoint.EVICTABLE)
class NamesLosers(Protocol):
    """Queues that a quota lets lose something, whatever the order of candidates."""

    def may_lose(self, preemptor: Preemptor) -> Bools:
        """bool[Q]: the others lose nothing."""


@asked_at(ExtensionPoint.EVICTABLE)
class CountsQuotas(Protocol):
    """A quota that solvers can count themselves, where no other plugin has one."""

    def bundle_quota(self, preemptor: Preemptor) -> Quota | None:
        """What ``bundle_quota_filter`` counts, in columns; None: only the filter knows."""


@asked_at(ExtensionPoint.EVICTABLE)
class CountsBudgets(Protocol):
    """Limits on how many tasks may go, as budgets that solvers can count themselves."""

    def budgets_left(self) -> Budgets:
        """What ``bundle_quota_filter`` counts: how many more tasks may go of those that each covers."""


@asked_at(ExtensionPoint.EVICTABLE)
class ValidatesVictims(Protocol):
    """Whether a set of victims is lawful as a whole."""

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """The same answer whatever their order."""


@asked_at(ExtensionPoint.EVICTABLE)
class ValidatesSets(Protocol):
    """The same of several sets at once, for a plugin that takes hardly longer than for one."""

    def validate_each(self, preemptor: Preemptor, sets: Sequence[Rows]) -> Bools:
        """bool[S]: what ``validate_set`` says of each set by itself."""


@asked_at(*_BY_TASK)
class FiltersTasks(Protocol):
    """Quotas that are used up along the candidates of one node, task by task.

    An answer may only become stricter as tasks are evicted in a cycle: the solver `tasks` does not ask again about a
    node on which it was refused (see `pipeline.solvers.tasks.kinds.Withheld`).
    """

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """bool[C]: which may go, each after those before it that may; None: no opinion, whatever the rows."""


@asked_at(*_BY_TASK)
class CountsTasks(Protocol):
    """A quota on single tasks that a solver can count itself."""

    def task_quota(self, preemptor: Preemptor) -> TaskQuota | None:
        """What ``task_quota_filter`` counts, in columns; None: only the filter knows."""


@asked_at(ExtensionPoint.EVICTABLE, *_BY_TASK)
class PacesEvictions(Protocol):
    """How many tasks may be evicted in a time, whatever for: a task that moves is evicted too."""

    def keeps_pace(self, rows: Rows) -> bool:
        """Whether the tasks ``rows`` may all be evicted now."""

    def beyond_pace(self, rows: Rows) -> tuple[BeyondPace, ...]:
        """What they exceed."""


@asked_at(ExtensionPoint.EVICTABLE)
class BoundsEach(Protocol):
    """For plugins that bound what goes for one preemptor by what it asks for."""

    def bounds_each(self) -> bool:
        """Whether they do; where no plugin does, victims for several podgroups are judged together."""


# -- nodes -------------------------------------------------------------------------------------------------------------


@asked_at(ExtensionPoint.PREDICATE)
class FiltersNodes(Protocol):
    """Nodes on which tasks may run, resources aside."""

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]."""


@asked_at(ExtensionPoint.NODE_ORDER)
class ScoresNodes(Protocol):
    """Which node is better for a task."""

    def score_terms(self, shape: int) -> ScoreTerms:
        """What the scores of nodes follow from, for tasks of a shape."""


@asked_at(ExtensionPoint.NODE_ORDER)
class ChoosesCards(Protocol):
    """Which card of a node a task gets."""

    def spreads_cards(self) -> bool:
        """Whether the emptiest card that takes it, rather than the fullest."""


@asked_at(ExtensionPoint.DOMAIN_GRADIENT)
class OffersDomains(Protocol):
    """Which domains may hold podgroups."""

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None:
        """int64[D]: domain rows in order of preference; None: no opinion."""


@asked_at(ExtensionPoint.DOMAIN_ORDER)
class ScoresDomains(Protocol):
    """Which of the domains of one tier is better, where nothing is evicted; the scores of nodes decide among equals."""

    def domain_score(self, request: Longs, used: Longs, allocatable: Longs) -> Floats:
        """float64[D], larger is better, for tasks that ask for ``request`` (int64[R]) together.

        ``used`` and ``allocatable``, int64[D, R] each, are those of the nodes of each domain together.
        """
