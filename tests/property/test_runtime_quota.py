"""Runtime quotas against a division that hands out piece after piece, and what must hold of every division."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, UNLIMITED
from pipeline.plugins.elasticquota.runtime import StatedQuotas, by_largest_remainder, runtime_quota
from tests.support.depth import sampled

#: Devices: the resource is not cpu, so nothing is rounded to cores.
_DEVICES = 3


class Sibling(NamedTuple):
    least: int
    kept: int
    most: int
    weight: int
    asks: int


SIBLINGS = st.lists(
    st.builds(
        Sibling, st.integers(0, 12), st.integers(0, 6), st.one_of(st.just(UNLIMITED), st.integers(12, 30)),
        st.integers(0, 5), st.integers(0, 40),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


def terms_of(siblings: list[Sibling], parent: list[int] | None = None) -> StatedQuotas:
    """The terms of some queues in one resource of four."""
    wide = np.zeros((len(siblings), 4), np.int64)

    def column(values: list[int]) -> np.ndarray:
        made = wide.copy()
        made[:, _DEVICES] = values
        return made

    least, kept = column([one.least for one in siblings]), column([one.kept for one in siblings])
    most = np.full_like(wide, UNLIMITED)
    most[:, _DEVICES] = [one.most for one in siblings]
    weight = column([one.weight for one in siblings]).astype(float)
    above = np.array(parent or [NONE] * len(siblings), np.int32)
    return StatedQuotas(
        above, least, np.maximum(least, kept), most, kept, weight, False, most < UNLIMITED, np.zeros_like(wide, bool)
    )


def divided(siblings: list[Sibling], total: int) -> list[int]:
    asks, whole = np.zeros((len(siblings), 4), np.int64), np.zeros(4, np.int64)
    asks[:, _DEVICES], whole[_DEVICES] = [one.asks for one in siblings], total
    return [int(one) for one in runtime_quota(terms_of(siblings), asks, asks, whole)[:, _DEVICES]]


def wanted(one: Sibling) -> int:
    return min(one.asks, one.most)


def base_of(one: Sibling) -> int:
    return max(min(wanted(one), max(one.least, one.kept)), one.kept)


@given(SIBLINGS, st.integers(0, 90))
@settings(max_examples=sampled(300), deadline=None)
def test_every_queue_gets_its_base_and_no_more_than_it_asks_for(siblings: list[Sibling], total: int) -> None:
    for one, got in zip(siblings, divided(siblings, total), strict=True):
        assert base_of(one) <= got <= max(wanted(one), one.kept)


@given(SIBLINGS, st.integers(0, 90))
@settings(max_examples=sampled(300), deadline=None)
def test_nothing_is_lost_or_made_while_a_queue_with_a_weight_wants_more(siblings: list[Sibling], total: int) -> None:
    got = divided(siblings, total)
    bases = sum(map(base_of, siblings))
    hungry = any(one.weight and have < wanted(one) for one, have in zip(siblings, got, strict=True))
    assert sum(got) == max(total, bases) if hungry else sum(got) <= max(total, bases)


@given(SIBLINGS, st.integers(0, 90))
@settings(max_examples=sampled(300), deadline=None)
def test_what_is_left_is_divided_as_piece_by_piece_up_to_a_piece_a_round(siblings: list[Sibling], total: int) -> None:
    # Exact water-filling by trying every level at which some queue has all that it wants.
    over = [max(wanted(one) - base_of(one), 0) if one.weight else 0 for one in siblings]
    pool = Fraction(max(total - sum(map(base_of, siblings)), 0))
    levels = sorted(
        {Fraction(more, one.weight) for more, one in zip(over, siblings, strict=True) if one.weight} | {Fraction(0)}
    )

    def taken(level: Fraction) -> Fraction:
        return sum(
            (min(Fraction(more), level * one.weight) for more, one in zip(over, siblings, strict=True)), Fraction(0)
        )

    below = max((level for level in levels if taken(level) <= pool), default=Fraction(0))
    rate = sum(one.weight for more, one in zip(over, siblings, strict=True) if more > below * one.weight)
    level = below + (pool - taken(below)) / rate if rate else below
    for one, more, got in zip(siblings, over, divided(siblings, total), strict=True):
        exact = base_of(one) + min(Fraction(more), level * one.weight)
        assert abs(got - exact) <= len(siblings)


@given(SIBLINGS, SIBLINGS, st.integers(0, 90))
@settings(max_examples=sampled(150), deadline=None)
def test_children_divide_what_their_parent_got(parents: list[Sibling], children: list[Sibling], total: int) -> None:
    # All children are the first parent's, which asks for what they ask for, and at least for what they keep.
    asked = sum(max(wanted(one), one.kept) for one in children)
    parents = [parents[0]._replace(asks=asked), *parents[1:]]
    both = [*parents, *children]
    terms = terms_of(both, [NONE] * len(parents) + [0] * len(children))
    asks, whole = np.zeros((len(both), 4), np.int64), np.zeros(4, np.int64)
    asks[:, _DEVICES], whole[_DEVICES] = [0, *(one.asks for one in both[1:])], total
    got = [int(one) for one in runtime_quota(terms, asks, asks, whole)[:, _DEVICES]]
    assert got[: len(parents)] == divided(parents, total)
    assert got[len(parents) :] == divided(children, got[0])


@given(st.integers(0, 2**60), st.lists(st.integers(0, 2**50), min_size=1, max_size=6).filter(any))
def test_the_largest_remainder_hands_out_every_piece_and_is_off_by_less_than_one(pool: int, weight: list[int]) -> None:
    pieces = by_largest_remainder(pool, weight)
    assert sum(pieces) == pool
    assert all(abs(many - Fraction(pool * one, sum(weight))) < 1 for many, one in zip(pieces, weight, strict=True))
