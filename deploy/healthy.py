"""Container health: ``healthy.py http://HOST:PORT/ready`` or ``healthy.py REDIS_URL fleet``; exit code 0 is healthy.

The pipeline answers for itself, over HTTP: it is healthy while it leads, or stands by and could lead at once. The
simulated fleet is healthy once the broker has what it said. Its user at the broker, and the fleet's name, are in the
environment, as for the command itself.
"""

import json
import sys
import urllib.error
import urllib.request

WAIT_S = 2.0
USAGE = "usage: healthy.py http://HOST:PORT/ready | healthy.py REDIS_URL fleet\n"


def asked(url: str) -> str | None:
    """What is wrong, as the service itself says, or None."""
    try:
        with urllib.request.urlopen(url, timeout=WAIT_S):
            return None
    except urllib.error.HTTPError as refusal:
        said = json.loads(refusal.read() or b"{}")
        return f"{said.get('state', refusal.code)}: {said.get('why', 'no reason was given')}"
    except (OSError, ValueError) as refusal:
        return f"it does not answer: {refusal}"


def unsaid(url: str) -> str | None:
    """What is wrong, or None: the broker should have events of our fleet."""
    # Here, since the check of the pipeline needs none of it and is made every few seconds.
    from actors.broker.address import broker_for
    from actors.broker.bus import EVENTS, BrokerRefused, BrokerUnreachable, stream_key
    from actors.configuration.settings import SettingsRefused
    from actors.configuration.settings_sources import load_settings

    try:
        settings = load_settings(redis_url=url, broker_wait_s=WAIT_S)
        key = stream_key(settings.fleet, EVENTS)
        with broker_for(settings) as address:
            broker = address.connect("health", functions=False)
            try:
                return None if broker.ask(lambda client: client.exists(key)) else f"the broker has no {key} yet"
            finally:
                broker.close()
    except SettingsRefused as refusal:
        return str(refusal)
    except (BrokerRefused, BrokerUnreachable) as error:
        return f"the broker does not answer: {error}"


def main(arguments: list[str]) -> int:
    """Check one container; the exit code: 0 is healthy, 1 is not (yet), 2 is a wrong call."""
    match arguments:
        case [url] if url.startswith(("http://", "https://")):
            wrong = asked(url)
        case [url, "fleet"]:
            wrong = unsaid(url)
        case _:
            sys.stderr.write(USAGE)
            return 2
    if wrong is not None:
        sys.stderr.write(f"{wrong}\n")
    return 1 if wrong is not None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
