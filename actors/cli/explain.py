"""``clearway explain``: decisions in words, and why podgroups wait, from the streams that record both."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from actors.broker.address import broker_for
from actors.broker.bus import DECISIONS, Bus
from actors.broker.redis_bus import RedisBus
from actors.cli.sentences import NAMED, attempt_lines, condition_lines, condition_words, decision_lines, told
from actors.configuration.settings import Settings, SettingsRefused
from actors.protocol.bodies import DomainReleased, DomainReserved, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, decode_decisions
from actors.search.pending_reasons import PendingReasons, newest

_PAGE = 200


def run(settings: Settings, podgroup: str | None, *, count: int) -> int:
    """Print what starves and why, and the newest decisions, of all podgroups or one; 1 if there is neither."""
    if settings.redis_url is None:
        raise SettingsRefused("redis_url: expected the broker that holds the decisions (--redis-url), found none")
    with broker_for(settings) as address:
        bus = RedisBus(
            replace(address, wait_s=address.wait_s or 10.0).connect("explain", functions=False), settings.fleet
        )
        try:
            lines = [line for waits in starving(bus, podgroup, count) for line in still(waits)]
            lines += list(claims(bus, podgroup))
            lines += [
                line for one in concerning(bus, podgroup, count) for line in decision_lines(told(one[0]), *one[1:])
            ]
        finally:
            bus.close()
    about = f" that concerns {podgroup}" if podgroup else ""
    sys.stdout.write("\n".join(lines or [f"no decision and no reason to wait{about} in fleet {settings.fleet}"]) + "\n")
    return 0 if lines else 1


def concerning(bus: Bus, podgroup: str | None, count: int) -> Iterator[tuple[PlanCommitted, int, str | None]]:
    """The newest decisions for or against a podgroup (None: any), newest first, each with its number and its end.

    The end says why it was taken back; None if it was not.
    """
    before: str | None = None
    found = 0
    ended: dict[str, str] = {}
    while found < count:
        entries = bus.newest(DECISIONS, count=_PAGE, before=before)
        if not entries:
            return
        before = entries[-1].id
        for entry in entries:
            for message in decode_decisions(entry):
                if not isinstance(message, Message) or found == count:
                    continue
                made = message.body
                if isinstance(made, PlanWithdrawn):
                    ended[made.plan_id] = f"withdrawn: {made.reason}"
                elif isinstance(made, PlanCommitted):
                    if made.replaces is not None:
                        late = ", ".join(one.task for one in made.overdue[:NAMED])
                        ended[made.replaces] = f"replaced by decision {message.revision}: {late} did not end in time"
                    if _concerns(made, podgroup):
                        found += 1
                        yield made, message.revision, ended.pop(made.plan_id, None)


def starving(bus: Bus, podgroup: str | None, count: int) -> Iterator[PendingReasons]:
    """Why a podgroup still waits, or why the newest few do (None)."""
    waiting = (waits for waits in newest(bus) if waits.reasons and podgroup in (None, waits.podgroup))
    return islice(waiting, count)


def still(waits: PendingReasons) -> Iterator[str]:
    """The reasons for which a podgroup waits as lines."""
    since = datetime.fromtimestamp(waits.at, UTC).isoformat(sep=" ", timespec="seconds")
    if waits.attempts:
        yield f"{waits.podgroup} starves; nothing was found for it at {since}"
        if waits.condition is not None:
            yield f"  {condition_words(waits.condition)}"
            yield from condition_lines(waits.condition)
    elif waits.condition is not None:
        yield f"{waits.podgroup} is {condition_words(waits.condition)} since {since}"
        yield from condition_lines(waits.condition)
    for one in waits.attempts:
        yield from attempt_lines(one)


def claims(bus: Bus, podgroup: str | None) -> Iterator[str]:
    """Domains that are kept for a podgroup (None: for all) as lines, the newest first."""
    before: str | None = None
    told: set[str] = set()
    while entries := bus.newest(DECISIONS, count=_PAGE, before=before):
        before = entries[-1].id
        bodies = [one.body for entry in entries for one in decode_decisions(entry) if isinstance(one, Message)]
        for body in bodies:
            if not isinstance(body, DomainReserved | DomainReleased) or body.podgroup in told:
                continue
            told.add(body.podgroup)
            if isinstance(body, DomainReserved) and podgroup in (None, body.podgroup):
                until = datetime.fromtimestamp(body.expires_at, UTC).isoformat(sep=" ", timespec="seconds")
                yield f"{body.domain or 'the cluster'} is kept for {body.podgroup} until {until}"
                yield f"  {body.refusals} plans in a row were refused, the last one because {body.reason}"


def _concerns(made: PlanCommitted, podgroup: str | None) -> bool:
    if podgroup is None:
        return True
    victims = {one.get("podgroup") for one in made.explanation.get("victims", ())}
    return made.preemptor == podgroup or podgroup in victims
