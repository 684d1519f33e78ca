"""deploy/start-broker: passwords come from files, and a file without one starts nothing."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy/start-broker"


@pytest.mark.parametrize("secret", ["", "\n", " \t\r\n"])
def test_a_broker_is_not_started_with_an_empty_password(tmp_path: Path, secret: str) -> None:
    server = tmp_path / "valkey-server"
    server.write_text("#!/bin/sh\necho started\n")
    server.chmod(0o755)
    (tmp_path / "full").write_text("a password\n")
    (tmp_path / "empty").write_text(secret)
    (tmp_path / "redis.conf").write_text("user clearway on <clearway>\n")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CLEARWAY_PASSWORD_FILE": str(tmp_path / "full")}
    for name, started in (("full", True), ("empty", False)):
        ran = subprocess.run(
            [SCRIPT, tmp_path / "redis.conf"], env={**environment, "CONNECTOR_PASSWORD_FILE": str(tmp_path / name)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (ran.returncode == 0) == started
        assert ("started" in ran.stdout) == started
        assert (f"{tmp_path / name} holds no password" in ran.stderr) == (not started)
