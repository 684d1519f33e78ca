"""Columns of all types and shapes come out of a bundle as they went in."""

import numpy as np
import pytest

from pipeline.cluster.updates.bundled import bundled, opened


def test_columns_keep_their_types_their_shapes_and_their_order() -> None:
    columns = [
        np.arange(6, dtype=np.int64).reshape(3, 2), np.array([True, False]), np.zeros((0, 4), np.int64),
        np.array([0.5, np.nan]), np.arange(3, dtype=np.int32), np.arange(24, dtype=np.int64).reshape(2, 3, 4).T,
    ]  # fmt: skip
    found = list(opened(bundled(columns)))
    assert [(one.dtype, one.shape) for one in found] == [(one.dtype, one.shape) for one in columns]
    for one, other in zip(found, columns, strict=True):
        np.testing.assert_array_equal(one, other)


def test_there_is_one_array_for_each_type_and_what_comes_out_is_read_only() -> None:
    bundle = bundled([np.arange(3), np.arange(2), np.array([True])])
    assert [values.dtype for values in bundle.values] == [np.int64, np.bool_]
    for column in opened(bundle):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_no_columns_are_an_empty_bundle() -> None:
    assert list(opened(bundled([]))) == []
