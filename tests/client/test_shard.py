"""Shards keep rows as narrow as they fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import fism
from fism_client.data.shard import SparseRows

KEPT = {
    "bytes": (np.array([[0, 255]], np.uint8), "uint8"),
    "floats that are bytes": (np.array([[0.0, 255.0]]), "uint8"),
    "bools": (np.array([[True, False]]), "uint8"),
    "ints": (np.array([[0, 256]]), "float32"),
    "negative ints": (np.array([[-1, 0]]), "float32"),
    "halves": (np.array([[0.5, 0.25]]), "float32"),
    "float32": (np.array([[0.1, 0.2]], np.float32), "float32"),
    "tenths": (np.array([[0.1, 0.2]]), "float64"),
    "tenths in the last row": (np.array([[0.5, 0.5], [0.5, 0.1]]), "float64"),
    "large ints": (np.array([[2**24 + 1, 0]]), "float64"),
    "ints beyond float64": (np.array([[2**53 + 1, 0]]), "float64"),
    "large floats": (np.array([[1e300, 0.0]]), "float64"),
}


@pytest.mark.parametrize("case", KEPT)
def test_dense_rows_keep_the_narrowest_type_that_holds_them(case: str) -> None:
    """And the same numbers."""
    rows, dtype = KEPT[case]
    kept = fism.Shard.of(rows, np.zeros(rows.shape[0])).rows
    assert isinstance(kept, np.ndarray)
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept, rows)


@pytest.mark.parametrize("case", KEPT)
def test_sparse_rows_keep_the_narrowest_type_that_holds_them(case: str) -> None:
    """And the same nonzeros."""
    rows, dtype = KEPT[case]
    kept = fism.Shard.of(csr_array(rows), np.zeros(rows.shape[0])).rows
    assert isinstance(kept, SparseRows)
    assert kept.data.dtype == dtype
    np.testing.assert_array_equal(kept.data, rows[rows != 0])


def test_wide_floats_are_not_copied() -> None:
    """A large table is held once."""
    rows = np.random.default_rng(0).normal(size=(10, 3))
    assert fism.Shard.of(rows, np.zeros(10)).rows is rows


def test_rows_in_columns_order_are_laid_by_rows() -> None:
    """Kernels stream rows."""
    rows = np.asfortranarray(np.random.default_rng(0).normal(size=(10, 3)))
    kept = fism.Shard.of(rows, np.zeros(10)).rows
    assert isinstance(kept, np.ndarray)
    assert kept.flags.c_contiguous
    np.testing.assert_array_equal(kept, rows)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_scale_must_be_above_zero(scale: float) -> None:
    """Else rows would vanish or flip."""
    with pytest.raises(fism.DataError, match="the scale must be"):
        fism.Shard.of([[1.0]], [1.0], scale=scale)
