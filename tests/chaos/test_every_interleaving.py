"""Every interleaving in the small: whatever the order of calls, and whatever becomes of one of them, nothing breaks.

`make chaos WALK=n` walks with up to so many faults on one way: two take 20 seconds.
"""

from __future__ import annotations

import pytest

from tests.chaos.every_interleaving import Walk
from tests.chaos.memory_broken import ForgetfulLedger, UnfencedLedger
from tests.chaos.small_system import Broker
from tests.support.depth import sampled


class Unfenced(Broker):
    """Its ledger lets every process write."""

    ledger_class = UnfencedLedger


class Forgetful(Broker):
    """Its ledger does not know a plan again."""

    ledger_class = ForgetfulLedger


class Hasty(Broker):
    """It answers before its disk has anything."""

    syncs = False


def test_no_order_of_calls_breaks_anything_whatever_becomes_of_one_of_them() -> None:
    walk = Walk(faults=1, expiries=0).run()
    assert walk.broken == []
    assert walk.states > 18_000


def test_no_order_of_calls_breaks_anything_while_a_lease_runs_out() -> None:
    most = sampled(20_000)
    walk = Walk(faults=0, expiries=1).run(most=most)
    assert walk.broken == []
    assert walk.states >= most


@pytest.mark.parametrize(
    ("broker", "faults", "expiries", "complaint"),
    [(Unfenced, 0, 1, "evicts"), (Forgetful, 1, 0, "is not recorded"), (Hasty, 1, 0, "is not recorded")],
    ids=["a ledger without fencing", "a ledger that forgets", "a broker that answers before its disk has it"],
)
def test_a_broken_broker_is_caught(broker: type[Broker], faults: int, expiries: int, complaint: str) -> None:
    walk = Walk(faults=faults, expiries=expiries, broker_class=broker).run()
    assert any(complaint in one for one in walk.broken), walk.states
