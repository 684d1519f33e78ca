"""Which services of a fleet there are: each says every few seconds that it is there, in a small stream of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgpack
from pydantic import Field, ValidationError

from actors.broker.bus import SERVICES, Bus, id_order
from actors.documents.model import Name
from actors.documents.safe_msgpack import NotPacked, unpacked
from actors.protocol.bodies import Body, Number

State = Literal["starts", "leads", "stands by", "waits", "stops"]
STATES: tuple[State, ...] = ("starts", "leads", "stands by", "waits", "stops")
#: How often a service says that it is there, and after which silence it is gone; seconds.
EVERY_S, GONE_S = 5.0, 15.0
#: About how many entries are kept.
_KEPT = 200


class RolePlace(Body):
    """Where a role runs, and whether it answers the service that began it."""

    host: str = ""
    process: Number = 0
    answers: bool = True


class Presence(Body):
    """A service, as it sees itself.

    Attributes
    ----------
    owner
        Its name, which no other service has, before or after.
    state, ready, why
        What it does; whether that is its work, and if not, why.
    leader, epoch
        Of the lease, as far as it knows.
    profile, policy, settings
        The profile's name, and the digests of what it says and of the settings.
    """

    owner: Name
    host: str
    process: Number
    version: str
    state: State
    ready: bool
    why: str = ""
    leader: str = ""
    epoch: Number = 0
    profile: str = ""
    policy: str = ""
    settings: str = ""
    health: str = ""
    roles: dict[str, RolePlace] = Field(default_factory=dict)


def say(bus: Bus, presence: Presence) -> float:
    """Write that a service is there; the broker's clock (seconds)."""
    packed: bytes = msgpack.packb(presence.model_dump())
    return id_order(bus.publish(SERVICES, {"service": packed}, cap=_KEPT))[0] / 1000


def present(bus: Bus, now: float | None = None, gone_s: float = GONE_S) -> Mapping[str, tuple[float, Presence]]:
    """The services that were there lately, each with when it last said so (the broker's clock, seconds).

    Parameters
    ----------
    now
        By the broker's clock; None: the newest entry's time.
    """
    found: dict[str, tuple[float, Presence]] = {}
    for entry in bus.newest(SERVICES, count=_KEPT):
        at = id_order(entry.id)[0] / 1000
        now = at if now is None else now
        if at < now - gone_s:
            break
        try:
            said = Presence.model_validate(unpacked(entry.fields.get("service", b"")))
        except (NotPacked, ValidationError):
            continue  # of a version that says it in another way
        found.setdefault(said.owner, (at, said))
    return {owner: one for owner, one in sorted(found.items()) if one[1].state != "stops"}
