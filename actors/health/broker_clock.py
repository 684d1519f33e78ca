"""The time of day that decisions are made by: the broker's, so that it is one for all machines of a fleet's services.

Protections, deadlines and windows are counted from times that other processes wrote. With the clock of each machine,
one that is five minutes ahead would evict five minutes early, and a successor whose clock is right would find the
deadlines of one that is behind over at once. The clock of the machine that runs the role only says how time passes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from actors.broker.bus import BrokerRefused, BrokerUnreachable

log = logging.getLogger(__name__)

#: Seconds between two looks at the broker's clock.
EVERY_S = 10.0
#: Differences of up to this many seconds, beside what the question took, are not followed: no two clocks are equal.
_ALIKE_S = 0.1
#: Seconds from which on this machine's clock is said to differ.
_WRONG_S = 2.0


#: The broker's time, in seconds since the epoch.
Ask = Callable[[], float]


class BrokerClock:
    """Follows the broker's clock. `look` is for one thread; any may ask for the time.

    Parameters
    ----------
    elapsed_s
        A clock in seconds that is never set.
    wall_s
        This machine's time of day.
    """

    def __init__(
        self, elapsed_s: Callable[[], float] = time.monotonic, wall_s: Callable[[], float] = time.time
    ) -> None:
        self._elapsed_s, self._wall_s = elapsed_s, wall_s
        self._ahead_s: float | None = None
        self._said = False

    def now_s(self) -> float:
        """The time of day, in seconds since the epoch; right from the first look on."""
        return self._elapsed_s() + (self._ahead_s or 0.0)

    def look(self, ask: Ask) -> None:
        """Ask the broker for its time, and follow where it differs from what is believed."""
        asked_at = self._elapsed_s()
        said = ask()
        took = self._elapsed_s() - asked_at
        ahead_s = said - asked_at - took / 2
        if self._ahead_s is None or abs(ahead_s - self._ahead_s) > _ALIKE_S + took / 2:
            self._ahead_s = ahead_s
        self._say(self._wall_s() - self.now_s())

    def keep(self, ask: Ask, wait: Callable[[float], object] = time.sleep) -> None:
        """Look again and again. Without an answer the clock goes on as it is; other calls say that there is none."""
        while True:
            wait(EVERY_S)
            try:
                self.look(ask)
            except (BrokerUnreachable, BrokerRefused):
                continue

    def _say(self, by_s: float) -> None:
        """Log once that this machine's clock differs, and once that it does no longer."""
        wrong = abs(by_s) >= _WRONG_S
        if wrong and not self._said:
            words = f"{abs(by_s):.0f} s {'ahead of' if by_s > 0 else 'behind'} the broker's"
            log.warning("this machine's clock is %s; decisions go by the broker's", words)
        elif self._said and not wrong:
            log.info("this machine's clock agrees with the broker's again")
        self._said = wrong


def time_of(client: Any) -> float:
    """The time that a broker says, in seconds since the epoch."""
    seconds, micros = client.time()
    return float(seconds) + float(micros) / 1e6
