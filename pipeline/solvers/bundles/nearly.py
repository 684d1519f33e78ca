"""Prices that are nearly the same: among them, one that breaks fewer podgroups is preferred."""

from pipeline.decision.price import Price
from pipeline.kernels import shared
from pipeline.solvers.bundles.bundling.records import Rules

#: By what fraction work may exceed the least if fewer podgroups break: where policy ranks priority after work, and
#: elsewhere.
_NEAR, _EQUAL = 0.01, 1e-5
#: Works are rounded to this in a price.
_ROUNDED = 1e-6


def margin_of(rules: Rules) -> float:
    """By what fraction work may exceed the least if fewer podgroups break."""
    return _EQUAL if rules.by_priority else _NEAR


@shared
def most_work(work: float, margin: float) -> float:
    """The most work that is nearly the same."""
    return work * (1.0 + margin) + _ROUNDED


def breaks_fewer(price: Price, other: Price, margin: float) -> bool:
    """Whether fewer podgroups break, and these lose nearly the same work or less at each level."""
    levels = [level for level, _ in price.broken], [level for level, _ in other.broken]
    works = zip(price.broken, other.broken, strict=False)
    return (
        price.gangs_broken < other.gangs_broken
        and (price.queue_rank, levels[0]) == (other.queue_rank, levels[1])
        and all(work <= most_work(least, margin) for (_, work), (_, least) in works)
    )
