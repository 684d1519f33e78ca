"""``python -m tests.soak``: runs a service and a fleet for some minutes; 1 if memory, streams or durations drift."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from actors.broker.address import BrokerAddress
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.processes.service_process import ServiceProcess
from tests.soak.samples import Sample, Sampler, drifts, table

_FLEET, _PORT = "soak", 9479
#: What is taken at first, while kernels are loaded and the first list comes, is no sample.
_WARM_S, _EVERY_S, _START_LIMIT_S = 45.0, 5.0, 300.0


def main() -> int:
    """Run, sample, tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--every-s", type=float, default=2.0, help="seconds between gangs that arrive")
    asked = parser.parse_args()
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="clearway-soak-") as folder:
        service = ServiceProcess(
            Path(folder) / "run.log", "--redis-url", broker.url, "--fleet", _FLEET,
            settings={"health": f"127.0.0.1:{_PORT}", "searchers": "1", "checkpoint_every_s": "10"},
        )  # fmt: skip
        command = [sys.executable, "-m", "actors", "fleet", "--redis-url", broker.url, "--fleet", _FLEET]
        fleet = subprocess.Popen([*command, "--every-s", str(asked.every_s)], stdout=subprocess.DEVNULL)
        try:
            _until_it_leads(service)
            time.sleep(_WARM_S)
            bus = RedisBus(BrokerAddress(broker.url).connect("soak"), _FLEET)
            sampler = Sampler(service.process.pid, broker.pid, bus, f"http://127.0.0.1:{_PORT}/metrics")
            samples = _sampled(sampler, asked.minutes * 60.0)
        finally:
            fleet.send_signal(signal.SIGTERM)
            fleet.wait(30)
            service.close()
    found = drifts(samples)
    sys.stdout.write("\n".join([table(samples), *found, f"{len(samples)} samples, {len(found)} drift"]) + "\n")
    return 1 if found else 0


def _until_it_leads(service: ServiceProcess) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while not service.leads:
        if time.monotonic() > deadline or service.process.poll() is not None:
            raise SystemExit(f"the service does not lead:\n{service.said()[-2_000:]}")
        time.sleep(0.5)


def _sampled(sampler: Sampler, seconds: float) -> list[Sample]:
    until, samples = time.monotonic() + seconds, [sampler.take()]
    while time.monotonic() < until:
        time.sleep(_EVERY_S)
        samples.append(sampler.take())
    return samples


if __name__ == "__main__":
    sys.exit(main())
