"""Kubernetes quantities as exact whole numbers: processors in millicores, bytes in bytes, anything else in pieces.

The notation is that of Kubernetes (``500m``, ``2Gi``, ``1e3``, ``.5``), bare numbers included. As there, what is below
the base unit of processors and bytes is rounded up; a fraction of a device is refused, since nothing here shares one.
"""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from pipeline.cluster.arrays import UNLIMITED

Quantity: TypeAlias = int | float | str

#: The word for no bound, where a bound may be absent.
NO_BOUND = "unlimited"

_NOTATION = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i))?"
)
_SUFFIXES = {
    **{suffix: Fraction(1000) ** power for power, suffix in zip((-3, -2, -1, *range(1, 7)), "numkMGTPE", strict=True)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
#: Longer notations and larger exponents cannot mean anything that fits; refusing them first bounds the arithmetic.
_LONGEST, _LARGEST_EXPONENT = 64, 40


class QuantityRefused(ValueError):
    """A quantity that cannot be meant; the message says what was expected, without the path and what was found."""


def in_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes."""
    return resource in ("memory", "storage", "ephemeral-storage") or resource.startswith("hugepages-")


# Typed, since True must not be taken for the 1 that was read before it.
@lru_cache(maxsize=1 << 16, typed=True)
def base_units(resource: str, quantity: Quantity, unlimited: bool = False) -> int:
    """A quantity of a resource in its base unit.

    Parameters
    ----------
    quantity
        As written.
    unlimited
        Whether the word ``unlimited`` is an answer here; it is ``UNLIMITED``.

    Returns
    -------
    Not negative, and below ``UNLIMITED`` unless it was that word.

    Raises
    ------
    QuantityRefused
        If it is no quantity, negative, too large, or a fraction of something whole.
    """
    if unlimited and quantity == NO_BOUND:
        return UNLIMITED
    amount = _amount(quantity)
    if amount is None:
        raise QuantityRefused(f"expected a non-negative quantity{' or unlimited' if unlimited else ''}")
    if resource == "cpu":
        amount *= 1000
    elif not in_bytes(resource) and amount.denominator != 1:
        raise QuantityRefused(f"expected a whole number, since {resource} is counted in pieces")
    rounded = -(-amount.numerator // amount.denominator)
    if rounded >= UNLIMITED:
        raise QuantityRefused("expected a quantity below 2^60 base units")
    return rounded


def card_units(quantity: Quantity) -> int:
    """What a card has, or a task asks of one, in base units: bytes or whatever they count in, rounded up.

    Raises
    ------
    QuantityRefused
        As ``base_units`` does.
    """
    return base_units("memory", quantity)


def _amount(quantity: object) -> Fraction | None:
    """The exact value of a notation; None for what is none, negative ones included."""
    if isinstance(quantity, bool) or not isinstance(quantity, int | float | str):
        return None
    if isinstance(quantity, int):
        return Fraction(quantity) if quantity >= 0 else None
    # A float's shortest decimal notation is what was written: 0.1 is a tenth here, as it is for Kubernetes.
    text = quantity if isinstance(quantity, str) else str(Decimal(repr(quantity)))
    found = _NOTATION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    exponent = int(found["exponent"] or 0)
    if abs(exponent) > _LARGEST_EXPONENT:
        return None
    amount = Fraction(Decimal(found["number"])) * Fraction(10) ** exponent * _SUFFIXES.get(found["suffix"], 1)
    return amount if amount >= 0 else None
