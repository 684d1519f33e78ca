"""Quantities: the notation of Kubernetes, exactly."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.documents.quantities import QuantityRefused, base_units, readable
from pipeline.cluster.arrays import UNLIMITED


@pytest.mark.parametrize(
    ("resource", "quantity", "units"),
    [
        ("cpu", "500m", 500),
        ("cpu", 4, 4000),
        ("cpu", "0.5", 500),
        ("cpu", 0.1, 100),
        ("cpu", "1e3", 1_000_000),
        ("cpu", "2500000m", 2_500_000),
        ("memory", "2Gi", 2 << 30),
        ("memory", "1.5Gi", 3 << 29),
        ("memory", "100k", 100_000),
        ("memory", "1e3", 1000),
        ("memory", "1E", 10**18),
        ("memory", "1E3", 1000),
        ("memory", ".5Ki", 512),
        ("memory", "2.", 2),
        ("memory", "+7", 7),
        ("ephemeral-storage", "1Ti", 1 << 40),
        ("hugepages-2Mi", "64Mi", 64 << 20),
        ("nvidia.com/gpu", 8, 8),
        ("nvidia.com/gpu", "8", 8),
        ("nvidia.com/gpu", 2.0, 2),
        ("nvidia.com/gpu", "3000m", 3),
        ("pods", "1k", 1000),
        ("pods", "0Gi", 0),
    ],
)
def test_a_quantity_is_a_whole_number_of_base_units(resource: str, quantity: Any, units: int) -> None:
    assert base_units(resource, quantity) == units


@pytest.mark.parametrize(
    ("resource", "quantity", "units"),
    [("cpu", "1u", 1), ("cpu", "1.0001m", 2), ("memory", "1m", 1), ("memory", 0.2, 1)],
)
def test_what_is_below_the_base_unit_is_rounded_up(resource: str, quantity: Any, units: int) -> None:
    assert base_units(resource, quantity) == units


@pytest.mark.parametrize("quantity", ["0.5", 0.5, "500m", "1500m"])
def test_a_fraction_of_a_device_is_refused(quantity: Any) -> None:
    with pytest.raises(QuantityRefused, match="expected a whole number, since nvidia"):
        base_units("nvidia.com/gpu", quantity)


@pytest.mark.parametrize(
    "quantity",
    [
        -1, "-1", "-1m", -0.5, float("nan"), float("inf"), True, None, "", " 1", "1 Gi", "1gi", "1K", "Gi", "e3", "1e",
        "--1", "1.2.3", "0x10", "1_000", "\N{ARABIC-INDIC DIGIT ONE}", "1" * 65, "1e41", "1e-999999999",
        "1e9999999999", "1Gi2", "unlimited",
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(quantity: Any) -> None:
    with pytest.raises(QuantityRefused, match="expected a non-negative quantity"):
        base_units("memory", quantity)


def test_true_is_not_the_one_that_was_read_before_it() -> None:
    assert base_units("cpu", 1) == 1000
    with pytest.raises(QuantityRefused):
        base_units("cpu", True)


@pytest.mark.parametrize(("resource", "quantity"), [("cpu", "1E"), ("memory", "1Ei"), ("memory", "1e30")])
def test_a_quantity_that_does_not_fit_is_refused(resource: str, quantity: str) -> None:
    with pytest.raises(QuantityRefused, match=r"below 2\^60"):
        base_units(resource, quantity)


def test_unlimited_is_an_answer_only_where_a_bound_may_be_absent() -> None:
    assert base_units("cpu", "unlimited", unlimited=True) == UNLIMITED
    with pytest.raises(QuantityRefused, match=r"non-negative quantity such as 500m or 32Gi$"):
        base_units("cpu", "unlimited")
    with pytest.raises(QuantityRefused, match=r"or unlimited$"):
        base_units("cpu", "limitless", unlimited=True)


SUFFIXES = {"": 1, "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@given(st.decimals(0, 10**6, places=3), st.sampled_from(sorted(SUFFIXES)))
def test_reading_is_exact_and_never_rounds_down(number: Any, suffix: str) -> None:
    exact = Fraction(number) * SUFFIXES[suffix]
    units = base_units("memory", f"{number}{suffix}")
    assert exact <= units < exact + 1
    assert base_units("cpu", f"{number}{suffix}") - exact * 1000 < 1


@given(st.text(max_size=12) | st.integers() | st.floats())
def test_nothing_at_all_makes_the_reader_fail(quantity: Any) -> None:
    try:
        units = base_units("cpu", quantity)
    except QuantityRefused:
        return
    assert 0 <= units < UNLIMITED


@pytest.mark.parametrize(
    ("resource", "amounts", "said"),
    [
        ("memory", [8 << 30, 1536 << 20], ["8Gi", "1536Mi"]),
        ("memory", [6e9, 3e9], ["5.59Gi", "2.79Gi"]),
        ("memory", [1023.5 * (1 << 30)], ["1024Gi"]),
        ("memory", [0, 1000], ["0", "1000"]),
        ("storage", [16_393_244 << 10], ["15.6Gi"]),
        ("hugepages-2Mi", [1 << 60], ["1Ei"]),
        ("nvidia.com/gpu", [16], ["16"]),
        ("cpu", [1.5], ["1.5"]),
    ],
)
def test_amounts_are_written_as_an_operator_writes_them(resource: str, amounts: list[float], said: list[str]) -> None:
    assert readable(resource, *amounts) == said


@given(st.integers(0, 1 << 53), st.integers(0, 1 << 53))
def test_amounts_that_differ_are_written_otherwise(one: int, other: int) -> None:
    for near in (other, one + 1):
        assert len(set(readable("memory", one, near))) == len({one, near})
