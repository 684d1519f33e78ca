"""Many kinds of tasks as a few rough ones."""

import numpy as np

from pipeline.cluster.arrays import Longs, frozen
from pipeline.cluster.tables import Shapes
from pipeline.solvers.scenarios.moves.rough_kinds import MOST, MoverKinds, RoughKinds, rough_kinds


def asked(many: int, seed: int, *, devices: int = 9) -> tuple[Shapes, MoverKinds]:
    """MoverKinds that differ in what they ask for, in part of a card, and in the nodes that they may use."""
    draw = np.random.default_rng(seed)
    request = np.column_stack(
        [draw.integers(1, 64_000, many), draw.integers(1, 1 << 38, many), draw.integers(0, devices, many)]
    )
    on_card, constraint = draw.integers(0, 3, many) * 40, draw.integers(0, 5, many)
    shapes = Shapes(frozen(request, np.int64), frozen(constraint, np.int32), frozen(on_card, np.int64))
    allowed = draw.random((5, 20)) < 0.5
    return shapes, MoverKinds(shapes.request, shapes.on_card, constraint.astype(np.int64), allowed)


def rough(many: int, seed: int) -> tuple[MoverKinds, RoughKinds]:
    shapes, kinds = asked(many, seed)
    return kinds, rough_kinds(shapes, np.arange(many), kinds)


def test_a_few_kinds_are_rough_ones_of_their_own() -> None:
    kinds, found = rough(MOST, 1)
    assert found.kinds is kinds
    assert found.of.tolist() == list(range(MOST))
    assert found.alone.all()


def test_thousands_of_kinds_are_few_rough_ones() -> None:
    for seed, many in enumerate((MOST + 1, 500, 5_000)):
        _, found = rough(many, seed)
        assert MOST // 8 < len(found.alone) <= MOST
        assert found.alone.tolist() == (np.bincount(found.of) == 1).tolist()


def test_a_rough_kind_asks_for_the_least_that_its_kinds_ask_for() -> None:
    kinds, (few, of, _) = rough(2_000, 3)
    for one in range(len(few.request)):
        assert few.request[one].tolist() == kinds.request[of == one].min(axis=0).tolist()
        assert few.on_card[one] == kinds.on_card[of == one].min()


def test_a_rough_kind_may_use_every_node_that_one_of_its_kinds_may_use() -> None:
    kinds, (few, of, _) = rough(2_000, 4)
    for one in range(len(few.request)):
        either = kinds.allowed[kinds.access[of == one]].any(axis=0)
        assert few.allowed[few.access[one]].tolist() == either.tolist()


def test_kinds_that_differ_in_few_amounts_of_a_resource_stay_apart_by_it() -> None:
    draw = np.random.default_rng(5)
    memory, devices = draw.integers(1 << 30, 1 << 32, 3_000), np.arange(3_000) % 9
    request: Longs = np.column_stack([np.full(3_000, 4_000), memory, devices])
    shapes = Shapes(frozen(request, np.int64), frozen(np.zeros(3_000), np.int32), frozen(np.zeros(3_000), np.int64))
    kinds = MoverKinds(shapes.request, shapes.on_card, np.zeros(3_000, np.int64), np.ones((1, 4), bool))
    found = rough_kinds(shapes, np.arange(3_000), kinds)
    assert found.kinds.request[found.of, 2].tolist() == devices.tolist()


def test_kinds_are_divided_alike_whichever_of_them_are_asked_about() -> None:
    shapes, kinds = asked(3_000, 6)
    some = np.arange(0, 3_000, 7)
    fewer = MoverKinds(kinds.request[some], kinds.on_card[some], kinds.access[some], kinds.allowed)
    every, found = rough_kinds(shapes, np.arange(3_000), kinds).of[some].tolist(), rough_kinds(shapes, some, fewer).of
    both = set(zip(every, found.tolist(), strict=True))
    assert len(both) == len(set(every)) == len(set(found.tolist()))
