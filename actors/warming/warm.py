"""``clearway warm``: compile every kernel once, so that no later process waits for the compiler."""

import compileall
import gc
import logging
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numba.core import event
from numba.core.registry import cpu_target

import actors
import pipeline
from actors.configuration.profiles import load_profile
from actors.documents.collector import collect_seldom, collector_paused
from actors.documents.results import complain, say
from actors.fleets.generated import NOW, GangSpec, generate
from actors.fleets.mixed import with_subgroups
from actors.fleets.rehearsal import Rehearsal
from actors.observability.logs import unsaid
from actors.processes.bound import end_with_parent
from actors.warming.local_search import search_locally
from actors.warming.machine_code import compile_one_by_one
from actors.warming.placing import let_return, place_task_by_task, reclaim_among_few, refuse_regions
from pipeline.actions.registry import actions_of
from pipeline.cluster.arrays import NO_ROWS
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.compiled import Compiled
from pipeline.decision.attempt import Attempt
from pipeline.policy import PluginSetting, Policy, Purpose
from pipeline.propose import propose
from pipeline.records import replace

#: Nodes of the fleet that the decisions are taken on: small, but with every level of topology.
_NODES = 400
_GANGS = (GangSpec(64), GangSpec(8, gpus=8), GangSpec(2048))
#: Two shares of the work: whether a local search is made first, whose kernels take a quarter of all time to compile,
#: and the profiles that are warmed up.
_SHARES = ((False, ("default", "volcano")), (True, ("kai", "koordinator")))

#: Tasks are placed one by one, and their evictions simulated.
_TASK_BY_TASK = {
    "actions": ("allocate", "preempt", "reclaim"),
    "action_arguments": (("preempt", (("topology_aware", True),)),),
}

#: A plugin that no profile of ours names.
_OTHER = PluginSetting("proportion")

log = logging.getLogger(__name__)

#: Seconds between two messages about how far the compiler is.
_SAY_EVERY_S = 10.0


class Compiling(event.Listener):
    """Says that kernels must be compiled when the first one is, and from time to time how many were."""

    def __init__(self, say: Callable[[str], object], elapsed_s: Callable[[], float] = time.monotonic) -> None:
        self._say, self._elapsed_s, self._count, self._say_at = say, elapsed_s, 0, 0.0

    def on_start(self, event: object) -> None:
        """A kernel is about to be compiled: the cache has no machine code of it for this processor."""
        del event
        if not self._say_at:
            self._say_at = self._elapsed_s() + _SAY_EVERY_S
            self._say(
                "kernels are compiled for this processor; that takes some minutes (`clearway warm` does it ahead)"
            )

    def on_end(self, event: object) -> None:
        """A kernel was compiled."""
        del event
        self._count += 1
        if self._elapsed_s() >= self._say_at:
            self._say_at = self._elapsed_s() + _SAY_EVERY_S
            self._say(f"{self._count} kernels compiled so far")


def run() -> int:
    """Decide on small fleets in every way that the program knows; the machine code stays on disk. The exit code, 0.

    Two processes do it side by side: a compiler takes one processor, and minutes. Before that all sources become
    bytecode: a process that finds none, and may not write it, takes half a second longer to start.
    """
    started = time.monotonic()
    write_bytecode()
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            len(_SHARES), get_context("spawn"), initializer=_begin_worker, initargs=(Path(folder),)
        ) as pool,
    ):
        decisions = sum(pool.map(_warm_share, _SHARES))
    say(f"kernels compiled and cached in {time.monotonic() - started:.1f} s ({decisions} decisions)\n")
    return 0


def _begin_worker(locks: Path) -> None:
    end_with_parent()
    compile_one_by_one(locks)


def write_bytecode() -> None:
    """Keep the bytecode of all sources beside them, whether or not Python is told to write it."""
    for package in (actors, pipeline):
        compileall.compile_dir(Path(package.__path__[0]), quiet=2)


def _warm_share(share: tuple[bool, tuple[str, ...]]) -> int:
    """Do a share of the work; returns how often it was decided."""
    searches, profiles = share

    def say(told: str) -> None:
        complain([f"{', '.join(profiles)}: {told}"])

    gc.freeze()
    collect_seldom()
    with event.install_listener("numba:compile", Compiling(say)):
        if searches:
            search_locally(load_profile("default"))
        return sum(_decided(load_profile(name)) for name in profiles)


def compile_missing(policy: Policy, say: Callable[[str], object] = log.info) -> None:
    """Warm up, unless machine code of every kernel is on disk: to look for it takes no more than some milliseconds."""
    if uncompiled():
        warm_up(policy, say)


def uncompiled() -> list[str]:
    """Kernels without machine code on disk for this processor and these sources."""
    processor = cpu_target.target_context.codegen().magic_tuple()
    return sorted(
        f"{one.py_func.__module__}.{one.py_func.__qualname__}" for one in kernels() if processor not in one.processors()
    )


def kernels() -> set[Compiled]:
    """Every kernel that modules of the core call from Python; none where nothing is compiled (NUMBA_DISABLE_JIT)."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("pipeline.")]
    return {one for module in modules for one in vars(module).values() if isinstance(one, Compiled) and one.is_kernel}


def warm_up(policy: Policy, say: Callable[[str], object] = log.info) -> None:
    """Take decisions that reach every kernel that a policy uses, in every role."""
    with event.install_listener("numba:compile", Compiling(say)):
        _decided(policy)


def load(policy: Policy) -> None:
    """Load the machine code that decisions by this policy use, in a role that starts.

    One rehearsal: the few kernels that only the other one reaches are loaded within milliseconds when they are used.
    Garbage is not collected meanwhile: nearly all of it stays, and to look through it took a sixth of the time.
    """
    with collector_paused(), event.install_listener("numba:compile", Compiling(log.info)):
        _decided(policy, [(policy, True)])


def _decided(policy: Policy, rehearsals: Sequence[tuple[Policy, bool]] | None = None) -> int:
    """Decide on small fleets by one policy, and play rehearsals of all roles; the number of decisions.

    A rehearsal is a policy, and whether there is a disruption budget; all of them unless some are given.
    """
    decisions = 0
    place_task_by_task()
    refuse_regions()
    let_return(policy)
    reclaim_among_few(policy)
    for queues, purpose in ((0, Purpose.PREEMPT), (2, Purpose.RECLAIM)):
        fleets = [generate(_NODES, gang, queues=queues) for gang in _GANGS]
        for fleet in (*fleets, with_subgroups(fleets[0], gang=True)):
            for action in _actions(policy, purpose):
                propose(Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW, action))
                decisions += 1
            breaks_without(fleet.snapshot, np.array([fleet.gang]), NO_ROWS)  # asked of victims that become superfluous
    if rehearsals is None:
        other = replace(policy, plugins=(*policy.plugins, _OTHER))
        propose(Attempt(fleets[0].snapshot, other, Purpose.RECLAIM, (fleets[0].gang,), None, NOW, "reclaim"))
        decisions += 1
    plays = _rehearsals(policy) if rehearsals is None else rehearsals
    with unsaid():
        return decisions + sum(Rehearsal(one, budgets=budgets).play() for one, budgets in plays)


def _actions(policy: Policy, purpose: Purpose) -> list[str]:
    """The action named after a purpose, and those of a policy that have it: each may have another solver."""
    own = [action.name for action in actions_of(policy.actions) if action.purpose is purpose]
    return list(dict.fromkeys([purpose.value, *own]))


def _rehearsals(policy: Policy) -> list[tuple[Policy, bool]]:
    plays = [(policy, True), (policy, False)]
    if "tasks" in dict(policy.solvers).values():
        # Where evictions are simulated, plugins are asked about budgets node by node.
        plays.append((replace(policy, **_TASK_BY_TASK), True))
    return plays
