"""Commands as processes: what they refuse, and a service that has no broker."""

import signal
from pathlib import Path

import pytest

from tests.integration.services import LIMIT_S, Command, until


def test_a_service_without_its_broker_says_so_and_still_stops_when_told(tmp_path: Path) -> None:
    service = Command(tmp_path, "run", "--redis-url", "redis://127.0.0.1:1/0")
    until(lambda: "broker unreachable" in service.complained(), "it says so")
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(LIMIT_S) == 0
    assert "127.0.0.1:1" in next(line for line in service.complained().splitlines() if "broker unreachable" in line)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "--redis-url", "http://nowhere"), "expected a URL that begins with redis://"),
        (("run", "--profile", "nobodys"), "profile: expected one of"),
        (("fleet", "--inventory", "/nowhere.yaml"), "/nowhere.yaml: cannot be read"),
        (("explain",), "redis_url: expected the broker"),
        (("demo", "--settings", "/nowhere.toml"), "/nowhere.toml: cannot be read"),
    ],
)
def test_what_is_refused_is_one_sentence_and_code_2(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    command = Command(tmp_path, *arguments)
    assert command.process.wait(LIMIT_S) == 2
    assert sentence in command.complained()
    assert command.complained().count("\n") == 1
