"""What every document has in common: immutable, exact about types, no unknown keys, offences that know their key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from actors.documents.quantities import Quantity, QuantityRefused, base_units, card_units

Item = TypeVar("Item")
#: A path into plain data: keys of mappings, positions of lists.
Location = tuple[int | str, ...]
#: Every resource is a column of every node and shape, so one message must not bring thousands.
MOST_KEYS, MOST_RESOURCES = 1_000, 128
#: Offences that are told of at once: the first is what is read, and a million wrong values must not make a million.
_TOLD = 8


class Document(BaseModel):
    """Base of the documents. Validate with ``extra="ignore"`` to let unknown keys pass (the wire does)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class Offence:
    """One thing that is wrong: where, what was expected (a phrase that begins so), and what stands there."""

    where: Location
    expected: str
    found: Any


def offended(offences: Iterable[Offence]) -> None:
    """Raise what pydantic takes for errors at those keys, the first few, if there is any."""
    # Braces would be read as a template's; the context carries the phrase.
    errors = [
        InitErrorDetails(
            type=PydanticCustomError("offence", "{expected}", {"expected": offence.expected}),
            loc=offence.where,
            input=offence.found,
        )
        for offence in islice(offences, _TOLD)
    ]
    if errors:
        raise ValidationError.from_exception_data("document", errors)


def _quantities(values: object, unlimited: bool) -> object:
    """Check each amount by the unit of its resource; what is no mapping is left to pydantic."""
    if not isinstance(values, dict):
        return values
    _few(values, MOST_RESOURCES)
    for resource, amount in values.items():
        try:
            base_units(str(resource), amount if isinstance(amount, int | float | str) else "", unlimited)
        except QuantityRefused as refusal:
            offended([Offence((str(resource),), str(refusal), amount)])
    return values


def _few(values: object, most: int = MOST_KEYS) -> object:
    """Check how many keys a mapping has."""
    if isinstance(values, dict) and len(values) > most:
        offended([Offence((), f"expected at most {most} keys", len(values))])
    return values


def _card_quantity(given: object) -> object:
    """Check a part of a card by hand: a union's errors would name its branches."""
    try:
        card_units(given if isinstance(given, int | float | str) else "")
    except QuantityRefused as refusal:
        offended([Offence((), str(refusal), given)])
    return given


#: Strict models take no list for a tuple; ours read lists as tuples, whose items are still checked strictly.
ListOf = Annotated[tuple[Item, ...], Field(strict=False, fail_fast=True)]
Name = Annotated[str, Field(min_length=1, max_length=512)]
#: A name that is joined to others by a slash.
Segment = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[^/]+$")]
Keyed = Annotated[dict[str, Item], BeforeValidator(_few)]
Labels = Keyed[str]
Quantities = Annotated[dict[str, Quantity], BeforeValidator(lambda values: _quantities(values, unlimited=False))]
Bounds = Annotated[dict[str, Quantity], BeforeValidator(lambda values: _quantities(values, unlimited=True))]
CardQuantity = Annotated[Quantity, BeforeValidator(_card_quantity)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Priority = Annotated[int, Field(ge=-(2**31), lt=2**31)]


def _distinct(values: tuple[Item, ...]) -> tuple[Item, ...]:
    seen: set[Item] = set()
    for at, value in enumerate(values):
        if value in seen:
            offended([Offence((at,), "expected each name once", value)])
        seen.add(value)
    return values


def _some(values: tuple[Item, ...]) -> tuple[Item, ...]:
    # Not by pydantic's minimum length, which also complains where the one item is wrong.
    offended([Offence((), "expected a list that is not empty", [])] if not values else [])
    return values


Distinct = Annotated[tuple[Item, ...], Field(strict=False, fail_fast=True), AfterValidator(_distinct)]
Several = Annotated[tuple[Item, ...], Field(strict=False, fail_fast=True), AfterValidator(_some)]
