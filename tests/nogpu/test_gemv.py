"""The routine GEMV at any size, its kernels computed by NumPy: layouts, forms, slices, triangles."""

from __future__ import annotations

import numpy as np
import pytest
from fake_kernels import install, operand

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls.call import routine as run
from pyblasgpu.kernels.level2.gemv import Gemv
from pyblasgpu.routines.level2 import gemv, trmv
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Diag, Uplo


@pytest.fixture
def kernels(monkeypatch):
    return install(monkeypatch)


SHAPES = ((1, 1), (20, 24), (24, 5000), (5000, 40), (1000, 1000), (300, 7), (9000, 96))


@pytest.mark.parametrize("m, n", SHAPES)
@pytest.mark.parametrize("letter", "dc")
def test_every_layout(kernels, letter, m, n):
    rng, dtype = np.random.default_rng(m), DTYPES[letter]
    for order in "CF":
        a = np.array(integers(rng, (m, n), dtype), order=order)
        x, y = integers(rng, (n, 1), dtype), integers(rng, (m, 1), dtype)
        expected = 2 * (a.conj() @ x) - y
        kernels.launches.clear()
        run("gemv")(2, operand(a, dtype, True), operand(x, dtype), -1, operand(y, dtype), 0)
        np.testing.assert_array_equal(y, expected)
        assert len(kernels.launches) == 1
        assert kernels.launches[0][0] == "gemv"


def test_long_sums_are_sliced_until_blocks_fill_the_device(kernels):
    dtype = DTYPES["s"]
    a, x, y = (np.ones(shape, np.float32) for shape in ((64, 100_000), (100_000, 1), (64, 1)))
    for matrix in (a, np.asfortranarray(a)):
        run("gemv")(1, operand(matrix, dtype), operand(x, dtype), 0, operand(y, dtype), 0)
        assert (y == 100_000).all()
    assert all(grid[0] >= 100 for _, grid, _ in kernels.launches)


@pytest.mark.parametrize("letter", DTYPES)
def test_small_sums_are_not_sliced(kernels, letter):
    """A ticket, and the sums of slices, take longer than the launch of a small matrix."""
    dtype = DTYPES[letter]
    for n in (64, 256, 512, 1024):
        for order in "CF":
            a, x = np.zeros((n, n), dtype.name, order), np.zeros((n, 1), dtype.name)
            launches = gemv.launch_list(1, *(operand(each, dtype) for each in (a, x)), 0, operand(x, dtype))
            assert len(launches.entries) == 1 and not launches.uses_workspace


@pytest.mark.parametrize("order", "CF")
def test_many_small_matrices_have_small_blocks(kernels, order):
    """A multiprocessor holds two of them."""
    dtype, rng = DTYPES["d"], np.random.default_rng(2)
    a, x, y = (integers(rng, (1000, *shape), dtype) for shape in ((16, 12), (12, 1), (16, 1)))
    a = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) if order == "F" else a
    operands = operand(a, dtype), operand(x, dtype)
    launches = gemv.launch_list(1, *operands, 0, operand(y, dtype))
    assert [choice.config.WARPS for choice in launches.choices] == [8]
    run("gemv")(1, *operands, 0, operand(y, dtype), 0)
    np.testing.assert_array_equal(y, a @ x)


def test_nothing_to_do(kernels):
    dtype, a, x, y = DTYPES["d"], np.ones((3, 2)), np.full((2, 1), np.nan), np.ones((3, 1))
    run("gemv")(0, operand(a, dtype), operand(x, dtype), 1, operand(y, dtype), 0)
    assert not kernels.launches
    run("gemv")(0, operand(a, dtype), operand(x, dtype), 2, operand(y, dtype), 0)
    np.testing.assert_array_equal(y, np.full((3, 1), 2.0))


def test_a_config_that_is_asked_for_is_run_as_it_is(kernels):
    dtype, a, x, y = DTYPES["d"], np.ones((64, 64), order="F"), np.ones((64, 1)), np.ones((64, 1))
    config = Gemv("d", DIM_R=4, WARPS=4)
    with override("gemv", config):
        launches = gemv.launch_list(1, operand(a, dtype), operand(x, dtype), 0, operand(y, dtype))
    assert [choice.config for choice in launches.choices] == [config]


@pytest.mark.parametrize("lower", [False, True])
def test_triangles_in_place_and_not(kernels, lower):
    rng, dtype = np.random.default_rng(3), DTYPES["z"]
    a, x = integers(rng, (300, 300), dtype), integers(rng, (300, 1), dtype)
    uplo, y = (Uplo.LOWER if lower else Uplo.UPPER), np.empty_like(x)
    expected = (np.tril(a) if lower else np.triu(a)) @ x
    operands = [operand(each, dtype) for each in (a, x, y)]
    for passed in (operands, operands[:2]):
        launches = trmv.launch_list(*passed, uplo=uplo, diag=Diag.NON_UNIT)
        launches.run([each.pointer for each in passed], 1, stream=0)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(x, expected)


def test_a_product_of_one_column_or_row_is_a_gemv(kernels):
    rng, dtype = np.random.default_rng(4), DTYPES["d"]
    for m, n in ((70, 1), (1, 70)):
        a, b, c = (integers(rng, shape, dtype) for shape in ((m, 50), (50, n), (m, n)))
        expected = 2 * a @ b + c
        run("gemm")(2, operand(a, dtype), operand(b, dtype), 1, operand(c, dtype), 0)
        np.testing.assert_array_equal(c, expected)
    assert {name for name, *_ in kernels.launches} == {"gemv"}
    kernels.launches.clear()
    with override("splits", 1):
        run("gemm")(1, operand(a, dtype), operand(b, dtype), 0, operand(c, dtype), 0)
    assert kernels.launches[0][0].startswith("gemm")
