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


@dataclass(frozen=True, slots=True)
class Pulse:
    """Figures at one moment.

    Attributes
    ----------
    gone, used
        Fraction of the time that is over, and of GPUs in use.
    arrived, starving, running
        Number of gangs that arrived, names of those that wait, number of those that run.
    behind
        By stream: how many entries its slowest reader has not finished, and the age of the oldest in seconds.
    """

    gone: float
    used: float
    arrived: int
    starving: Sequence[str]
    running: int
    behind: Mapping[str, tuple[int, float]] = field(default_factory=dict)


class LiveView:
    """Shows decisions as they are recorded. Several threads may use it.

    Parameters
    ----------
    pulse
        Returns the figures; called at every redraw.
    plain
        Whether to print lines even on a terminal.
    """

    def __init__(self, pulse: Callable[[], Pulse], *, plain: bool = False, console: Console | None = None) -> None:
        self._console = console if console is not None else Console(highlight=False)
        self._lively = self._console.is_terminal and not plain
        self._pulse, self._lock = pulse, threading.Lock()
        self._recent: deque[tuple[str, ...]] = deque(maxlen=_ROWS)
        self._started = time.monotonic()
        self.count = self.victims = 0

    def say(self, line: str) -> None:
        """Show a line of text."""
        self._console.print(Text(line), soft_wrap=True)

    def show(self, message: Message) -> None:
        """Show a decision."""
        row = told(message)
        if row is None:
            return
        at = f"{time.monotonic() - self._started:6.1f}"
        with self._lock:
            self.count += 1
            if isinstance(message.body, PlanCommitted):
                self.victims += len(message.body.evictions)
            self._recent.append((at, *row))
        if not self._lively:
            self.say(f"{at} s  {row[0]:<10} {row[1]:<20} {row[2]:<10} {row[3]:<28} {row[4]}")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Redraw for the length of the block."""
        if not self._lively:
            yield
            return
        with Live(get_renderable=self._drawn, console=self._console, refresh_per_second=5):
            yield

    def _drawn(self) -> Group:
        pulse = self._pulse()
        with self._lock:
            rows, count, victims = list(self._recent), self.count, self.victims
        table = Table(expand=True, box=None, header_style="bold")
        # On a narrow terminal the price is cut.
        for title, width in (("s", 6), ("action", 9), ("gang", 9), ("domain", 9), ("what", 22), ("price", 8)):
            table.add_column(title, no_wrap=True, min_width=width)
        for row in rows:
            table.add_row(*row, style="yellow" if "evict" in row[4] else "")
        waiting = ", ".join(pulse.starving[:6]) + (" …" if len(pulse.starving) > 6 else "")  # noqa: PLR2004
        head = Text(
            f"GPUs {pulse.used:6.1%}   gangs arrived {pulse.arrived}, running {pulse.running}   "
            f"decisions {count}, victims {victims}"
        )
        behind = "   ".join(f"{stream} {left} ({age:.1f} s)" for stream, (left, age) in pulse.behind.items())
        starving = Text(f"starving: {waiting or 'none'}", style="red" if pulse.starving else "green")
        lag = Text(f"unread: {behind or 'nothing'}")
        return Group(ProgressBar(total=1.0, completed=min(1.0, pulse.gone)), head, starving, lag, table)


def told(message: Message) -> tuple[str, str, str, str, str] | None:
    """A decision in five short texts: action, gang, domain, effect, price; None for any other message."""
    made = message.body
    if isinstance(made, PlanWithdrawn):
        return "withdrawn", made.plan_id[:12], "", made.reason[:40], ""
    if isinstance(made, DomainReserved):
        gang = made.podgroup.removeprefix("arrivals/")
        return "kept", gang, made.domain or "anywhere", f"after {made.refusals} refused plans", ""
    if not isinstance(made, PlanCommitted):
        return None
    parts = [
        f"{verb} {count}"
        for verb, count in (
            ("evict", len(made.evictions)), ("promise", len(made.nominations)), ("start", len(made.bindings)),
        )
        if count
    ]  # fmt: skip
    gang = (made.preemptor or "").removeprefix("arrivals/")
    return made.action, gang, made.domain or "anywhere", ", ".join(parts), price(made)


def price(made: PlanCommitted) -> str:
    """The price of a decision."""
    if not made.evictions:
        return ""
    ratios = [f"{value:g} {name.partition('/')[2]}" for name, value in made.cost.items() if name.endswith("gpu-milli")]
    evicted = f", {ratios[0]} evicted per requested" if ratios else ""
    broken, lost = made.cost.get("gangs_broken", 0), made.cost.get("lost_work", 0.0)
    return f"{broken} gangs broken, {lost:.1f} gang-hours lost{evicted}"
