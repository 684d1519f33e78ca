"""The containers' health check: three exit codes, and a reason for every one that is not zero."""

from collections.abc import Callable

import pytest

from actors.broker.bus import EVENTS, BrokerUnreachable, stream_key
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from deploy import healthy

URL = "redis://broker:6379/0"


def answering(answer: str | Exception | None) -> Callable[[str, str], str | None]:
    """A broker with which nothing is wrong, or something, or which does not answer."""

    def what_is_wrong(url: str, sign: str) -> str | None:
        assert (url, sign) == (URL, healthy.SIGNS["pipeline"])
        if isinstance(answer, Exception):
            raise answer
        return answer

    return what_is_wrong


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [(None, 0, ""), ("unlisted: x", 1, "unlisted: x"), (BrokerUnreachable("refused"), 1, "does not answer: refused")],
)
def test_a_role_is_healthy_when_the_broker_shows_its_sign(
    answer: str | Exception | None,
    code: int,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(healthy, "what_is_wrong", answering(answer))
    assert healthy.main([URL, "pipeline"]) == code
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], [URL], [URL, "janitor"], [URL, "fleet", "more"]])
def test_a_wrong_call_says_how_to_call(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert healthy.main(arguments) == 2
    assert "usage: healthy.py REDIS_URL pipeline|fleet" in capsys.readouterr().err


def test_the_signs_are_the_keys_that_the_ledger_and_the_bus_write() -> None:
    ledger = RedisLedger(RedisClient(URL), "openb")
    assert ledger._lease == healthy.SIGNS["pipeline"] % "openb"
    assert stream_key("openb", EVENTS) == healthy.SIGNS["fleet"] % "openb"
