"""The containers' health check: three exit codes, and a reason for every one that is not zero."""

import pytest

from actors.broker.bus import BrokerUnreachable
from actors.observability import health_server
from actors.observability.health_server import HealthServer, Pages
from deploy import healthy

URL = "redis://broker:6379/0"


@pytest.mark.parametrize(("wrong", "code"), [(None, 0), ("it waits: no fleet is listed", 1)])
def test_the_pipeline_is_asked_over_http(
    wrong: str | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(healthy, "asked", lambda url: wrong if url == "http://here:9464/ready" else "elsewhere")
    assert healthy.main(["http://here:9464/ready"]) == code
    assert (wrong or "") in capsys.readouterr().err


@pytest.mark.parametrize(("wrong", "code"), [(None, 0), ("the broker has no events yet", 1)])
def test_the_fleet_is_healthy_when_the_broker_has_what_it_said(
    wrong: str | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(healthy, "unsaid", lambda url: wrong if url == URL else "elsewhere")
    assert healthy.main([URL, "fleet"]) == code
    assert (wrong or "") in capsys.readouterr().err


def test_a_broker_that_does_not_answer_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise BrokerUnreachable("refused")

    monkeypatch.setattr("actors.broker.address.BrokerAddress.connect", away)
    assert healthy.unsaid(URL) == "the broker does not answer: refused"


@pytest.mark.parametrize("arguments", [[], [URL], [URL, "janitor"], [URL, "fleet", "more"]])
def test_a_wrong_call_says_how_to_call(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert healthy.main(arguments) == 2
    assert capsys.readouterr().err == healthy.USAGE


def test_what_the_check_asks_for_is_what_the_service_answers() -> None:
    assert health_server.DEFAULT == ("127.0.0.1", 9464)
    pages = Pages(lambda: (True, {}), lambda: (False, {"state": "waits", "why": "no fleet"}), lambda: b"")
    assert pages.answer("/ready")[0] == 503


def test_off_is_served_nowhere() -> None:
    pages = Pages(lambda: (True, {}), lambda: (True, {}), lambda: b"")
    server = HealthServer("off", pages)
    assert server.url == ""
    server.close()
