"""The table of plugins by the names that policies use, and what a policy may say of each.

The table is checked when it is made: a plugin with a method that none of its extension points has, or with another
signature, stops the start.
"""

from collections.abc import Iterator, Mapping
from inspect import CO_VARARGS, CO_VARKEYWORDS, isfunction, signature
from types import FunctionType

from pipeline.errors import PluginRefused, PolicyRefused
from pipeline.plugins.arguments import offences
from pipeline.plugins.binpack import Binpack
from pipeline.plugins.capacity.plugin import Capacity
from pipeline.plugins.conformance import Conformance
from pipeline.plugins.cooldown import CoolDown
from pipeline.plugins.deviceshare import DeviceShare
from pipeline.plugins.drf import DominantShare
from pipeline.plugins.elastic import Elastic
from pipeline.plugins.elasticquota.plugin import ElasticQuota
from pipeline.plugins.evictionbudget.plugin import EvictionBudget
from pipeline.plugins.extension_points import POINTS_OF
from pipeline.plugins.fairshare.plugin import FairShare
from pipeline.plugins.gang import Gang
from pipeline.plugins.minruntime import MinimumRuntime
from pipeline.plugins.network_topology import NetworkTopology
from pipeline.plugins.nodeorder import NodeOrder
from pipeline.plugins.nodeplacement import NodePlacement
from pipeline.plugins.overcommit import Overcommit
from pipeline.plugins.pdb import DisruptionBudgets
from pipeline.plugins.plugin import Context, Plugin
from pipeline.plugins.predicates import Predicates
from pipeline.plugins.priority import Priority
from pipeline.plugins.proportion import Proportion
from pipeline.plugins.sla import Sla
from pipeline.policy import ExtensionPoint, PluginSetting, Policy

#: Covers the extension points that ``enabled`` does not name.
ALL = "*"


def checked(plugins: Mapping[str, type[Plugin]]) -> dict[str, type[Plugin]]:
    """The plugins, if each answers exactly what its extension points ask.

    Raises
    ------
    PluginRefused
        If a plugin has no extension point, or a public method that none of them has, lacks one, or has another
        signature.
    """
    for plugin in plugins.values():
        said = [one for protocol in _protocols(plugin) for one in vars(protocol).items()]
        asked = {name: method for name, method in said if isfunction(method) and not name.startswith("_")}
        if not asked:
            raise PluginRefused(f"{plugin.__name__}: expected at least one extension point among its bases, found none")
        for base in plugin.__mro__:
            known = base in (Plugin, object) or base in _protocols(plugin)
            for name in () if known else vars(base):
                if name not in asked and not name.startswith("_") and not name.isupper():
                    raise PluginRefused(f"{plugin.__name__}.{name}: expected one of {', '.join(asked)}")
        for name, method in asked.items():
            own = getattr(plugin, name)
            if own is method or not isfunction(own):
                raise PluginRefused(f"{plugin.__name__}.{name}: expected a method, found none")
            if _parameters(own) != _parameters(method):
                raise PluginRefused(f"{plugin.__name__}.{name}: expected {signature(method)}, found {signature(own)}")
    return dict(plugins)


def _protocols(plugin: type[Plugin]) -> tuple[type, ...]:
    """The extension points from which a plugin derives."""
    return tuple(question for question in POINTS_OF if question in plugin.__mro__)


def _parameters(method: FunctionType) -> tuple[object, ...]:
    """Names, kinds and annotations of parameters; ``signature`` says the same, and takes 8 ms for all plugins."""
    code = method.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    return names, kinds, [method.__annotations__.get(name) for name in names]


PLUGINS = checked(
    {
        "gang": Gang,
        "priority": Priority,
        "conformance": Conformance,
        "capacity": Capacity,
        "proportion": Proportion,
        "elasticquota": ElasticQuota,
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
        "fairshare": FairShare,
        "elastic": Elastic,
        "nodeplacement": NodePlacement,
    }
)


#: By plugin, the extension points that it answers, in the order of their definition.
POINTS = {
    name: tuple(
        point
        for point in ExtensionPoint
        if any(point in points and question in plugin.__mro__ for question, points in POINTS_OF.items())
    )
    for name, plugin in PLUGINS.items()
}


def switches_of(name: str) -> tuple[str, ...]:
    """What a policy may name in the ``enabled`` of a plugin."""
    return (ALL, *PLUGINS[name].SWITCHES, *POINTS[name])


def make_plugins(context: Context) -> list[Plugin]:
    """Make each plugin of the policy for one snapshot, in order."""
    context.policy.once(check)
    return [PLUGINS[setting.name](context, setting) for setting in context.policy.plugins]


def ceilings(policy: Policy) -> tuple[str, ...]:
    """The policy's plugins that may accept a set of victims but not every part of it."""
    return tuple(setting.name for setting in policy.plugins if not PLUGINS[setting.name].ACCEPTS_PARTS)


def check(policy: Policy) -> None:
    """Refuse a policy that names a plugin, extension point or argument that does not exist, or a wrong value.

    Raises
    ------
    PolicyRefused
        For the first such error.
    """
    for position, setting in enumerate(policy.plugins):
        for where, expected, found in _offences(setting):
            raise PolicyRefused(f"policy.plugins[{position}].{where}: {expected}, found {found!r}")


def _offences(setting: PluginSetting) -> Iterator[tuple[str, str, object]]:
    """Errors of one entry: where, what was expected, and what was found."""
    if setting.name not in PLUGINS:
        yield "name", f"expected one of {', '.join(PLUGINS)}", setting.name
        return
    known = switches_of(setting.name)
    for name, _ in setting.enabled:
        if name not in known:
            yield f"enabled.{name}", f"expected one of {', '.join(known)}", name
    given = dict(setting.arguments)
    for key, expected in offences(PLUGINS[setting.name].ARGUMENTS, given):
        yield f"arguments.{key}", expected, given[key]
