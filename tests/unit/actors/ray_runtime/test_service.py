"""The service as the process that starts the roles runs it; the roles are stood in for."""

from __future__ import annotations

import io
from typing import Any

import pytest

from actors.broker.address import BrokerAddress
from actors.broker.retry import ToldToStop
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.health.watch import Watch
from actors.observability.logs import Written
from actors.observability.telemetry import start
from actors.processes.ending import EndSignals
from actors.ray_runtime import service
from actors.ray_runtime.process import Wiring


class Roles:
    """The roles of a service, which is told to stop while they start."""

    def __init__(self, *_: object) -> None:
        self.by_name: dict[str, Any] = {}
        self.stopped = False

    def await_ready(self, **_: object) -> None:
        raise ToldToStop

    def stop(self, *_: object) -> None:
        self.stopped = True

    def close(self) -> None:
        """The logs of the roles end too."""


def test_a_broker_that_is_away_while_the_roles_start_is_waited_for_by_the_roles_and_ends_no_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles = Roles()
    monkeypatch.setattr(service, "RoleActors", lambda _: roles)
    monkeypatch.setattr(service, "RoleLogs", Roles)
    monkeypatch.setattr(service, "_BROKER_S", 0.1)
    settings, policy = Settings(health="off"), load_profile("default")
    watch = Watch(settings, "me", policy.digest, start(TelemetrySettings(), "run"))
    wiring = Wiring(settings, BrokerAddress("unix:///nowhere.sock"), policy, "me")
    with pytest.raises(ToldToStop):
        service._run_roles(wiring, watch, EndSignals(), Written("run", "demo", "text", io.StringIO()))
    assert roles.stopped
