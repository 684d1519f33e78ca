"""The log of a service: what each role says, kept in its process, carried to the one that the operator watches.

Ray keeps what an actor writes in files that go with it. So every role keeps its newest lines in memory, and the process
that started the roles asks for them and writes them out.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TextIO

from opentelemetry.trace import format_trace_id, get_current_span

from actors.documents.messages import on_one_line

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

#: Lines that a role keeps until they are asked for. The oldest go first, and their number is said.
_KEPT = 5_000
#: What a record may carry besides its message, in the order in which it is written.
_SAID_WITH = ("plan", "podgroup")
#: Where OpenTelemetry says that a collector is away, and for how many seconds one such line stands for those like it.
_TELEMETRY, _SELDOM_S = "opentelemetry.", 60.0
#: How many kinds of lines are remembered for that.
_KINDS = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log.

    Attributes
    ----------
    at_s
        Seconds since the epoch.
    level
        Name of the level, in capitals.
    said
        What it is about: plan, podgroup, trace_id.
    """

    at_s: float
    level: str
    role: str
    message: str
    said: Mapping[str, str] = field(default_factory=dict)


class Seldom(logging.Filter):
    """Lets the same complaint of OpenTelemetry pass once a minute: it makes one with each try, in every role."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        if not record.name.startswith(_TELEMETRY):
            return True
        kind = record.name, str(record.msg)
        if 0 <= record.created - self._passed_at.get(kind, -math.inf) < _SELDOM_S:
            return False
        if len(self._passed_at) >= _KINDS:
            self._passed_at.clear()
        self._passed_at[kind] = record.created
        return True


@contextmanager
def unsaid() -> Iterator[None]:
    """Write nothing that this thread logs within the block: it is about a rehearsal, and not true of the fleet."""
    mine = threading.get_ident()

    def is_of_another_thread(record: logging.LogRecord) -> bool:
        return record.thread != mine

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(is_of_another_thread)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_of_another_thread)


def line_of(record: logging.LogRecord, role: str) -> Line:
    """A record as a line; its trace is that of the span in which it was said."""
    said = {key: on_one_line(str(value)) for key in _SAID_WITH if (value := getattr(record, key, None)) is not None}
    context = get_current_span().get_span_context()
    if context.is_valid:
        said["trace_id"] = format_trace_id(context.trace_id)
    message = on_one_line(record.getMessage())
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return Line(record.created, record.levelname, role, message, said)


class KeptLines(logging.Handler):
    """The newest lines of one role, for the process that asks."""

    def __init__(self, role: str, kept: int = _KEPT) -> None:
        super().__init__()
        self._role, self._lines = role, deque[Line](maxlen=kept)
        self._number = 0
        self._changed = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        line = line_of(record, self._role)
        with self._changed:
            self._lines.append(line)
            self._number += 1

    def since(self, number: int) -> tuple[int, list[Line]]:
        """The lines after the first ``number``, and how many there were in all."""
        with self._changed:
            new = min(self._number - number, len(self._lines)) if number <= self._number else len(self._lines)
            lines = list(self._lines)[len(self._lines) - new :]
            lost = self._number - number - new
            if lost > 0:
                lines.insert(0, Line(time.time(), "WARNING", self._role, f"{lost} lines were not kept"))
            self._changed.notify_all()
            return self._number, lines

    def await_asked(self, limit_s: float) -> None:
        """Wait up to ``limit_s`` seconds until the lines are asked for again, for a process that is about to end."""
        with self._changed:
            self._changed.wait(limit_s)


class Written(logging.Handler):
    """Writes lines to a stream, one way for those of this process and those of the roles.

    A log that cannot be written, because its disk is full, its reader has left or it is closed, ends no service: lines
    are lost until it can be written again.
    """

    def __init__(self, role: str, fleet: str, shape: LogFormat, stream: TextIO | None = None) -> None:
        super().__init__()
        self._role, self._fleet, self._shape, self._stream = role, fleet, shape, stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record of this process."""
        self.write(line_of(record, self._role))

    def write(self, line: Line) -> None:
        """Write a line of this process or of a role, if its level is high enough."""
        if logging.getLevelNamesMapping()[line.level] >= self.level:
            stream = self._stream if self._stream is not None else sys.stderr
            with suppress(OSError):
                if stream is not None:  # so it is if it was closed before this process began
                    stream.write(line_text(line, self._fleet, self._shape) + "\n")
                    stream.flush()


def line_text(line: Line, fleet: str, shape: LogFormat) -> str:
    """A line as it stands in the log: plain text, or a JSON object."""
    at = datetime.fromtimestamp(line.at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if shape == "json":
        head = {"time": at, "level": line.level.lower(), "fleet": fleet, "role": line.role, "message": line.message}
        return json.dumps({**head, **line.said}, ensure_ascii=False)
    tail = "".join(f" {key}={value}" for key, value in line.said.items())
    return f"{at} {line.role} {line.level} {line.message}{tail}"


def write_log(role: str, fleet: str, shape: LogFormat, level: LogLevel, stream: TextIO | None = None) -> Written:
    """Have this process write its log to standard error, or to ``stream``."""
    handler = Written(role, fleet, shape, stream)
    handler.setLevel(level.upper())
    handler.addFilter(Seldom())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return handler


def keep_log(role: str, level: LogLevel) -> KeptLines:
    """Have this process keep its log for the process that watches it, and write it to Ray's files."""
    kept = KeptLines(role)
    own = logging.StreamHandler()
    own.setFormatter(logging.Formatter(f"%(asctime)s {role} %(levelname)s %(message)s"))
    for handler in (kept, own):
        handler.addFilter(Seldom())
    logging.basicConfig(level=level.upper(), handlers=[kept, own], force=True)
    return kept
