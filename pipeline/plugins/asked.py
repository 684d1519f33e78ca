"""The policy's plugins on one state of the cluster: which of them answer a question, in the policy's order."""

from __future__ import annotations

from typing import Any, Self

from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.cluster.what_if import WhatIf
from pipeline.keeping import cached_property
from pipeline.plugins.extension_points import POINTS_OF, Question
from pipeline.plugins.plugin import Context, Plugin, State
from pipeline.plugins.registry import make_plugins
from pipeline.policy import ExtensionPoint
from pipeline.records import replace


class AskedPlugins:
    """Plugins, made once for a snapshot and carried over to the what-ifs that begin with it."""

    def __init__(self, context: Context) -> None:
        self._state: State = context.snapshot
        self._given = context
        self._plugins: list[Plugin] = list(make_plugins(context))
        self._current = set(range(len(self._plugins)))
        self._counting = [at for at, plugin in enumerate(self._plugins) if plugin.counts_evictions]
        self._found = context.policy.answers(AskedPlugins._answering)
        self._known = dict[tuple[object, ExtensionPoint | None], list[Any]]()

    @cached_property
    def context(self) -> Context:
        """What the plugins look at; on a what-if its snapshot is made here, in time proportional to all tasks."""
        return replace(self._given, snapshot=self._state.whole) if isinstance(self._state, WhatIf) else self._given

    def on(
        self,
        state: State,
        evicted: Rows = NO_ROWS,
        starting: Rows | None = None,
        among: Rows | None = None,
        *,
        equally_fair: bool = False,
    ) -> Self:
        """The same plugins on another state of the same nodes and queues: some tasks evicted, placed or promised nodes.

        No plugin is made anew, and a plugin that need not hear of evictions is carried over only when it is asked. So a
        step costs next to nothing, whatever the size of the cluster.

        Parameters
        ----------
        evicted
            int64[V]: tasks that were evicted since.
        starting, among
            int64[K]: see `Context`; None: unchanged.
        equally_fair
            The same; false: unchanged.
        """
        twin = object.__new__(type(self))
        twin._state, twin._given, twin._found, twin._counting = state, self._given, self._found, self._counting
        if not isinstance(state, WhatIf):
            twin._given = replace(twin._given, snapshot=state)
        if starting is not None:
            twin._given = replace(twin._given, starting=starting)
        if among is not None:
            twin._given = replace(twin._given, among=among)
        if equally_fair:
            twin._given = replace(twin._given, equally_fair=True)
        twin._plugins = self._plugins.copy()
        twin._current, twin._known = set(), {}
        for at in self._counting:
            twin._plugins[at] = self._plugins[at].on(state, evicted)
            twin._current.add(at)
        return twin

    def _asked(self, question: type[Question], point: ExtensionPoint | None = None) -> list[Question]:
        """The plugins that answer and that the policy asks, in its order; ``point`` if the question has several."""
        known = self._known.get((question, point))
        if known is None:
            plugins, current, answering = self._plugins, self._current, self._found.get((question, point))
            if answering is None:
                answering = self._answering(question, point)
            known = [plugins[at] if at in current else self._plugin(at) for at in answering]
            self._known[question, point] = known
        return known

    def _plugin(self, at: int) -> Plugin:
        """A plugin that was not asked since an earlier state, on this one."""
        self._plugins[at] = self._plugins[at].on(self._state, NO_ROWS)
        self._current.add(at)
        return self._plugins[at]

    def named(self, question: type[Question], point: ExtensionPoint | None = None) -> list[tuple[str, Question]]:
        """The plugins that answer, each with its name, for reporting which of them objects."""
        names = [self._given.policy.plugins[at].name for at in self._answering(question, point)]
        return list(zip(names, self._asked(question, point), strict=True))

    def _answering(self, question: type[Question], point: ExtensionPoint | None = None) -> list[int]:
        found = self._found.get((question, point))
        if found is None:
            (asked_at,) = (point,) if point else POINTS_OF[question] or (None,)  # it has one point or none
            found = self._found[question, point] = [
                at
                for at, (setting, plugin) in enumerate(zip(self._given.policy.plugins, self._plugins, strict=True))
                if question in type(plugin).__mro__ and (asked_at is None or setting.asks(asked_at))
            ]
        return found

    def _by_tier(self, question: type[Question]) -> list[list[Question]]:
        """The same, tier by tier."""
        tiers = dict[int, list[Question]]()
        for at, plugin in zip(self._answering(question), self._asked(question), strict=True):
            tiers.setdefault(self._given.policy.plugins[at].tier, []).append(plugin)
        return [tiers[tier] for tier in sorted(tiers)]
