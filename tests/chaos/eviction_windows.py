"""What a policy lets be evicted in a window of time, against all that a history has evicted (20)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from actors.broker.bus import Entry
from actors.protocol.bodies import PlanCommitted
from actors.verification.audit import Audit
from actors.verification.history import in_stream_order
from pipeline.policy import PluginSetting, Policy

#: When a task was told to end, in seconds, and the queue that loses it.
Told = tuple[float, str | None]


def paced(policy: Policy, **bounds: float) -> Policy:
    """The policy with bounds on evictions in a window."""
    setting = PluginSetting("evictionbudget", arguments=tuple(bounds.items()))
    return replace(policy, plugins=(*policy.plugins, setting))


def beyond(told: Iterable[Told], policy: Policy) -> Iterator[str]:
    """Windows in which more was evicted than the policy lets be: those that begin with an eviction."""
    bounds = next((dict(one.arguments) for one in policy.plugins if one.name == "evictionbudget"), {})
    window_s, every = float(str(bounds.get("window_s", 3600.0))), sorted(told, key=lambda one: one[0])
    for begin, _ in every:
        inside = [queue for at, queue in every if begin <= at < begin + window_s]
        found = {"in_window": len(inside)}
        found["in_window_of_queue"] = max(inside.count(queue) for queue in set(inside))
        for bound, many in found.items():
            if bound in bounds and many > int(str(bounds[bound])):
                yield f"from {begin:.3f} on {many} tasks were evicted within {window_s:g} s; {bound} is {bounds[bound]}"
                return


def of_history(events: Iterable[Entry], decisions: Iterable[Entry]) -> list[Told]:
    """All evictions of a history, each at the time of its verdict."""
    audit, told = Audit(), list[Told]()
    for at_ms, message in in_stream_order(events, decisions):
        body = message.body
        if isinstance(body, PlanCommitted) and body.judged_on is not None:
            owners = [audit.facts.groups.get(one.podgroup or "") for one in body.evictions]
            told += [(body.judged_on.at, None if owner is None else owner.queue) for owner in owners]
        audit.hear(message, at_ms)
    return told
