"""Prices that are nearly the same: among them, one that breaks fewer podgroups is preferred."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pipeline.decision.price import Price
from pipeline.keeping import cached_property
from pipeline.kernels import shared
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.records import Rules

#: By what fraction work may exceed the least if fewer podgroups break: where policy ranks priority after work, and
#: elsewhere.
_NEAR, _EQUAL = 0.01, 1e-5
#: Works are rounded to this in a price.
_ROUNDED = 1e-6


class Priced(Protocol):
    """What has a price."""

    @property
    def price(self) -> Price:
        """What it costs."""
        ...


Item = TypeVar("Item", bound=Priced)


def slack_of(rules: Rules) -> float:
    """By what fraction work may exceed the least if fewer podgroups break."""
    return _EQUAL if rules.by_priority else _NEAR


@shared
def most(work: float, slack: float) -> float:
    """The most work that is nearly the same."""
    return work * (1.0 + slack) + _ROUNDED


def breaks_fewer(price: Price, other: Price, slack: float) -> bool:
    """Whether fewer podgroups break, and these lose nearly the same work or less at each level."""
    levels = [level for level, _ in price.broken], [level for level, _ in other.broken]
    works = zip(price.broken, other.broken, strict=False)
    return (
        price.gangs_broken < other.gangs_broken
        and (price.queue_rank, levels[0]) == (other.queue_rank, levels[1])
        and all(work <= most(least, slack) for (_, work), (_, least) in works)
    )


@dataclass(frozen=True)
class Finalists(Generic[Item]):
    """Selections in several domains, among which one is preferred.

    Attributes
    ----------
    slack
        See ``slack_of``; None where policy keeps the order of bundles: then the cheapest is preferred.
    """

    slack: float | None
    found: tuple[Item, ...] = ()

    def and_also(self, one: Item) -> "Finalists[Item]":
        """These and one more."""
        return replace(self, found=(*self.found, one))

    @cached_property
    def cheapest(self) -> Item | None:
        """The one with the lowest price; None if there are none."""
        return min(self.found, key=lambda one: one.price, default=None)

    @cached_property
    def preferred(self) -> Item | None:
        """The cheapest; or, where some cost nearly the same, the one that breaks the fewest podgroups.

        What is nearly the same is measured from the cheapest of all, so the order of the selections does not matter.
        """
        least, slack = self.cheapest, self.slack
        if least is None or slack is None:
            return least
        fewer = [one for one in self.found if breaks_fewer(one.price, least.price, slack)]
        return min(fewer, key=lambda one: (one.price.gangs_broken, one.price), default=least)

    def may_lose(self, price: Price) -> bool:
        """Whether a selection of this price would be preferred to all of these."""
        if self.cheapest is None or self.preferred is None or price < self.cheapest.price:
            return True
        fewer = price.gangs_broken < self.preferred.price.gangs_broken
        return fewer and self.slack is not None and breaks_fewer(price, self.cheapest.price, self.slack)

    @property
    def beaten_by(self) -> Price | None:
        """The most that a selection preferred to these may cost; None if there are none.

        While more than one podgroup breaks, that is a little more than the cheapest, see ``breaks_fewer``.
        """
        if self.cheapest is None or self.preferred is None:
            return None
        least = self.cheapest.price
        if self.slack is None or self.preferred.price.gangs_broken <= 1:
            return least
        return replace(least, broken=tuple((level, most(work, self.slack)) for level, work in least.broken))
