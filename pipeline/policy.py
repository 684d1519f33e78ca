"""A policy: which plugins are asked what, in which order, and the switches of the actions; read from a profile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias, TypeVar, cast

from pipeline.keeping import Keeping, cached_property

#: The value of an argument of a plugin or an action; durations are seconds.
Argument = bool | int | float | str | Mapping[str, float]
Value = TypeVar("Value", bound=Argument)
#: What counts when a podgroup asks whether it may start.
MatchPolicy: TypeAlias = Literal["waiting-and-running", "once-satisfied", "only-waiting"]


class Purpose(StrEnum):
    """Why room is made, which decides what may be evicted; CLEAR makes none: it ends what is left of a broken gang."""

    ALLOCATE = "allocate"
    PREEMPT = "preempt"
    RECLAIM = "reclaim"
    CONSOLIDATE = "consolidate"
    CLEAR = "clear"


class ExtensionPoint(StrEnum):
    """Where a plugin can be asked, as policies name it; `pipeline.plugins.extension_points` says what."""

    JOB_ORDER = "job_order"
    TASK_ORDER = "task_order"
    QUEUE_ORDER = "queue_order"
    VICTIM_QUEUE_ORDER = "victim_queue_order"
    JOB_VALID = "job_valid"
    JOB_READY = "job_ready"
    JOB_PIPELINED = "job_pipelined"
    JOB_STARVING = "job_starving"
    JOB_ENQUEUED = "job_enqueued"
    ALLOCATABLE = "allocatable"
    OVERUSED = "overused"
    PREEMPTIVE = "preemptive"
    PREEMPTABLE = "preemptable"
    RECLAIMABLE = "reclaimable"
    EVICTABLE = "evictable"
    PREDICATE = "predicate"
    NODE_ORDER = "node_order"
    DOMAIN_GRADIENT = "domain_gradient"
    DOMAIN_ORDER = "domain_order"


#: A switch beside the extension points: whether queues are a tree, for plugins that know both.
HIERARCHY = "hierarchy"
#: Points that Volcano never gates by a flag: a plugin that is listed is always asked (notes on Volcano, 2.12).
ALWAYS_ASKED = frozenset({ExtensionPoint.JOB_VALID, ExtensionPoint.VICTIM_QUEUE_ORDER, ExtensionPoint.EVICTABLE})


@dataclass(frozen=True)
class PluginSetting:
    """One plugin of a policy.

    Attributes
    ----------
    name
        Its name in the registry.
    enabled
        Points named, with their switch; ``"*"`` stands for all that are not named. A point not covered is off.
    arguments
        Of the names and kinds that the plugin takes (its ``ARGUMENTS``).
    tier
        Where admission and starvation are asked tier by tier, a later tier is not asked once one has decided.
    """

    name: str
    enabled: tuple[tuple[str, bool], ...] = (("*", True),)
    arguments: tuple[tuple[str, Argument], ...] = ()
    tier: int = 0

    def asks(self, point: ExtensionPoint) -> bool:
        """Whether the plugin is asked at ``point``."""
        otherwise = False
        for name, on in self.enabled:
            if name == point:
                return on
            otherwise |= on and name == "*"
        return otherwise or point in ALWAYS_ASKED

    def argument(self, key: str, default: Value) -> Value:
        """One argument, ``default`` if it was not given; of its type, for arguments are checked with the policy."""
        found: Value = self._given.get(key, default)
        return found

    @cached_property
    def _given(self) -> dict[str, Any]:
        return dict(self.arguments)


#: The solver of an action for which a policy names none.
_USUAL, _USUAL_OF = "bundles", {"consolidation": "scenarios"}


@dataclass(frozen=True)
class Policy(Keeping):
    """Everything about a decision that is not state.

    Attributes
    ----------
    profile
        Name of the profile it came from.
    digest
        Digest of the text that it was read from; a plan made under another policy is stale.
    actions
        Names of the actions, in order.
    plugins
        In order; the tiers of a Volcano configuration follow one another.
    solvers
        By action, the solver (`pipeline.solvers.registry`) that finds its plans; the usual one where none is named.
    whole_gangs_everywhere
        Whether members of a broken gang outside the domain go too.
    allow_whole_bundle
        Whether a victim gang may be broken at all.
    max_domains
        How many domains an eviction looks at, 0 for all of them.
    efficiency_step
        Two efficiencies within one step of each other are equal ("Gang-Aware Preemption and Reclaim" suggests 0.05).
    first_fit
        Take the first domain that works, rather than the cheapest.
    cheapest_set
        Whether, within what policy ranks equal, the cheapest set of victims goes; if not, the order of bundles is kept.
    polish
        Whether victims are sought by branch and bound, by local search and with surplus chosen by slots as well; if
        not, they are the leading bundles less what can be reprieved, wherever that makes room.
    tightest_domain_first
        Whether a podgroup that prefers or requires a level is placed in the tightest domain that holds it, rather than
        in the best scored.
    packs_minimum
        Whether a podgroup whose minimum is reached nowhere task by task is packed as solvers pack it.
    surplus
        Whether tasks beyond the minimum are placed where there is room.
    best_effort_counts
        Whether a waiting task that asks for nothing but a pod counts towards the minimum that its podgroup starts with;
        if not, it needs a place like any other.
    plan_ttl_s, reservation_ttl_s
        Seconds: how long a plan may wait to be judged, and for how long room is held for a nomination.
    match_policy
        What counts when a podgroup that does not say so itself asks whether it may start.
    stale_grace_s
        Seconds: how long a podgroup may run below its minimum before what is left of it is cleared, unless it says so
        itself; negative: without limit.
    claim_after_refusals, claim_ttl_s
        After this number of refused plans in a row (0: never) a gang's domain is kept for it, for this number of
        seconds at most.
    consolidation_max_victims
        How many podgroups one consolidation may move, -1 for any number.
    consolidation_cost_limit
        What moves may lose at most, in units of what they make room for times restarts and hours since the last
        checkpoint; 0: any amount.
    allow_consolidating_reclaim
        Whether a victim of a reclaim that gets another place at once does not count as taken.
    takes_back_starts
        Whether what ``allocate`` would start counts as a victim of the actions after it; then it does not start.
    search_budget
        How many scenarios a search of the solver ``scenarios`` may look at; then the best so far is taken.
    action_arguments
        Per action, as written.
    """

    profile: str
    digest: str
    actions: tuple[str, ...]
    plugins: tuple[PluginSetting, ...]
    solvers: tuple[tuple[str, str], ...] = ()
    whole_gangs_everywhere: bool = True
    allow_whole_bundle: bool = True
    max_domains: int = 0
    efficiency_step: float = 0.05
    first_fit: bool = False
    cheapest_set: bool = False
    polish: bool = True
    tightest_domain_first: bool = False
    packs_minimum: bool = False
    surplus: bool = True
    best_effort_counts: bool = True
    plan_ttl_s: float = 30.0
    reservation_ttl_s: float = 300.0
    match_policy: MatchPolicy = "waiting-and-running"
    stale_grace_s: float = 60.0
    claim_after_refusals: int = 0
    claim_ttl_s: float = 60.0
    consolidation_max_victims: int = 16
    consolidation_cost_limit: float = 0.0
    allow_consolidating_reclaim: bool = True
    takes_back_starts: bool = False
    search_budget: int = 512
    action_arguments: tuple[tuple[str, tuple[tuple[str, Argument], ...]], ...] = field(default=())

    def solver(self, action: str) -> str:
        """Name of the solver that finds the plans of an action."""
        return dict(self.solvers).get(action, _USUAL_OF.get(action, _USUAL))

    def action_argument(self, action: str, key: str, default: Value) -> Value:
        """One argument of an action, ``default`` if it was not given."""
        given = dict(self.action_arguments).get(action)
        return cast("Value", dict(given).get(key, default)) if given else default
