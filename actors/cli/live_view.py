"""The view of the demo: a table that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from actors.protocol.bodies import DomainReserved, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message

_ROWS = 12
#: Lines of the view beside the decisions, and how many of what waits are named.
_HEAD, _NAMED = 9, 3
_REDRAW_S = 0.2
#: From this width on, in characters, a price is written out.
_WIDE = 110


@dataclass(frozen=True, slots=True)
class Pulse:
    """Figures at one moment.

    Attributes
    ----------
    gone, used
        Fraction of the time that is over, and of GPUs in use.
    arrived, waits, running
        Number of gangs that arrived, those that wait with the reason, number of those that run.
    behind
        By stream: how many entries its slowest reader has not finished, and the age of the oldest in seconds.
    queues
        By queue: how many GPUs its tasks hold.
    """

    gone: float
    used: float
    arrived: int
    waits: Mapping[str, str]
    running: int
    behind: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    queues: Mapping[str, float] = field(default_factory=dict)


class LiveView:
    """Shows decisions as they are recorded. Several threads may use it.

    Parameters
    ----------
    pulse
        Returns the figures; called at every redraw.
    plain
        Whether to print lines even on a terminal.

    Attributes
    ----------
    count, victims
        How many decisions were shown, and how many tasks they evict.
    """

    def __init__(self, pulse: Callable[[], Pulse], *, plain: bool = False) -> None:
        self._console = Console(highlight=False)
        self._lively = self._console.is_terminal and not plain
        self._pulse, self._lock = pulse, threading.Lock()
        # Two threads that print at once begin where they last saw the cursor, and so write into each other's lines.
        self._printing = threading.Lock()
        self._recent: deque[tuple[str, ...]] = deque()
        self._done = False
        self._started = time.monotonic()
        self.count = self.victims = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the view began."""
        return time.monotonic() - self._started

    def say(self, line: str) -> None:
        """Show a line of text."""
        with self._printing:
            self._console.print(Text(line), soft_wrap=True)

    def show(self, message: Message) -> None:
        """Show a decision."""
        row = decision_row(message)
        if row is None:
            return
        at = f"{self.elapsed_s:6.1f}"
        with self._lock:
            self.count += 1
            if isinstance(message.body, PlanCommitted):
                self.victims += len(message.body.evictions)
            self._recent.append((at, *row))
            gone = self._recent.popleft() if len(self._recent) > self._rows else None
        if not self._lively:
            self.say(_line((at, *row)))
        elif gone is not None:  # what leaves the table stays above it
            with self._printing:
                self._console.print(Text(_line(gone)), no_wrap=True, overflow="ellipsis")

    @property
    def _rows(self) -> int:
        """How many decisions fit into the table."""
        return max(1, min(_ROWS, self._console.height - _HEAD))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Redraw for the length of the block."""
        if not self._lively:
            yield
            return
        with Live(get_renderable=self._drawn, console=self._console, auto_refresh=False) as live:
            over = threading.Event()
            redraws = threading.Thread(target=self._redraw, args=(live, over), name="view", daemon=True)
            redraws.start()
            try:
                yield
            finally:
                over.set()
                redraws.join()
            self._done = True
            live.refresh()

    def _redraw(self, live: Live, over: threading.Event) -> None:
        """Draw the view again and again until it is over."""
        while not over.wait(_REDRAW_S):
            with self._printing:
                live.refresh()

    def _drawn(self) -> Group:
        pulse = self._pulse()
        with self._lock:
            rows, count, victims = list(self._recent), self.count, self.victims
        part = 1.0 if self._done else min(1.0, pulse.gone)
        bar = Table.grid(expand=True, padding=(0, 1))
        bar.add_column(ratio=1)
        bar.add_column(justify="right", width=4)
        bar.add_row(ProgressBar(total=1.0, completed=part), f"{part:.0%}")
        head = f"GPUs {pulse.used:.1%}   gangs arrived {pulse.arrived}, running {pulse.running}   "
        behind = "   ".join(f"{stream} {left} ({age:.1f} s)" for stream, (left, age) in pulse.behind.items())
        queues = "   ".join(f"{name} {held:,.0f}" for name, held in pulse.queues.items())
        lines = [
            Text(head + f"decisions {count}, victims {victims}"),
            Text(f"GPUs held by queue: {queues or 'none'}"),
            Text(f"unread: {behind or 'nothing'}"),
            *_waiting(pulse.waits),
        ]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(bar, *lines, _table(rows, wide=self._console.width >= _WIDE))


def _waiting(waits: Mapping[str, str]) -> Iterator[Text]:
    """What waits, and why: always the same number of lines, so that the table does not move."""
    more = f" and {len(waits) - _NAMED} more" if len(waits) > _NAMED else ""
    yield Text(f"starving: {len(waits) or 'none'}{', the first of them' if more else ''}", "red" if waits else "green")
    told = [f"  {gang}: {why or 'no cycle has looked for it yet'}" for gang, why in list(waits.items())[:_NAMED]]
    yield from (Text(line) for line in told + [""] * (_NAMED - len(told)))


def _table(rows: Sequence[tuple[str, ...]], *, wide: bool) -> Table:
    """The newest decisions; every column is whole in 80 columns, where the price is in short."""
    table = Table(expand=True, box=None, header_style="bold", padding=(0, 1, 0, 0))
    for title, width in (("s", 6), ("action", 9), ("gang", 8), ("domain", 8), ("what", 23)):
        table.add_column(title, no_wrap=True, width=width)
    table.add_column("price" if wide else "broken, gang-hours lost", no_wrap=True, ratio=1)
    for *row, price, short in rows:
        table.add_row(*row, price if wide else short, style="yellow" if "evict" in row[4] else "")
    return table


def _line(row: tuple[str, ...]) -> str:
    at, action, gang, domain, what, price, _ = row
    return f"{at} s  {action:<10} {gang:<20} {domain:<10} {what:<28} {price}"


def decision_row(message: Message) -> tuple[str, ...] | None:
    """A decision in short texts: action, gang, domain, effect, price, short price; None for any other message."""
    made = message.body
    if isinstance(made, PlanWithdrawn):
        return "withdrawn", made.plan_id[:8], "", made.reason[:40], "", ""
    if isinstance(made, DomainReserved):
        gang = made.podgroup.removeprefix("arrivals/")
        return "kept", gang, made.domain or "anywhere", f"{made.refusals} refused plans", "", ""
    if not isinstance(made, PlanCommitted):
        return None
    parts = [
        f"{verb} {count}"
        for verb, count in (
            ("evict", len(made.evictions)), ("promise", len(made.promised)), ("start", len(made.bindings)),
        )
        if count
    ]  # fmt: skip
    gang = (made.preemptor or "").removeprefix("arrivals/")
    return made.action, gang, made.domain or "anywhere", ", ".join(parts), *prices(made)


def prices(made: PlanCommitted) -> tuple[str, str]:
    """The price of a decision in words, and in numbers: gangs broken, gang-hours lost."""
    if not made.evictions:
        return "", ""
    ratios = [value for name, value in made.cost.items() if name.endswith("gpu-milli")]
    evicted = f", evicted to requested {ratios[0]:g} of GPUs" if ratios else ""
    broken, lost = made.cost.get("gangs_broken", 0), made.cost.get("lost_work", 0.0)
    return f"{broken} gangs broken, {lost:.1f} gang-hours lost{evicted}", f"{broken}, {lost:.1f}"
