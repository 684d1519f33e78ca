"""A known password goes in and is looked for in errors and in folders.

In what processes say, and in their command lines, it is looked for in the story of a service, `test_service.py`.
"""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from actors.broker.address import broker_for
from actors.broker.bus import BrokerRefused, BrokerUnreachable
from actors.broker.embedded_broker import EmbeddedBroker
from actors.configuration.settings import SettingsRefused
from actors.configuration.settings_sources import load_settings
from tests.support.processes import listeners


@pytest.mark.parametrize(
    "url",
    ["redis://:hidden@127.0.0.1:1/0", "redis://me:hidden/x@there/0", "redis://me:hidden@there:port/0", "hidden",
     "redis://[hidden", "rediss://me:hidden@127.0.0.1:1/0", "unix://:hidden@/nowhere/s", "redis://hidden\u2100@x/0"],
)  # fmt: skip
def test_what_is_said_of_an_address_that_fails_shows_no_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises((SettingsRefused, BrokerUnreachable, BrokerRefused)) as refusal:  # noqa: SIM117
        with broker_for(load_settings(redis_url=url, broker_wait_s=0.15)) as address:
            address.connect("test", functions=False)
    for said in (str(refusal.value), "".join(traceback.format_exception(refusal.value)), caplog.text):
        assert "hidden" not in said


def test_our_own_broker_listens_to_this_user_alone(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        assert listeners([broker.pid]) == []
        socket = Path(broker.url.removeprefix("unix://"))
        assert (socket.stat().st_mode & 0o077, socket.parent.stat().st_mode & 0o077) == (0, 0)
        assert broker.url.removeprefix("unix://") in Path("/proc/net/unix").read_text()
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert written
        assert [file for file in written if file.stat().st_mode & 0o077] == []
    with EmbeddedBroker(tcp=True) as broker:
        assert [one.host for one in listeners([broker.pid])] == ["0100007F"]
