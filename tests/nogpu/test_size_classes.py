"""The size classes of products, leaves and batches."""

from __future__ import annotations

import pytest

from pyblasgpu.database import size_class, sizes_of
from pyblasgpu.dispatch.portfolio import is_square


@pytest.mark.parametrize(
    ("extents", "size"),
    [((16, 17, 9), "slim_rows"), ((99, 16, 9), "slim_cols"), ((17, 65, 9), "few_rows"),
     ((64, 65, 9), "few_rows"), ((65, 64, 9), "few_cols"), ((751, 750, 45), "outer"),
     ((751, 750, 46), "low_rank"), ((64, 64, 10**6), "tiny"),
     ((350, 350, 1), "tiny"), ((351, 350, 1), "small"), ((750, 750, 1), "small"),
     ((751, 750, 129), "middle"), ((751, 750, 128), "low_rank"), ((1450, 1450, 999), "middle"),
     ((1451, 1450, 999), "medium"), ((2900, 2900, 999), "medium"), ((2901, 2900, 999), "large"),
     ((100, 100, 5, 12), "tiny"), ((100, 100, 5, 13), "batch128"), ((200, 200, 500, 900), "large"),
     ((16, 16, 16, 10_000), "batch16"), ((16, 31, 9, 10_000), "batch32"), ((32, 32, 1, 10_000), "batch32"),
     ((64, 64, 999, 4000), "batch64"), ((64, 65, 9, 4000), "batch64"), ((128, 128, 128, 1000), "batch128"),
     ((22, 22, 9, 10_000), "batch16"), ((22, 23, 9, 10_000), "batch32"), ((45, 45, 9, 10_000), "batch32"),
     ((45, 46, 9, 10_000), "batch64"), ((90, 90, 9, 10_000), "batch64"), ((90, 91, 9, 10_000), "batch128"),
     ((181, 181, 9, 1000), "batch128"), ((182, 181, 999, 1000), "large"),
     ((16, 16, 16, 400), "tiny"), ((16, 16, 16, 1), "tiny")],
)  # fmt: skip
def test_size_classes_of_gemm(extents, size):
    assert size_class("gemm_simt", extents) == size


def test_size_classes_of_leaves():
    sizes = {1: "few", 64: "few", 65: "some", 1024: "some", 1025: "many", 2112: "many", 2113: "most"}
    for rhs, size in sizes.items():
        assert size_class("trsm_fma", (256, rhs)) == size_class("trmm_leaf", (256, rhs, 1)) == size
    assert set(sizes.values()) == set(sizes_of("trsm_fma", tuple(sizes.values())))


def test_squares_are_no_batches():
    squares = {size for size in sizes_of("gemm_mma") if is_square("gemm_mma", size)}
    assert {"tiny", "small", "middle", "medium", "large", "square128"} <= squares
    assert not {size for size in squares if size.startswith(("batch", "slim", "few", "update", "block"))}


@pytest.mark.parametrize(
    "extents, size",
    [
        ((64, 64, 33), "many"),
        ((64, 64, 34), "batch64"),
        ((90, 1, 10_000), "batch64"),
        ((91, 64, 100), "batch128"),
        ((181, 500, 10), "batch128"),
        ((182, 500, 10), "batch256"),
        ((128, 64, 66), "most"),
        ((128, 64, 67), "batch128"),
        ((256, 256, 10), "most"),
        ((4096, 8, 8), "few"),
    ],
)
def test_size_classes_of_batches_of_leaves(extents, size):
    for stem in ("trsm_fma", "trsm_mma", "trmm_leaf"):
        assert size_class(stem, extents) == size
