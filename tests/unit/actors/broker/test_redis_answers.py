"""What a broker answers while it cannot serve us now is waited for; what will stay so is refused."""

from __future__ import annotations

from typing import Any

import pytest
from redis._parsers.base import BaseParser

from actors.broker.bus import BrokerRefused, BrokerUnreachable
from actors.broker.redis_client import RedisClient


def answered(words: str, *, waits_for_rights: bool = False) -> None:
    """Ask a broker that answers with these words of the protocol; no connection is made."""

    def ask(_: Any) -> None:
        raise BaseParser.parse_error(words)

    RedisClient("redis://broker:6379/0", waits_for_rights=waits_for_rights).once(ask)


@pytest.mark.parametrize(
    "words",
    [
        "MISCONF Redis is configured to save RDB snapshots",
        "NOREPLICAS Not enough good replicas to write.",
        "BUSY Redis is busy running a script.",
        "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN Hash slot not served",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down",
    ],
)
def test_a_broker_that_fails_over_or_is_full_is_waited_for(words: str) -> None:
    with pytest.raises(BrokerUnreachable):
        answered(words)


@pytest.mark.parametrize("words", ["MOVED 903 10.0.0.2:6379", "ASK 903 10.0.0.2:6379"])
def test_a_node_of_a_cluster_without_our_keys_is_refused_by_the_name_of_the_other(words: str) -> None:
    with pytest.raises(BrokerRefused, match=r"broker:6379 is a node of a cluster .* \(903 10\.0\.0\.2:6379\)"):
        answered(words)


def test_what_a_user_may_not_do_is_refused() -> None:
    with pytest.raises(BrokerRefused, match="no permissions"):
        answered("NOPERM User fleet has no permissions to run the 'xadd' command")


@pytest.mark.parametrize(
    "words",
    [
        "NOPERM User fleet has no permissions to run the 'xadd' command",
        "ERR ACL failure in script: User fleet has no permissions to run the 'hmget' command script: on @x:1.",
        "WRONGPASS invalid username-password pair or user is disabled.",
        "NOAUTH Authentication required.",
    ],
)
def test_a_broker_that_refuses_our_user_is_waited_for_where_it_has_let_us_in_before(words: str) -> None:
    with pytest.raises(BrokerRefused):
        answered(words)
    with pytest.raises(BrokerUnreachable, match="it refuses "):
        answered(words, waits_for_rights=True)
