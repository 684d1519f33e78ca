"""The table of extension points: for each question to plugins, the points at which a policy switches it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pipeline.plugins.extension_points import (
    AdmitsJobs,
    AllowsReclaim,
    ChoosesCards,
    CountsBudgets,
    CountsLimits,
    CountsQuotas,
    CountsTasks,
    FiltersBundles,
    FiltersNodes,
    FiltersTasks,
    FindsOverused,
    FindsStarving,
    InterleavesVictims,
    LimitsLastingWork,
    LimitsQueues,
    NamesLosers,
    OffersDomains,
    OrdersJobs,
    OrdersQueues,
    OrdersTasks,
    OrdersVictimQueues,
    PacesEvictions,
    PipelinesJobs,
    ReadiesJobs,
    ScoresDomains,
    ScoresNodes,
    SharesFairly,
    ShieldsAnew,
    ShieldsTasks,
    TellsLosingOrder,
    TellsScores,
    ValidatesJobs,
    ValidatesSets,
    ValidatesVictims,
)
from pipeline.policy import ExtensionPoint

Asked_co = TypeVar("Asked_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Extension(Generic[Asked_co]):
    """A question to plugins: its Protocol, and the points at which a policy switches it (none: always on)."""

    protocol: type[Asked_co]
    points: tuple[ExtensionPoint, ...]


_BY_TASK = (ExtensionPoint.PREEMPTABLE, ExtensionPoint.RECLAIMABLE)

JOB_ORDER = Extension(OrdersJobs, (ExtensionPoint.JOB_ORDER,))
TASK_ORDER = Extension(OrdersTasks, (ExtensionPoint.TASK_ORDER,))
QUEUE_ORDER = Extension(OrdersQueues, (ExtensionPoint.QUEUE_ORDER,))
VICTIM_QUEUE_ORDER = Extension(OrdersVictimQueues, (ExtensionPoint.VICTIM_QUEUE_ORDER,))
LOSING_ORDER = Extension(TellsLosingOrder, (ExtensionPoint.QUEUE_ORDER,))
VICTIM_TURNS = Extension(InterleavesVictims, (ExtensionPoint.QUEUE_ORDER,))
JOB_VALID = Extension(ValidatesJobs, (ExtensionPoint.JOB_VALID,))
JOB_READY = Extension(ReadiesJobs, (ExtensionPoint.JOB_READY,))
JOB_PIPELINED = Extension(PipelinesJobs, (ExtensionPoint.JOB_PIPELINED,))
JOB_STARVING = Extension(FindsStarving, (ExtensionPoint.JOB_STARVING,))
JOB_ENQUEUED = Extension(AdmitsJobs, (ExtensionPoint.JOB_ENQUEUED,))
ALLOCATABLE = Extension(LimitsQueues, (ExtensionPoint.ALLOCATABLE,))
LIMIT_COLUMNS = Extension(CountsLimits, (ExtensionPoint.ALLOCATABLE,))
LASTING = Extension(LimitsLastingWork, (ExtensionPoint.ALLOCATABLE,))
OVERUSED = Extension(FindsOverused, (ExtensionPoint.OVERUSED,))
PREEMPTIVE = Extension(AllowsReclaim, (ExtensionPoint.PREEMPTIVE,))
FAIR_SHARE = Extension(SharesFairly, ())
SHIELD = Extension(ShieldsTasks, (ExtensionPoint.EVICTABLE, *_BY_TASK))
SHIELD_ANEW = Extension(ShieldsAnew, (ExtensionPoint.EVICTABLE, *_BY_TASK))
BUNDLE_QUOTA = Extension(FiltersBundles, (ExtensionPoint.EVICTABLE,))
LOSERS = Extension(NamesLosers, (ExtensionPoint.EVICTABLE,))
QUOTA_COLUMNS = Extension(CountsQuotas, (ExtensionPoint.EVICTABLE,))
BUDGET_COLUMNS = Extension(CountsBudgets, (ExtensionPoint.EVICTABLE,))
VICTIM_SET = Extension(ValidatesVictims, (ExtensionPoint.EVICTABLE,))
VICTIM_SETS = Extension(ValidatesSets, (ExtensionPoint.EVICTABLE,))
TASK_QUOTA = Extension(FiltersTasks, _BY_TASK)
TASK_QUOTA_COLUMNS = Extension(CountsTasks, _BY_TASK)
PACE = Extension(PacesEvictions, (ExtensionPoint.EVICTABLE, *_BY_TASK))
PREDICATE = Extension(FiltersNodes, (ExtensionPoint.PREDICATE,))
NODE_SCORE = Extension(ScoresNodes, (ExtensionPoint.NODE_ORDER,))
SCORE_TERMS = Extension(TellsScores, (ExtensionPoint.NODE_ORDER,))
CARD_CHOICE = Extension(ChoosesCards, (ExtensionPoint.NODE_ORDER,))
DOMAIN_GRADIENT = Extension(OffersDomains, (ExtensionPoint.DOMAIN_GRADIENT,))
DOMAIN_SCORE = Extension(ScoresDomains, (ExtensionPoint.DOMAIN_ORDER,))

EXTENSIONS: tuple[Extension[object], ...] = (
    JOB_ORDER, TASK_ORDER, QUEUE_ORDER, VICTIM_QUEUE_ORDER, LOSING_ORDER, VICTIM_TURNS, JOB_VALID, JOB_READY,
    JOB_PIPELINED, JOB_STARVING, JOB_ENQUEUED, ALLOCATABLE, LIMIT_COLUMNS, LASTING, OVERUSED, PREEMPTIVE, FAIR_SHARE,
    SHIELD, SHIELD_ANEW, BUNDLE_QUOTA, LOSERS, QUOTA_COLUMNS, BUDGET_COLUMNS, VICTIM_SET, VICTIM_SETS, TASK_QUOTA,
    TASK_QUOTA_COLUMNS, PACE, PREDICATE, NODE_SCORE, SCORE_TERMS, CARD_CHOICE, DOMAIN_GRADIENT,
    DOMAIN_SCORE,
)  # fmt: skip
