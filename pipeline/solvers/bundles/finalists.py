"""Selections in several domains: which of them is preferred, and which may still be."""

from dataclasses import dataclass

from pipeline.decision.price import Price
from pipeline.keeping import cached_property
from pipeline.records import replace
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.nearly import breaks_fewer, most_work


@dataclass(frozen=True)
class Finalists:
    """Selections in several domains, among which one is preferred.

    Attributes
    ----------
    margin
        See ``margin_of``; None where policy keeps the order of bundles: then the cheapest is preferred.
    """

    margin: float | None
    found: tuple[Selection, ...] = ()

    def and_also(self, one: Selection) -> "Finalists":
        """These and one more."""
        return replace(self, found=(*self.found, one))

    @cached_property
    def cheapest(self) -> Selection | None:
        """The one with the lowest price; None if there are none."""
        return min(self.found, key=lambda one: one.price, default=None)

    @cached_property
    def preferred(self) -> Selection | None:
        """The cheapest; or, where some cost nearly the same, the one that breaks the fewest podgroups.

        What is nearly the same is measured from the cheapest of all, so the order of the selections does not matter.
        """
        least, margin = self.cheapest, self.margin
        if least is None or margin is None:
            return least
        fewer = [one for one in self.found if breaks_fewer(one.price, least.price, margin)]
        return min(fewer, key=lambda one: (one.price.gangs_broken, one.price), default=least)

    def loses_to(self, price: Price) -> bool:
        """Whether a selection of this price would be preferred to all of these."""
        if self.cheapest is None or self.preferred is None or price < self.cheapest.price:
            return True
        fewer = price.gangs_broken < self.preferred.price.gangs_broken
        return fewer and self.margin is not None and breaks_fewer(price, self.cheapest.price, self.margin)

    @cached_property
    def beaten_by(self) -> Price | None:
        """The most that a selection preferred to these may cost; None if there are none.

        While more than one podgroup breaks, that is a little more than the cheapest, see ``breaks_fewer``.
        """
        if self.cheapest is None or self.preferred is None:
            return None
        least = self.cheapest.price
        if self.margin is None or self.preferred.price.gangs_broken <= 1:
            return least
        return replace(least, broken=tuple((level, most_work(work, self.margin)) for level, work in least.broken))
