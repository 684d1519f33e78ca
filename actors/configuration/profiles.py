"""Profiles: a policy as a TOML file, and the policy block of a cluster file laid over it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from actors.configuration.policy_documents import ANYWHERE, ActionArguments, Actions, Solvers, TierPlugin, in_seconds
from actors.configuration.settings import SettingsRefused
from actors.documents.bounded_files import FileRefused, text_of, toml_of
from actors.documents.messages import meant, one_sentence
from actors.documents.model import Amount, Count, Document, Finite, Lasting, ListOf
from actors.documents.shipped import CONFIG
from pipeline.actions.registry import check_solvers
from pipeline.plugins.registry import PLUGINS, ceilings, check, switches_of
from pipeline.policy import MatchPolicy, PluginSetting, Policy

#: Keys of the policy block of a cluster file that have another name in a profile.
_KEYS = {"stale_grace_seconds": "stale_grace_s"}
#: The extension points at which a plugin is asked by default.
EVERY_POINT = {"*": True}
#: The plugin that ``placement`` of a cluster file sets.
_PLACING = "nodeplacement"
FOLDER = CONFIG / "profiles"


class ProfilePlugin(TierPlugin):
    """One plugin of a profile, with its tier; a cluster file states the tier by position."""

    tier: int = Field(default=0, ge=0)


class Profile(Document):
    """A profile file; every key is a field of ``Policy``, and what is left out is as there.

    Older files say ``gang_aware_*`` instead of ``solvers``.
    """

    actions: Actions
    plugins: ListOf[ProfilePlugin]
    solvers: Solvers = Field(default_factory=dict)
    gang_aware_preempt: bool | None = None
    gang_aware_reclaim: bool | None = None
    whole_gangs_everywhere: bool = Policy.whole_gangs_everywhere
    allow_whole_bundle: bool = Policy.allow_whole_bundle
    max_domains: Count = Policy.max_domains
    efficiency_step: Amount = Policy.efficiency_step
    first_fit: bool = Policy.first_fit
    cheapest_set: bool = Policy.cheapest_set
    polish: bool = Policy.polish
    tightest_domain_first: bool = Policy.tightest_domain_first
    packs_minimum: bool = Policy.packs_minimum
    surplus: bool = Policy.surplus
    best_effort_counts: bool = Policy.best_effort_counts
    plan_ttl_s: Lasting = Policy.plan_ttl_s
    reservation_ttl_s: Lasting = Policy.reservation_ttl_s
    match_policy: MatchPolicy = Policy.match_policy
    stale_grace_s: Finite = Policy.stale_grace_s
    claim_after_refusals: Count = Policy.claim_after_refusals
    claim_ttl_s: Lasting = Policy.claim_ttl_s
    consolidation_max_victims: Annotated[int, Field(ge=-1, lt=2**31)] = Policy.consolidation_max_victims
    consolidation_cost_limit: Amount = Policy.consolidation_cost_limit
    allow_consolidating_reclaim: bool = Policy.allow_consolidating_reclaim
    takes_back_starts: bool = Policy.takes_back_starts
    search_budget: Annotated[int, Field(ge=1, lt=2**31)] = Policy.search_budget
    action_arguments: ActionArguments = Field(default_factory=dict)


def load_profile(name: str, block: Mapping[str, Any] | None = None) -> Policy:
    """Read a profile by name or path and lay a cluster file's policy block over it.

    Parameters
    ----------
    block
        A validated ``policy`` block, as plain data without absent keys.

    Raises
    ------
    SettingsRefused
        If there is no such profile, or one of its keys is not valid.
    PolicyRefused
        If the profile switches an extension point of a plugin that does not have it.
    """
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        text = text_of(path)
    except (OSError, ValueError) as error:
        if name.endswith(".toml"):
            raise SettingsRefused(f"profile: expected a readable UTF-8 file, found: {error}") from error
        known = f"expected one of {', '.join(sorted(file.stem for file in FOLDER.glob('*.toml')))}"
        told = f"{known} or a path to a .toml file, found {name!r}{meant(known, name)}"
        raise SettingsRefused(f"profile: {told}") from error
    try:
        profile = Profile.model_validate(toml_of(text))
    except FileRefused as error:
        raise SettingsRefused(f"{path.name}: expected TOML, found a mistake: {error}") from error
    except ValidationError as error:
        raise SettingsRefused(f"{path.name}: {one_sentence(error, model=Profile)}") from error
    policy = policy_of(path.stem, profile, block or {})
    check(policy)
    check_solvers(policy, ceilings(policy))
    return policy


def policy_of(name: str, profile: Profile, block: Mapping[str, Any]) -> Policy:
    """The policy of a profile with ``block`` laid over it."""
    given = {_KEYS.get(key, key): value for key, value in block.items()}
    values = profile.model_dump() | {key: value for key, value in given.items() if key in Profile.model_fields}
    plugins = values["plugins"]
    if "tiers" in block:
        plugins = [
            {**entry, "tier": at, "enabled": _answered(entry["name"], entry.get("enabled"))}
            for at, tier in enumerate(block["tiers"])
            for entry in tier
        ]
    elif isinstance(plugins, Mapping):
        plugins = _with_overrides(profile, plugins)
    if "placement" in block:
        plugins = _placing(plugins, block["placement"])
    digest = hashlib.blake2b(json.dumps([values, plugins], sort_keys=True, default=str).encode(), digest_size=8)
    return Policy(
        profile=name,
        digest=digest.hexdigest(),
        actions=tuple(values["actions"]),
        plugins=tuple(_setting(entry) for entry in plugins),
        action_arguments=tuple((action, _items(given)) for action, given in values["action_arguments"].items()),
        solvers=_solvers(values, plugins),
        **{key: values[key] for key in Profile.model_fields if key in _SAME},
    )


_SAME = frozenset(Profile.model_fields) - {
    "actions", "plugins", "action_arguments", "solvers", "gang_aware_preempt", "gang_aware_reclaim",
}  # fmt: skip
#: The solver for each value of Volcano's switch ``gangAwareEnable``.
_BY_GANG = {True: "bundles", False: "tasks"}


def _solvers(values: Mapping[str, Any], plugins: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """The solver of each action: as the profile says, unless Volcano's switch ``gangAwareEnable`` says otherwise.

    Volcano allows the switch among the arguments of any plugin and of the action; those of the action prevail.
    """
    named = dict(values["solvers"])
    for action in ("preempt", "reclaim"):
        said = [values[f"gang_aware_{action}"]] if action not in named else []
        said += [(plugin.get("arguments") or {}).get(f"{action}.gangAwareEnable") for plugin in plugins]
        said += [values["action_arguments"].get(action, {}).get("gang_aware")]
        for switch in said:
            if switch is not None:
                named[action] = _BY_GANG[switch]
    return tuple(sorted(named.items()))


def _with_overrides(profile: Profile, overrides: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The plugins of the profile with the overrides of the block; plugins that only the block names come last."""
    entries = {entry.name: entry.model_dump() for entry in profile.plugins}
    for name, given in overrides.items():
        entry = entries.setdefault(name, {"name": name})
        before = EVERY_POINT if entry.get("enabled") is None else entry["enabled"]
        entry["enabled"] = {**before, **(_answered(name, given.get("enabled")) or {})}
        entry["arguments"] = {**(entry.get("arguments") or {}), **(given.get("arguments") or {})}
    return list(entries.values())


def _placing(plugins: Sequence[Mapping[str, Any]], strategy: str) -> list[Mapping[str, Any]]:
    """The plugins, with the placement strategy set in the plugin that places tasks.

    Raises
    ------
    SettingsRefused
        If the profile does not have that plugin.
    """
    if all(entry["name"] != _PLACING for entry in plugins):
        raise SettingsRefused(f"policy.placement: expected a profile with the plugin {_PLACING}, found {strategy!r}")
    told = {"arguments": {"strategy": strategy}}
    return [{**entry, **told} if entry["name"] == _PLACING else entry for entry in plugins]


def _answered(name: str, enabled: Mapping[str, bool] | None) -> dict[str, bool] | None:
    """The switches of a cluster file without extension points that the plugin does not have; Volcano ignores those."""
    return None if enabled is None else {point: on for point, on in enabled.items() if point in switches_of(name)}


def _setting(entry: Mapping[str, Any]) -> PluginSetting:
    name, enabled, given = entry["name"], entry.get("enabled"), entry.get("arguments") or {}
    arguments = {key: value for key, value in given.items() if key not in ANYWHERE}
    return PluginSetting(
        name,
        _items(EVERY_POINT if enabled is None else enabled),
        _items(in_seconds(PLUGINS[name].ARGUMENTS, arguments)),
        int(entry.get("tier", 0)),
    )


def _items(mapping: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(mapping.items()))
