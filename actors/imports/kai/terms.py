"""Names of plugins and arguments in configurations of KAI Scheduler, and their names here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from actors.documents.durations import seconds_of

#: Plugins of KAI Scheduler that have a counterpart.
PLUGINS: Mapping[str, str] = {
    "priority": "priority",
    "elastic": "elastic",
    "minruntime": "minruntime",
    "proportion": "fairshare",
    "predicates": "predicates",
    "nodeplacement": "nodeplacement",
    "topology": "network-topology-aware",
}
#: Those that change nothing here: they order what is ordered always, search for scenarios in a way of their own (sg-),
#: or read objects that a cluster file cannot have (parts of devices, claims, affinity between pods); such objects are
#: refused where they are named.
UNASKED = (
    "dynamicresources", "gpupack", "gpusharingorder", "gpuspread", "kubeflow", "nodeavailability", "nominatednode",
    "podaffinity", "ray", "reflectjoborder", "resourcetype", "sg-multinodegang", "sg-nodelocalgreedy", "snapshot",
    "subgrouporder", "taskorder",
)  # fmt: skip
_HOURS: Mapping[str, float] = {"d": 24.0, "w": 168.0}


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text) else None


def _multiplier(text: str) -> float | None:
    """KAI Scheduler reads a multiplier below 1 as 1."""
    number = _number(text)
    return None if number is None else max(number, 1.0)


def _strategy(text: str) -> str | None:
    return text if text in ("binpack", "spread") else None


def _duration(text: str) -> str | None:
    """KAI Scheduler counts days and weeks too, such as 2d4h."""
    text = re.sub(r"([0-9]+(?:\.[0-9]+)?)([dw])", lambda found: f"{float(found[1]) * _HOURS[found[2]]:.10g}h", text)
    return text if seconds_of(text) is not None else None


def _method(text: str) -> str | None:
    return text if text in ("lca", "queue") else None


_STRATEGY = "binpack or spread, the same for cpu and gpu"
_DURATION = "a duration such as 1h30m"
#: By plugin and argument: its name here, how its text is read, and what is expected.
ARGUMENTS: Mapping[str, Mapping[str, tuple[str, Callable[[str], Any], str]]] = {
    "proportion": {
        "kValue": ("k", _number, "a number, at least 0"),
        "relcaimerSaturationMultiplier": ("saturation_multiplier", _multiplier, "a number, at least 0"),
        "reclaimerUtilizationMultiplier": ("saturation_multiplier", _multiplier, "a number, at least 0"),
    },
    "nodeplacement": {"cpu": ("strategy", _strategy, _STRATEGY), "gpu": ("strategy", _strategy, _STRATEGY)},
    "minruntime": {
        "defaultPreemptMinRuntime": ("default_preempt", _duration, _DURATION),
        "defaultReclaimMinRuntime": ("default_reclaim", _duration, _DURATION),
        "reclaimResolveMethod": ("reclaim_from", _method, "lca or queue"),
    },
}
