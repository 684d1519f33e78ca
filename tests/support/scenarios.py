"""A policy whose actions are all searched by the solver `scenarios`."""

from pipeline.policy import PluginSetting, Policy

ACTIONS = ("consolidation", "preempt")
SCENARIOS = Policy(
    "test", "", ACTIONS,
    (
        PluginSetting("priority"), PluginSetting("gang", (("*", True), ("job_starving", False))),
        PluginSetting("predicates"),
    ),
    solvers=tuple((action, "scenarios") for action in ACTIONS),
)  # fmt: skip
