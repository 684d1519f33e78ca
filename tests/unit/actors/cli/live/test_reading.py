"""Commands that look at a fleet go by the clock that its services decide by."""

from __future__ import annotations

import pytest

from actors.broker.bus import BrokerRefused
from actors.cli.live.reading import BrokersTime

#: What the broker's clock says, and how far ahead of it our machine's is.
_BROKERS, _AHEAD_S = 1_700_000_000.0, 300.0


@pytest.mark.parametrize("refuses", [False, True])
def test_a_machine_that_is_ahead_shows_the_brokers_time_and_its_own_only_where_it_may_not_ask(
    refuses: bool, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[bool] = []

    def ask() -> float:
        asked.append(refuses)
        if refuses:
            raise BrokerRefused("broker at b:1 refused: it may not run TIME")
        return _BROKERS

    now_s = BrokersTime(ask, lambda: _BROKERS + _AHEAD_S)
    for _ in range(3):
        assert now_s() == pytest.approx(_BROKERS + _AHEAD_S * refuses, abs=5.0)
    assert len(asked) == 1
    said = "the time is that of this machine" if refuses else "300 s ahead of the broker's"
    assert [said in line for line in caplog.messages] == [True]
