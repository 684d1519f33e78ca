"""Container health: ``healthy.py REDIS_URL pipeline|fleet`` exits 0 when the broker shows that the role does its work.

A running process proves little. The pipeline is healthy while its committer holds the lease, which runs out within
seconds when it stops renewing; the fleet once it has told the broker what it has.
"""

import sys

import redis

SIGNS = {"pipeline": "clearway:{*}:ledger:lease", "fleet": "clearway:{*}:events"}
TIMEOUT_S = 2.0


def shown(url: str, sign: str) -> bool:
    """Whether the broker holds a key that matches ``sign``."""
    with redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S) as broker:
        return next(broker.scan_iter(match=sign, count=1_000), None) is not None


def main(arguments: list[str]) -> int:
    """Check one role; 0 is healthy, 1 is not (yet), 2 is a wrong call."""
    match arguments:
        case [url, role] if role in SIGNS:
            pass
        case _:
            sys.stderr.write(f"usage: healthy.py REDIS_URL {'|'.join(SIGNS)}\n")
            return 2
    try:
        healthy = shown(url, SIGNS[role])
    except redis.RedisError as error:
        sys.stderr.write(f"the broker does not answer: {error}\n")
        return 1
    if not healthy:
        sys.stderr.write(f"the broker has no {SIGNS[role]} yet\n")
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
