"""The small system of `every_interleaving`: its broker, what it begins with, and calls that wait for an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any

from actors.broker.bus import DECISIONS, EVENTS, Entry
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.ingestion.interpreter import Interpreter
from actors.protocol.envelopes import Message, decode_decisions, decode_events
from actors.verification.audit import audited
from pipeline.cluster.snapshot import Snapshot
from tests.support.assembly import Clock, HeldBack, gang, rack_cluster

CLOCK = Clock()


class Suspended(BaseException):
    """An operation waits for the broker."""

    def __init__(self, name: str, arguments: tuple[Any, ...], more: dict[str, Any]) -> None:
        super().__init__(name)
        self.name, self.arguments, self.more = name, arguments, more


class Calls:
    """The broker as an operation sees it: the answers that it had, then none."""

    def __init__(self, answers: tuple[tuple[float, Any], ...]) -> None:
        self._answers = list(answers)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if not self._answers:
                raise Suspended(name, arguments, more)
            CLOCK.now, answer = self._answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class Given:
    """What the walk begins with: a full fleet, its list, and three plans, of which two are for the same gang."""

    def __init__(self) -> None:
        CLOCK.now = 1_700_000_000.0
        cluster = rack_cluster(racks=1, nodes=3, devices=4)
        cluster["podgroups"] = [gang(f"low{at}", 1, 4, nodes=[f"n{at}"]) for at in range(3)]
        made = HeldBack(cluster)
        made.hear()
        for name in ("big", "large"):
            made.submit(gang(name, 1, 4, priority=5))
        made.cycle()
        first, second = made.offers
        self.offers = ((first, second), (replace(first, plan_id="another"),))
        self.directory, self.policy, self.telemetry = made.directory, made.policy, made.telemetry
        self.events = made.bus.follow(EVENTS, "0-0", count=1_000)
        self._folded: dict[tuple[bytes, ...], Interpreter] = {}
        self._audited: dict[tuple[bytes, ...], list[str]] = {}
        self.now = CLOCK.now

    def state_after(self, decisions: tuple[Entry, ...]) -> Snapshot:
        """The state with these decisions folded in."""
        key = tuple(map(digest, decisions))
        found = self._folded.get(key)
        if found is None:
            found = self._folded[key] = Interpreter()
            for entry in (*self.events, *decisions):
                for message in decode_events(entry) if entry.stream == EVENTS else decode_decisions(entry):
                    if isinstance(message, Message):
                        found.take(message)
            found.flush()
        return found.snapshot

    def broken_by(self, decisions: tuple[Entry, ...]) -> list[str]:
        """What of the invariants a history breaks."""
        key = tuple(map(digest, decisions))
        if key not in self._audited:
            self._audited[key] = audited(self.events, decisions).broken
        return self._audited[key]


@cache
def given() -> Given:
    """The same for all walks, with what they worked out of it."""
    return Given()


def digest(entry: Entry) -> bytes:
    """What a decision says, without its trace."""
    said = b"".join((entry.id.encode(), entry.fields["revision"], entry.fields["batch"]))
    return blake2b(said, digest_size=8).digest()


def plain(answer: object) -> object:
    """What an answer says, without traces."""
    if isinstance(answer, list) and all(isinstance(one, Entry) for one in answer):
        return tuple(map(digest, answer))
    return repr(answer)


class Broker:
    """The ledger and its stream, and what of them is on the disk."""

    ledger_class: type[MemoryLedger] = MemoryLedger
    #: Whether an answer waits for the disk.
    syncs = True

    def __init__(self) -> None:
        self.bus = MemoryBus("small", CLOCK)
        self.ledger = self.ledger_class(self.bus, CLOCK)
        #: What the disk has, where that is not everything.
        self.synced: Broker | None = None

    def copied(self) -> Broker:
        """Another one like it."""
        made = type(self)()
        log, theirs = made.bus._log(DECISIONS), self.bus._log(DECISIONS)
        log.ids, log.entries, log.last, log.added = theirs.ids[:], theirs.entries[:], theirs.last, theirs.added
        for name in ("_held", "_epoch", "_revision"):
            setattr(made.ledger, name, getattr(self.ledger, name))
        made.ledger._recorded = dict(self.ledger._recorded)
        made.bus._log(EVENTS).last = self.bus._log(EVENTS).last
        made.synced = self.synced
        return made

    def answering(self) -> Broker:
        """The same once it has answered."""
        if self.syncs:
            self.synced = None
        return self

    @property
    def decisions(self) -> tuple[Entry, ...]:
        """All that are in the stream."""
        return tuple(self.bus._log(DECISIONS).entries)

    def call(self, asked: Suspended) -> Any:
        """Carry a call out."""
        of: Any = self.bus if asked.name == "follow" else self.ledger
        return getattr(of, asked.name)(*asked.arguments, **asked.more)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What distinguishes it; asked once it changes no more."""
        ledger = self.ledger
        synced = self.synced.key if self.synced is not None else None
        recorded = tuple((key, one.revision, one.entry) for key, one in sorted(ledger._recorded.items()))
        return ledger._held, ledger._epoch, ledger._revision, recorded, tuple(map(digest, self.decisions)), synced
