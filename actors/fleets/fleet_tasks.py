"""The tasks and podgroups of the simulated fleet, and how much they hold of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.documents.quantities import Quantity, QuantityRefused, base_units, card_units

#: Where a task is in its life; one that is over does not come back.
PENDING, RUNNING, ENDING, OVER = "Pending", "Running", "Terminating", "Over"


@dataclass(slots=True)
class Task:
    """A task of the fleet; ``on_card`` is its part of one card, ``incarnation`` counts its lives."""

    name: str
    podgroup: str
    request: dict[str, int]
    gone_when_evicted: bool
    status: str
    node: str | None
    on_card: int = 0
    card: str | None = None
    incarnation: int = 0

    @property
    def holds(self) -> dict[str, int]:
        """Amounts that it takes of its node; each card counts as a resource of its own."""
        return {**self.request, _card(self.card): self.on_card} if self.on_card else self.request

    @property
    def on(self) -> dict[str, str]:
        """Its card under the key of an event; empty if it has none."""
        return {"card": self.card} if self.card is not None else {}


@dataclass(slots=True)
class LivePodgroup:
    """A podgroup of the fleet; ``runs_s`` seconds after all of it has started it ends, None: never."""

    name: str
    document: dict[str, Any]
    tasks: list[str]
    runs_s: float | None
    finishes: bool = False


def _card(name: str | None) -> str:
    return f"card {name}"


def room_of(node: Mapping[str, Any]) -> dict[str, int]:
    """Amounts that a node has; each card counts as a resource of its own."""
    cards = {_card(card["name"]): card_units(card["capacity"]) for card in node.get("cards", ())}
    return amounts(node["allocatable"]) | cards


def amounts(stated: Mapping[str, Quantity]) -> dict[str, int]:
    """Amounts in base units: processors in millicores, everything else in pieces or bytes."""
    return {name: _amount(name, value) for name, value in stated.items()}


def _amount(resource: str, quantity: Quantity) -> int:
    try:
        return base_units(resource, quantity)
    except QuantityRefused as refusal:
        raise QuantityRefused(f"{resource}: {refusal}, found {quantity!r}") from refusal


def add_to(held: dict[str, int], request: Mapping[str, int], sign: int) -> None:
    """Add a request to what is held (``sign`` 1), or take it off again (-1)."""
    for name, amount in request.items():
        held[name] = held.get(name, 0) + sign * amount
