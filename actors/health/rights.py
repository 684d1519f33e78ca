"""Whether the broker lets our user do all that a service does, asked at the start and not found out days later.

Some commands are rare: verdicts of refusals are dropped after ten thousand, and streams are trimmed once there are two
checkpoints. The broker itself says which it would refuse (``acl_check_cmd`` in its functions), and runs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from actors.broker.bus import (
    DEAD,
    DECISIONS,
    EVENTS,
    FULFILLED,
    SERVICES,
    SHADOWS,
    SNAPSHOTS,
    SPANS,
    STARVING,
    BrokerRefused,
    stream_key,
)
from actors.broker.redis_client import RedisClient

_READ: Final = ("XREAD STREAMS {} 0", "XREVRANGE {} + -", "XINFO STREAM {}")
_TRIMMED: Final = ("XTRIM {} MINID 0", "EXISTS {}", "XINFO GROUPS {}", "XRANGE {} - +", "XPENDING {} g")
_GROUP: Final = ("XGROUP CREATE {} g 0", "XGROUP SETID {} g 0", "XPENDING {} g - 1 1", "XACK {} g 1")
_ADD: Final = "XADD {} * f v"
#: What a service runs on each key of its fleet, behind the fleet's name.
COMMANDS: Final = {
    EVENTS: (*_READ, *_TRIMMED, *_GROUP),
    DECISIONS: (_ADD, *_READ, *_TRIMMED),
    SNAPSHOTS: (_ADD, *_READ, *_TRIMMED),
    DEAD: (_ADD,),
    f"{DEAD}:seen": ("ZSCORE {} m", "ZADD {} 1 m", "ZREMRANGEBYRANK {} 0 0"),
    STARVING: (_ADD, *_READ),
    FULFILLED: (_ADD,),
    SPANS: (_ADD,),
    SERVICES: (_ADD, *_READ),
    "ledger:lease": ("HMGET {} f", "HSET {} f v", "PTTL {}", "PEXPIRE {} 1", "DEL {}"),
    "ledger:epoch": ("GET {}", "INCRBY {} 1"),
    "ledger:revision": ("GET {}", "INCR {}"),
    "ledger:verdicts": ("HGET {} f", "HSET {} f v", "HDEL {} f"),
    "ledger:accepted": ("ZADD {} 1 m", "ZRANGEBYSCORE {} 0 1", "ZREMRANGEBYSCORE {} 0 1"),
    "ledger:refused": ("ZADD {} 1 m", "ZCARD {}", "ZPOPMIN {} 1"),
}
#: What it runs on no key, beside what loads and calls our functions.
_WITHOUT_KEY: Final = ("PING", "TIME")
_TWO_WORDS: Final = ("XGROUP", "XINFO")


class _Command(NamedTuple):
    """A command with its arguments, what an ACL calls it, and the key that it is for ('': none)."""

    words: list[str]
    right: str
    key: str


def check_rights(link: RedisClient, fleet: str, *, shadow: bool = False) -> None:
    """Ask the broker whether it would run every command of a service.

    Raises
    ------
    BrokerRefused
        With the rights that our user lacks, as ``ACL SETUSER`` takes them.
    """
    asked = list(_asked(fleet, shadow))
    arguments: list[str | bytes | int] = []
    for one in asked:
        arguments += [len(one.words), *one.words]
    lacking = [asked[number - 1] for number in link.call("lacks", [], arguments)]
    if not lacking:
        return
    on_keys = [one for one in asked if one.key]
    if all(one in lacking for one in on_keys):
        root = stream_key(fleet, EVENTS).removesuffix(EVENTS)
        found, mend = f"touch keys that begin with {root}", [f"~{root}*"]
    else:
        found = "run " + ", ".join(_where(right, asked, lacking) for right in _once(lacking))
        mend = [f"+{right}" for right in _once(lacking)]
    raise BrokerRefused(
        f"broker at {link.address} does not let our user {found}, which this service needs: add {' '.join(mend)} to "
        "its rights (ACL SETUSER); deploy/redis.conf has all of them"
    )


def _asked(fleet: str, shadow: bool) -> Iterator[_Command]:
    root = stream_key(fleet, EVENTS).removesuffix(EVENTS)
    for name, commands in COMMANDS.items():
        key = root + (SHADOWS.get(name, name) if shadow else name)
        for command in commands:
            yield _Command(command.format(key).split(), _right(command), key)
    if shadow:  # it asks the fleet for lists as any service does
        yield _Command(_ADD.format(root + DECISIONS).split(), _right(_ADD), root + DECISIONS)
    for command in _WITHOUT_KEY:
        yield _Command([command], _right(command), "")


def _right(command: str) -> str:
    """What an ACL calls a command."""
    first, second = (*command.split(), "")[:2]
    return (f"{first}|{second}" if first in _TWO_WORDS else first).lower()


def _once(lacking: list[_Command]) -> list[str]:
    """Each right once, in order."""
    return list(dict.fromkeys(one.right for one in lacking))


def _where(right: str, asked: list[_Command], lacking: list[_Command]) -> str:
    """A right that is lacking, with its keys where there are others on which it is not."""
    of, all_of = ([one.key for one in some if one.right == right] for some in (lacking, asked))
    return right if len(of) == len(all_of) else f"{right} on {' and '.join(dict.fromkeys(of))}"
