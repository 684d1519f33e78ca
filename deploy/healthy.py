"""Container health: ``healthy.py REDIS_URL pipeline|fleet`` exits 0 when the broker shows that the role does its work.

A running process proves little. The pipeline is healthy while its committer holds the lease, which runs out within
seconds when it stops renewing; the fleet once it has told the broker what it has. Our user at the broker, and the
fleet's name, are in the environment, as for the command itself.
"""

import sys

from actors.broker.address import broker_for
from actors.broker.bus import DECISIONS, BrokerRefused, BrokerUnreachable
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import SettingsRefused, load_settings
from actors.protocol.envelopes import Message, decode_decisions

SIGNS = {"pipeline": "clearway:{%s}:ledger:lease", "fleet": "clearway:{%s}:events"}
WAIT_S = 2.0


def what_is_wrong(url: str, sign: str) -> str | None:
    """What is wrong, or None: the broker should hold the key that ``sign`` is for our fleet."""
    settings = load_settings(redis_url=url, broker_wait_s=WAIT_S)
    with broker_for(settings) as address:
        broker = address.connect("health", functions=False)
        try:
            if broker.ask(lambda client: client.exists(sign % settings.fleet)):
                return None
            newest = RedisBus(broker, settings.fleet).newest(DECISIONS) if sign is SIGNS["pipeline"] else []
            said = [one.kind for entry in newest for one in decode_decisions(entry) if isinstance(one, Message)]
            if "resync_requested" in said:
                return "unlisted: a full list was asked for, and nothing is decided before it comes"
            return f"the broker has no {sign % settings.fleet} yet"
        finally:
            broker.close()


def main(arguments: list[str]) -> int:
    """Check one role; 0 is healthy, 1 is not (yet), 2 is a wrong call."""
    match arguments:
        case [url, role] if role in SIGNS:
            pass
        case _:
            sys.stderr.write(f"usage: healthy.py REDIS_URL {'|'.join(SIGNS)}\n")
            return 2
    try:
        wrong = what_is_wrong(url, SIGNS[role])
    except (BrokerRefused, BrokerUnreachable, SettingsRefused) as error:
        sys.stderr.write(f"the broker does not answer: {error}\n")
        return 1
    if wrong is not None:
        sys.stderr.write(f"{wrong}\n")
    return 1 if wrong is not None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
