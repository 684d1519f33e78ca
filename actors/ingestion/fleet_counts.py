"""What entries show of who writes them: by a fleet's counts of its entries and lists, and by a writer's name."""

from __future__ import annotations

from collections.abc import Iterable

from actors.broker.bus import Entry
from actors.ingestion.interpreter import Interpreter
from actors.protocol.bodies import FleetListed
from actors.protocol.envelopes import WRITER_BYTES, Message, RefusedMessage
from actors.protocol.full_list import fingerprint
from pipeline.cluster.arrays import NONE


def writer_of(entry: Entry) -> str:
    """The name of the process that wrote an entry; empty if it says none."""
    return entry.fields.get("writer", b"").decode(errors="replace")


def wrong_with_writer(interpreter: Interpreter, name: str, messages: Iterable[Message | RefusedMessage]) -> str | None:
    """Why an entry is refused: two processes write for one fleet, and this is not the one that listed it last.

    Counts of two writers say nothing of each other. So the one that begins a list, above the newest one, takes the
    place of the other and counts anew; what the other says is refused until it lists in turn.
    """
    if len(name.encode()) > WRITER_BYTES:
        return f"writer: expected at most {WRITER_BYTES} bytes, found {len(name.encode())}"
    known = interpreter.state.writer
    if name in ("", known):
        return None
    if known:
        interpreter.flush()
        if not _begins_list(interpreter, messages):
            interpreter.state.unheard += 1
            return f"writer: expected {known!r}, which listed the fleet last, found {name!r}: two connectors write"
        _begin_anew(interpreter)
        interpreter.state.sequence = NONE
    interpreter.state.writer = name
    return None


def _begins_list(interpreter: Interpreter, messages: Iterable[Message | RefusedMessage]) -> bool:
    """Whether a list that is newer than the newest one begins here."""
    newest = interpreter.state.documents.revisions.get("fleet", NONE)
    return any(
        isinstance(one, Message) and isinstance(one.body, FleetListed) and one.body.part == 0 and one.revision > newest
        for one in messages
    )


def entry_again(interpreter: Interpreter, number: int) -> bool:
    """Whether the entry with this number came before: its number is no higher, and not the first of a count."""
    return 1 < number <= interpreter.state.sequence


def part_again(interpreter: Interpreter, message: Message) -> bool:
    """Whether a part of a list is one of the newest list."""
    interpreter.flush()
    part = message.body
    assert isinstance(part, FleetListed)
    return fingerprint(part, message.revision) in interpreter.state.list_fingerprints


def wrong_with_entry(interpreter: Interpreter, number: int) -> str | None:
    """Why a list is to be asked for: there is a gap in the fleet's numbers, or they begin anew; the number is noted."""
    last = interpreter.state.sequence
    reason = None
    if number <= 1 and number < last:
        _begin_anew(interpreter)
        reason, last = f"the fleet counts its entries anew: {number} came after {last}", number
    elif last != NONE and number > last + 1:
        interpreter.flush()  # a list before the hole does not fill it
        interpreter.state.holes += number - last - 1
        reason = f"entries {last + 1} to {number - 1} of the fleet never came"
    interpreter.state.sequence = max(last, number)
    return reason


def wrong_with_list(interpreter: Interpreter, message: Message) -> str | None:
    """Why a list is to be asked for: this one is no newer than the newest, so the fleet counts its revisions anew."""
    interpreter.flush()
    state = interpreter.state
    newest = state.documents.revisions.get("fleet", NONE)
    if state.anew or message.revision > newest:
        return None
    _begin_anew(interpreter)
    return f"the fleet counts its lists anew: revision {message.revision} came after {newest}"


def _begin_anew(interpreter: Interpreter) -> None:
    """Let revisions be looked at, and count what may have been lost as a hole."""
    interpreter.flush()
    state = interpreter.state
    state.holes, state.anew = state.holes + 1, True
