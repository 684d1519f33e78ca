"""Which plugins there are, by the names under which policies list them."""

from typing import Any

from pipeline.errors import PolicyRefused
from pipeline.plugins.binpack import Binpack
from pipeline.plugins.capacity import Capacity
from pipeline.plugins.conformance import Conformance
from pipeline.plugins.cooldown import CoolDown
from pipeline.plugins.deviceshare import DeviceShare
from pipeline.plugins.drf import DominantShare
from pipeline.plugins.evictionbudget import EvictionBudget
from pipeline.plugins.extension_points import Context, MakesPlugin
from pipeline.plugins.gang import Gang
from pipeline.plugins.minruntime import MinimumRuntime
from pipeline.plugins.network_topology import NetworkTopology
from pipeline.plugins.nodeorder import NodeOrder
from pipeline.plugins.overcommit import Overcommit
from pipeline.plugins.pdb import DisruptionBudgets
from pipeline.plugins.predicates import Predicates
from pipeline.plugins.priority import Priority
from pipeline.plugins.proportion import Proportion
from pipeline.plugins.sla import Sla
from pipeline.policy import Policy

PLUGINS: dict[str, MakesPlugin] = {
    "gang": Gang,
    "priority": Priority,
    "conformance": Conformance,
    "capacity": Capacity,
    "proportion": Proportion,
    "drf": DominantShare,
    "sla": Sla,
    "overcommit": Overcommit,
    "pdb": DisruptionBudgets,
    "cdp": CoolDown,
    "evictionbudget": EvictionBudget,
    "minruntime": MinimumRuntime,
    "predicates": Predicates,
    "nodeorder": NodeOrder,
    "binpack": Binpack,
    "deviceshare": DeviceShare,
    "network-topology-aware": NetworkTopology,
}


def make_plugins(context: Context) -> list[tuple[Any, Any]]:
    """Make each plugin of the policy for one snapshot, in order: pairs of setting and plugin."""
    made = []
    for position, setting in enumerate(context.policy.plugins):
        if setting.name not in PLUGINS:
            raise PolicyRefused(
                f"policy.plugins[{position}].name: expected one of {', '.join(sorted(PLUGINS))}, found {setting.name!r}"
            )
        made.append((setting, PLUGINS[setting.name](context, setting)))
    return made


def check(policy: Policy) -> None:
    """Refuse a policy that lists a plugin that does not exist."""
    unknown = [(n, p.name) for n, p in enumerate(policy.plugins) if p.name not in PLUGINS]
    if unknown:
        position, name = unknown[0]
        raise PolicyRefused(
            f"policy.plugins[{position}].name: expected one of {', '.join(sorted(PLUGINS))}, found {name!r}"
        )
