"""What must be true when the faults are over, asked of the streams' own history, the broker and the fleet.

The history is folded once more here, by nobody who was hurt; the numbers are those of the design's invariants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.broker import checkpoints
from actors.broker.bus import DEAD, DECISIONS, EVENTS, START, Entry, id_order
from actors.broker.stream_order import merged
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.known.state import SCHEMA
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, RefusedMessage, decisions_in, decode_decisions, decode_events
from actors.verification.audit import audited
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.cycle import cycle
from tests.chaos.decisions_again import broken_in
from tests.chaos.real_world import World

_STATUS = {PENDING: "Pending", BOUND: "Running", RUNNING: "Running", TERMINATING: "Terminating"}
Letter = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Both streams folded from their beginning, and what was refused on the way: stream, entry, index."""

    interpreter: Interpreter
    refused: tuple[Letter, ...]
    entries: int

    @property
    def snapshot(self) -> Snapshot:
        """The state."""
        return self.interpreter.snapshot


def replayed(events: Sequence[Entry], decisions: Sequence[Entry]) -> Replayed:
    """Fold a history in the broker's order."""
    state, refused = Interpreter(), []
    entries = merged(events, decisions)
    for entry in entries:
        for one in decode_events(entry) if entry.stream == EVENTS else decode_decisions(entry):
            if isinstance(one, RefusedMessage):
                refused.append((one.stream, one.entry, one.index))
            else:
                state.take(one)
    state.flush()
    refused += [(one.stream, one.entry, one.index) for one in state.refused()]
    return Replayed(state, tuple(refused), len(entries))


def told(made: Replayed) -> dict[str, tuple[str, str | None, int]]:
    """Status, node and incarnation of every task, as the fleet says it."""
    snapshot, names = made.snapshot, made.interpreter.state.names
    tasks = snapshot.tasks
    return {
        names.tasks[row]: (
            _STATUS[status],
            names.nodes[tasks.node[row]] if status != PENDING else None,
            int(tasks.incarnation[row]),
        )
        for row, status in enumerate(tasks.status.tolist())
        if status in _STATUS
    }


def wants(made: Replayed, world: World, now: float) -> list[str]:
    """What the core would decide on this state; empty is rest (15)."""
    return [
        f"{one.action} for {made.interpreter.state.names.podgroups[one.preemptor]}"
        for one in cycle(made.snapshot, world.policy, now).statements
        if len(one.evictions) or len(one.bound) or len(one.nominated)
    ]


def broken(world: World) -> list[str]:
    """One sentence for everything that is not as it must be; the pipeline has been stopped."""
    events, decisions = world.history.of(EVENTS), world.history.of(DECISIONS)
    made = replayed(events, decisions)
    return [
        *world.objections,
        *(world.pair.objections if world.pair is not None else _ended_alone(world)),
        *_one_writer(decisions),
        *audited(events, decisions, world.policy).broken,
        *broken_in(events, decisions, world.policy),
        *_kept(world),
        *_verdicts(world, decisions),
        *_buried(world, made),
        *_same_state(world, made, events, decisions),
        *([f"{world.fleet.fleet.tally.misfits} tasks did not fit"] if world.fleet.fleet.tally.misfits else []),
    ]


def _ended_alone(world: World) -> list[str]:
    """Nobody ends who was not struck, but searchers that stall and are replaced; not asked where raylets are lost."""
    if world.schedule.raylets:
        return []
    struck = world.raylets.struck
    return [
        f"a {one.role} ended {one.restarts} times and was struck {struck[one.actor]} times"
        for one in world.raylets.workers()
        if one.role != "searcher" and one.restarts > struck[one.actor]
    ]


def _one_writer(decisions: Sequence[Entry]) -> list[str]:
    """Who lost the lease writes nothing after its successor (14)."""
    messages = decisions_in(decisions)
    plans = [(one, one.body.epoch) for one in messages if isinstance(one.body, PlanCommitted | PlanWithdrawn)]
    return [
        f"decision {late.entry} was recorded under epoch {epoch}, after one under epoch {before}"
        for (_, before), (late, epoch) in pairwise(plans)
        if epoch < before
    ]


def _kept(world: World) -> list[str]:
    """What was once seen stays, the same to the byte, until it is trimmed (14)."""
    return [
        f"entry {one} of {stream} was seen and is not there as it was"
        for stream in (EVENTS, DECISIONS)
        for one in world.history.changed(stream)
    ]


def _verdicts(world: World, decisions: Sequence[Entry]) -> list[str]:
    """Every decision has one verdict, every accepted verdict its decision (3, 11, 14)."""
    rows = world.link.ask(lambda client: client.hgetall(f"clearway:{{{world.settings.fleet}}}:ledger:verdicts"))
    said = {key.decode(): value.split(b" ", 2)[1].decode() for key, value in rows.items()}
    recorded = {key: entry for key, entry in said.items() if entry != "-"}
    messages = [one for entry in decisions for one in decode_decisions(entry) if isinstance(one, Message)]
    found = {
        (one.body.plan_id if isinstance(one.body, PlanCommitted) else f"{one.uid}:withdrawn"): one.entry
        for one in messages
        if one.kind != "resync_requested"
    }
    return [
        f"{key}: the ledger says it stands at {recorded.get(key)}, the stream has it at {found.get(key)}"
        for key in sorted({*recorded, *found})
        if recorded.get(key) != found.get(key)
    ]


def _buried(world: World, made: Replayed) -> list[str]:
    """What is refused is a dead letter once, with a reason, and nothing else is (16)."""
    letters = world.bus.follow(DEAD, START, count=100_000)
    there = Counter(
        (one.fields["stream"].decode(), one.fields["entry"].decode(), int(one.fields["index"])) for one in letters
    )
    wanted = Counter(made.refused)
    return [
        f"{letter} was refused {wanted[letter]} times and buried {there[letter]} times"
        for letter in sorted({*there, *wanted})
        if there[letter] != wanted[letter]
    ] + [f"{one.id} is buried without a reason" for one in letters if not one.fields["reason"]]


def _same_state(world: World, made: Replayed, events: Sequence[Entry], decisions: Sequence[Entry]) -> list[str]:
    """Replay, the ingestor that lived through it, and the fleet agree (13)."""
    wrong = [
        f"{name}: the fleet has it {fleet}, the replay {replay}" for name, fleet, replay in _differences(world, made)
    ]
    found = checkpoints.newest(world.bus, schema=SCHEMA)
    if found is None:
        return [*wrong, "the ingestor left no checkpoint"]
    manifest, state = found
    covered = [one for one in (*events, *decisions) if id_order(one.id) <= id_order(manifest.covers[one.stream])]
    again = replayed([one for one in covered if one.stream == EVENTS], [one for one in covered if one.stream != EVENTS])
    lived = Replayed(Interpreter.decode(state), (), 0)
    if told(lived) != told(again):
        wrong.append(f"the ingestor's state differs from its replay: {_first(told(lived), told(again))}")
    if lived.snapshot.decided != again.snapshot.decided:
        wrong.append(f"the ingestor knows decision {lived.snapshot.decided}, its replay {again.snapshot.decided}")
    return wrong


def _differences(world: World, made: Replayed) -> list[tuple[str, object, object]]:
    fleet, replay = world.fleet.truth(), told(made)
    return [
        (name, fleet.get(name), replay.get(name))
        for name in sorted({*fleet, *replay})
        if fleet.get(name) != replay.get(name)
    ]


def _first(one: dict[str, tuple[str, str | None, int]], two: dict[str, tuple[str, str | None, int]]) -> str:
    name = min(name for name in {*one, *two} if one.get(name) != two.get(name))
    return f"{name} is {one.get(name)} and {two.get(name)}"
