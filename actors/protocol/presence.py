"""Which services of a fleet there are: each says every few seconds that it is there, in a small stream of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgpack
from pydantic import Field, ValidationError

from actors.broker.bus import SERVICES, Bus, id_order
from actors.documents.model import Finite, Name
from actors.documents.safe_msgpack import NotPacked, unpacked
from actors.protocol.bodies import Body, Number

State = Literal["starts", "leads", "stands by", "waits", "stops"]
STATES: tuple[State, ...] = ("starts", "leads", "stands by", "waits", "stops")
#: How often a service says that it is there if its lease lasts longer, seconds; after how many silent turns it is gone.
EVERY_S, _TURNS = 5.0, 3
#: About how many entries are kept.
KEPT = 200


class RolePlace(Body):
    """Where a role runs, and whether it answers the service that began it."""

    host: str = ""
    process: Number = 0
    answers: bool = True


class StreamLag(Body):
    """How far the readers of a stream, as one group, are behind: entries, and the age of the oldest in seconds."""

    entries: Number = 0
    seconds: Finite = 0.0


class Presence(Body):
    """A service, as it sees itself.

    Attributes
    ----------
    owner
        Its name, which no other service has, before or after.
    state, ready, why
        What it does; whether that is its work, and if not, why.
    shadow
        Whether nothing of what it decides is carried out.
    leader, epoch
        Of the lease, as far as it knows.
    lag
        By ``stream/group``, as its ingestor sees it.
    profile, policy, settings
        The profile's name, and the digests of what it says and of the settings.
    every_s
        How often it says that it is there, in seconds; after three times as long without a word it is gone.
    """

    owner: Name
    host: str
    process: Number
    version: str
    state: State
    shadow: bool = False
    ready: bool
    why: str = ""
    leader: str = ""
    epoch: Number = 0
    profile: str = ""
    policy: str = ""
    settings: str = ""
    health: str = ""
    every_s: Annotated[float, Field(gt=0, le=EVERY_S)] = EVERY_S
    lag: dict[str, StreamLag] = Field(default_factory=dict)
    roles: dict[str, RolePlace] = Field(default_factory=dict)


def announce(bus: Bus, presence: Presence) -> float:
    """Write that a service is there; the broker's clock (seconds)."""
    packed: bytes = msgpack.packb(presence.model_dump())
    return id_order(bus.publish(SERVICES, {"service": packed}, cap=KEPT))[0] / 1000


def present(bus: Bus, now: float | None = None) -> Mapping[str, tuple[float, Presence]]:
    """The services that were there lately, each with when it last said so (the broker's clock, seconds).

    Parameters
    ----------
    now
        By the broker's clock; None: the newest entry's time.
    """
    entries = bus.newest(SERVICES, count=KEPT)
    if now is None:
        now = max((id_order(entry.id)[0] / 1000 for entry in entries), default=0.0)
    found: dict[str, tuple[float, Presence]] = {}
    for entry in entries:
        at = id_order(entry.id)[0] / 1000
        if at < now - _TURNS * EVERY_S:
            break
        try:
            said = Presence.model_validate(unpacked(entry.fields.get("service", b"")))
        except (NotPacked, ValidationError):
            continue  # of a version that says it in another way
        found.setdefault(said.owner, (at, said))
    return {
        owner: (at, one)
        for owner, (at, one) in sorted(found.items())
        if one.state != "stops" and at >= now - _TURNS * one.every_s
    }
