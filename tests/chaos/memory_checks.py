"""A run to its end: once nothing goes wrong any more the system must come to rest, and everything must be true.

The numbers are those of the design's invariants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

import msgpack

from actors.broker.bus import DEAD, DECISIONS, EVENTS, SNAPSHOTS, id_order
from actors.broker.memory_bus import MemoryBus
from actors.fleets.fleet_tasks import OVER
from actors.ingestion.ingestor import Ingestor
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import decisions_in
from actors.verification.audit import audited
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.cycle import cycle
from tests.chaos.decision_checks import objections
from tests.chaos.decisions_again import replaced_otherwise
from tests.chaos.eviction_windows import beyond, of_history
from tests.chaos.memory_fleet import APART
from tests.chaos.memory_history import audited_as_default
from tests.chaos.memory_world import KAI, KOORDINATOR, Parts, World
from tests.chaos.schedule import FAULTS, TURNS, Outcome, Schedule, drawn
from tests.support.assembly import gang
from tests.support.encoded import encoded

_QUIET_TURNS, _PATIENCE = 6, 150
#: No gang is paused for longer before it is searched for again.
_LONGEST_PAUSE_S = 30.0
_STATUS = {PENDING: "Pending", BOUND: "Running", RUNNING: "Running", TERMINATING: "Terminating"}


def run(
    seed: int,
    parts: Parts | None = None,
    *,
    turns: int = TURNS,
    most: int = FAULTS,
    broker: bool = True,
    hosts: bool = False,
    restored: bool = False,
) -> Outcome:
    """Play the schedule of a seed and check everything; see ``drawn``."""
    return run_schedule(drawn(seed, turns=turns, most=most, broker=broker, hosts=hosts, restored=restored), parts)


def run_schedule(schedule: Schedule, parts: Parts | None = None) -> Outcome:
    """Play a schedule and check everything."""
    world = World(schedule, parts)
    try:
        world.play()
        broken = come_to_rest(world)
        history = world.bus.history[EVENTS], world.bus.history.get(DECISIONS, [])
        whole = world.policy.profile == "default"
        report = audited_as_default(*history) if whole else audited(*history, world.policy)
        broken += rested(world) if world.restored else [*(f"(3-12) {one}" for one in report.broken), *checked(world)]
    except Exception as failure:
        failure.add_note(str(Outcome(schedule)))
        raise
    counts = {"decisions": sum(report.decisions.values()), "victims": report.victims, "placed": report.placed}
    return Outcome(
        schedule,
        broken,
        counts | report.decisions | {"withdrawn": sum(report.withdrawn.values())} | world.injector.struck,
        _history(world),
    )


def _history(world: World) -> str:
    digest = blake2b(digest_size=16)
    for stream in (EVENTS, DECISIONS, SNAPSHOTS, DEAD):
        for entry in world.bus.history.get(stream, ()):
            said = {name: value for name, value in entry.fields.items() if name not in ("traceparent", "tracestate")}
            digest.update(repr((stream, entry.id, sorted(said.items()))).encode())
    return digest.hexdigest()


def come_to_rest(world: World) -> list[str]:
    """No more faults and no more gangs but a last one; until nothing happens for some turns."""
    world.injector.disarm()
    connector = world.connector
    connector.away = connector.doubling = connector.swapping = connector.losing = 0
    connector.losing_lists = connector.losing_requests = world.standing = 0
    connector.dies = False
    connector.fleet._grace_s = (1.0, 4.0)
    world.holding = world.losing_answers = world.search.losing = world.ingestor_away = world.dispatcher_behind = 0
    for seat in world.seats:
        seat.behind = 0
    for host in world.hosts.values():
        host.ahead_s = 0.0
    connector.say(connector.fleet.submit(gang("last", 1, 0)))
    quiet = 0
    for _ in range(_PATIENCE):
        before = world.bus.bounds(EVENTS).added, world.bus.bounds(DECISIONS).added
        world.turn(3.0)
        happened = before != (world.bus.bounds(EVENTS).added, world.bus.bounds(DECISIONS).added)
        leaders = [seat.committer for seat in world.seats if seat.committer.leads]
        held = any(one.reservations or one.next_deadline() is not None for one in leaders)  # or a domain is kept
        pending = connector.fleet.next_at() is not None or held or (world.due(_LONGEST_PAUSE_S) and not world.due())
        quiet = 0 if happened or pending else quiet + 1
        if quiet == _QUIET_TURNS:
            return []
    return [f"it did not come to rest within {_PATIENCE} turns"]


def checked(world: World) -> list[str]:
    """One sentence for everything that is not as it must be."""
    return [
        *(f"(1, 11, 14) {one}" for one in _answers(world)),
        *(f"(13) {one}" for one in _replay(world)),
        *(f"(16) {one}" for one in _letters(world)),
        *_replaced(world),
        *(f"(20) {one}" for one in _paced(world)),
        *rested(world),
    ]


def rested(world: World) -> list[str]:
    """The same, as far as it needs no streams: where the broker was restored they are not the whole history."""
    return [
        *(f"(14, 16) {one}" for one in _truth(world)),
        *(f"(15) {one}" for one in _rest(world)),
        *(sentence for one in world.noted.decided for sentence in objections(one, world.policy)),
        *(f"(2, 19) {one}" for one in world.noted.cycles.objections(world.policy)),
        *(f"(2) {sentence}" for one in world.exports.kept for sentence in one.objections(world.policy)),
        *(f"(17, 18) {one}" for one in sorted(world.noted.together)),
        *(f"(live) {one}" for one in _lively(world)),
    ]


def _answers(world: World) -> Iterator[str]:
    """A plan has one verdict; who was told that it is accepted finds it in the stream, once."""
    recorded: Counter[tuple[str, int]] = Counter()
    for message in decisions_in(world.bus.history.get(DECISIONS, ())):
        if isinstance(message.body, PlanCommitted):
            recorded[message.body.plan_id, message.revision] += 1
    for plan, said in world.noted.verdicts.items():
        if len(set(said)) > 1:
            yield f"plan {plan} was answered {said}"
        if said[0][0] == "accepted" and recorded[plan, said[0][1]] != 1:
            yield f"plan {plan} was accepted as {said[0][1]} and recorded {recorded[plan, said[0][1]]} times"
    for plan, sequence in world.noted.accepted.items():
        if recorded[plan, sequence] != 1:
            times = recorded[plan, sequence]
            yield f"the dispatcher was told that {plan} is decision {sequence}; recorded {times} times"
    for snapshot, as_it_was in world.noted.snapshots:
        if encoded(snapshot) != as_it_was:
            yield f"the snapshot of revision {snapshot.revision} changed"


def _replaced(world: World) -> Iterator[str]:
    """Decisions that replace another are made again, unless a loss of power took events on which some may rest."""
    if not world.lost:
        yield from replaced_otherwise(world.bus.history[EVENTS], world.bus.history.get(DECISIONS, []), world.policy)


def _paced(world: World) -> Iterator[str]:
    """No more is evicted in a window than the policy lets be, unless a loss of power took decisions."""
    if not world.lost and any(one.name == "evictionbudget" for one in world.policy.plugins):
        told = of_history(world.bus.history[EVENTS], world.bus.history.get(DECISIONS, []))
        yield from beyond(told, world.policy)


def replayed(world: World) -> Ingestor:
    """An ingestor that reads the whole history, without what was lost before anybody had read it."""
    bus = MemoryBus("chaos", world.clock)
    for stream in (EVENTS, DECISIONS):
        log = bus._log(stream)
        for entry in world.bus.history.get(stream, ()):
            if stream != EVENTS or entry.id not in world.lost:
                log.ids.append(id_order(entry.id))
                log.entries.append(entry)
        log.added, log.last = len(log.ids), log.ids[-1]
    ingestor = Ingestor(bus, consumer="replay", now_s=world.clock)
    ingestor.start()
    return ingestor


def _replay(world: World) -> Iterator[str]:
    assert world.ingest is not None
    lived, again = world.ingest.ingestor, replayed(world)
    for ingestor in (lived, again):
        ingestor.state.decisions.plans.clear()  # which of them stand is looked up when a checkpoint is written
    if encoded(lived.snapshot) != encoded(again.snapshot):
        yield f"the replayed state is another one: {_differences(lived, again)}"
    if msgpack.unpackb(lived.state.pack_register()) != msgpack.unpackb(again.state.pack_register()):
        yield "the replayed names are others"


def _differences(one: Ingestor, two: Ingestor) -> str:
    """The first columns that differ."""
    a, b = one.snapshot, two.snapshot
    said = [f"{name} {getattr(a, name)} / {getattr(b, name)}" for name in ("revision", "epoch", "decided")
            if getattr(a, name) != getattr(b, name)]  # fmt: skip
    for table in ("tasks", "podgroups", "nodes", "queues"):
        left, right = getattr(a, table), getattr(b, table)
        for column in type(left).__dataclass_fields__:
            mine, other = getattr(left, column), getattr(right, column)
            if mine.tobytes() != other.tobytes():
                said.append(f"{table}.{column} {mine.tolist()} / {other.tolist()}")
    return "; ".join(said)[:2_000]


def _letters(world: World) -> Iterator[str]:
    """Every poison has its letter and its reason; nobody else has one, but who came out of turn."""
    sent, covered = world.connector.sent, {}
    for letter in world.bus.history.get(DEAD, []):
        entry, reason = letter.fields["entry"].decode(), letter.fields["reason"].decode()
        covered[entry] = reason
        if entry not in sent.poison and entry not in sent.disturbed and not _unlisted(world, entry):
            yield f"{letter.fields['stream'].decode()} {entry} was refused: {reason}"
    for entry, reason in sent.poison.items():
        if entry not in world.lost and reason not in covered.get(entry, ""):
            yield f"poison {entry} is {covered.get(entry, 'not')} among the dead letters, expected {reason}"
    twice = Counter((one.fields["entry"], one.fields["index"]) for one in world.bus.history.get(DEAD, []))
    yield from (f"{letter} has {count} dead letters" for letter, count in twice.items() if count > 1)


def _unlisted(world: World, entry: str) -> bool:
    """Whether an entry stands behind one that was lost and before the list that was asked for: it may name anything."""
    lost = [id_order(one) for one in {*world.lost, *world.connector.sent.lost_before}]
    here, lists = id_order(entry), [id_order(one) for one in world.connector.sent.lists]
    return any(one <= here and not any(one < listed < here for listed in lists) for one in lost)


def _truth(world: World) -> Iterator[str]:
    """The state is what the fleet has, and nothing in the fleet went wrong by our doing."""
    fleet = world.connector.fleet
    assert world.ingest is not None
    snapshot, names = world.ingest.snapshot, world.ingest.ingestor.state.names
    tasks = snapshot.tasks
    state = {
        names.tasks[row]: (_STATUS[status], names.nodes[tasks.node[row]] if tasks.node[row] != NONE else None)
        for row, status in enumerate(tasks.status.tolist())
        if status in _STATUS
    }
    truth = {name: (task.status, task.node) for name, task in fleet._tasks.items() if task.status != OVER}
    for name in sorted({*state, *truth}):
        if state.get(name) != truth.get(name):
            yield f"{name}: the fleet has it {truth.get(name)}, the state {state.get(name)}"
    if fleet.tally.misfits:
        yield f"{fleet.tally.misfits} tasks did not fit where they were put"


def _rest(world: World) -> Iterator[str]:
    """Nothing is promised or ending any more, and nobody wants to decide anything."""
    assert world.ingest is not None
    snapshot, names = world.ingest.snapshot, world.ingest.ingestor.state.names
    for row in ((snapshot.tasks.nominated != NONE) & (snapshot.tasks.status == PENDING)).nonzero()[0].tolist():
        yield f"{names.tasks[row]} is still promised {names.nodes[snapshot.tasks.nominated[row]]}"
    for made in cycle(snapshot, world.policy, world.clock.now).statements:
        if len(made.evictions) or len(made.nominated) or len(made.bound):
            yield f"{made.action} for {names.podgroups[made.preemptor]} is still to be decided"


def _lively(world: World) -> Iterator[str]:
    """Gangs that fit what is free were placed: counted off node by node, without any of the pipeline's code."""
    fleet = world.connector.fleet
    if fleet._tasks["default/last-0"].status != "Running":
        yield "the last gang does not run"
    free = {node: room["gpu"] - fleet._held[node].get("gpu", 0) for node, room in fleet._nodes.items()}
    racks = [free.keys() & set(domain["nodes"]) for domain in fleet._fixed["topology"]["domains"]]
    quota = world.bounded and world.policy.profile == KOORDINATOR.profile
    for group in () if quota else fleet._podgroups.values():
        waiting = [fleet._tasks[name] for name in group.tasks if fleet._tasks[name].status == "Pending"]
        protected = group.document.get("preemptible") is False and world.policy is KAI  # it stays within its quota
        gathered = "gang_group" in group.document or "multiples" in group.document.get("topology", {})
        apart = APART in group.document["tasks"][0].get("labels", {})
        if len(waiting) < len(group.tasks) or protected or gathered or apart:
            continue
        gpu = waiting[0].request.get("gpu", 0)
        places = racks if "required" in group.document.get("topology", {}) else [set(free)]
        fits = max(sum(free[node] // gpu for node in place) for place in places) if gpu else len(waiting)
        if fits >= group.document["min_available"]:
            yield f"{group.name} waits for {len(waiting)} times {gpu} GPU, and {fits} would fit"
