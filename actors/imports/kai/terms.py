"""Names of plugins, arguments and flags in configurations of KAI Scheduler, and their names here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

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
#: Keys of a configuration that only say for how long a search goes on, what is kept of it, or how much memory it takes.
UNREAD = ("goMemLimit", "goMemLimitRatio", "scenarioSearchBudgets", "scenarioSearchCheckpoints")
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


def _truth(text: str) -> bool | None:
    """What Go reads as a truth value."""
    return {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}.get(text.lower())


def _grace(text: str) -> float | None:
    return -1.0 if text.startswith("-") and seconds_of(text[1:]) else seconds_of(text)


def _limit(text: str) -> int | None:
    return max(int(text), -1) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _as_here(take: Callable[[str], Any], value: Any) -> Callable[[str], Any]:
    """Takes a value that asks for what holds here anyway, and no other."""
    return lambda text: value if take(text) == value else None


#: A name here ("" if nothing is set), how a text is read (None: not at all), and what is expected.
Rule: TypeAlias = tuple[str, Callable[[str], Any], str]
_STRATEGY = "binpack or spread"
_DURATION = "a duration such as 1h30m"
#: Flags of the scheduler.
FLAGS: Mapping[str, Rule] = {
    "default-staleness-grace-period": ("stale_grace_s", _grace, _DURATION),
    "max-consolidation-preemptees": ("consolidation_max_victims", _limit, "a whole number"),
    "allow-consolidating-reclaim": ("allow_consolidating_reclaim", _truth, "true or false"),
    "full-hierarchy-fairness": ("", _as_here(_truth, True), "true"),
    "restrict-node-scheduling": ("", _as_here(_truth, False), "false"),
    "schedule-csi-storage": ("", _as_here(_truth, False), "false"),
    "stuck-in-releasing-threshold": ("", _as_here(seconds_of, 120.0), "2m, which is the usual one"),
    "queue-label-key": ("", _as_here(str, "kai.scheduler/queue"), "kai.scheduler/queue"),
    "gpu-sharing-mode": ("", _as_here(str, ""), "none"),
    "partition-label-value": ("", _as_here(str, ""), "none"),
}
#: Flags that change nothing of what is decided.
UNREAD_FLAGS = (
    "burst", "cpu-worker-node-label-key", "detailed-fit-errors", "enable-profiler", "enable-workload-eviction-metrics",
    "feature-gates", "gpu-worker-node-label-key", "leader-elect", "listen-address", "log-json", "metrics-namespace",
    "mig-worker-node-label-key", "namespace", "nodepool-label-key", "num-of-status-recording-workers",
    "plugin-server-port", "profiler-port", "pyroscope-address", "pyroscope-block-profiler-rate",
    "pyroscope-mutex-profiler-rate", "qps", "resource-reservation-app-label", "schedule-period", "scheduler-conf",
    "scheduler-name", "update-pod-eviction-condition", "use-scheduling-signatures", "v", "version",
)  # fmt: skip
#: By plugin and argument.
ARGUMENTS: Mapping[str, Mapping[str, Rule]] = {
    "proportion": {
        "kValue": ("k", _number, "a number, at least 0"),
        "relcaimerSaturationMultiplier": ("saturation_multiplier", _multiplier, "a number, at least 0"),
        "reclaimerUtilizationMultiplier": ("saturation_multiplier", _multiplier, "a number, at least 0"),
    },
    "nodeplacement": {"cpu": ("cpu_strategy", _strategy, _STRATEGY), "gpu": ("strategy", _strategy, _STRATEGY)},
    "minruntime": {
        "defaultPreemptMinRuntime": ("default_preempt", _duration, _DURATION),
        "defaultReclaimMinRuntime": ("default_reclaim", _duration, _DURATION),
        "reclaimResolveMethod": ("reclaim_from", _method, "lca or queue"),
    },
}
