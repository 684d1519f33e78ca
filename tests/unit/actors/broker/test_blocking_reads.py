"""Which connections a read goes over: one that may block for long is given up late, any other as soon as every call."""

from collections.abc import Callable
from typing import Any

import pytest

from actors.broker.bus import EVENTS, START
from actors.broker.redis_bus import SHORT_BLOCK_MS, RedisBus
from actors.broker.redis_client import BLOCK_MARGIN_S, WRITE_TIMEOUT_S
from actors.ingestion.loop import BLOCK_MS


class Link:
    """A link that answers with nothing and notes which reads go over the slow connections."""

    def __init__(self) -> None:
        self.slow: list[bool] = []

    def ask(self, take: Callable[[Any], Any], *, blocking: bool = False) -> Any:
        del take
        self.slow.append(blocking)
        return {}


@pytest.mark.parametrize(("block_ms", "slow"), [(0, False), (BLOCK_MS, False), (SHORT_BLOCK_MS, False), (5_000, True)])
def test_only_reads_that_block_for_long_are_given_up_late(block_ms: int, slow: bool) -> None:
    link = Link()
    bus = RedisBus(link, "f")  # type: ignore[arg-type] # it asks nothing else of it
    bus.follow(EVENTS, START, block_ms=block_ms)
    bus.read(EVENTS, "group", "one", block_ms=block_ms)
    assert link.slow == [slow, slow]


def test_a_read_that_blocks_shortly_has_time_for_its_answer() -> None:
    assert SHORT_BLOCK_MS / 1000 + BLOCK_MARGIN_S <= WRITE_TIMEOUT_S
