"""`level1_reduce`: DOT, NRM2, ASUM and I?AMAX of vectors of any increments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from strided_vectors import Strided

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.level1 import operations
from pyblasgpu.kernels.level1 import reduce as level1_reduce
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run


def reduced(
    operation: str, x: Strided, y: Strided, conj: bool = False, kernels=level1_reduce, dim: int = 64
) -> np.ndarray:
    """What the kernel makes of the vectors, of shape (batch, n)."""
    batch, n = x.view.shape
    dtype = DTYPES[{"f": "s", "d": "d", "F": "c", "D": "z"}[x.view.dtype.char]]
    config = kernels.Reduce(dtype=dtype.letter, DIM=dim, UNROLL=1, ALONE=1, BLOCKS=3)
    blocks, reals = config.grid(n), operations.reals_of(dtype, operation)
    partials = np.full(blocks * reals * batch, np.nan, dtype.real)
    flags = np.zeros(batch * dtype.real_size, np.uint8).view(dtype.real)
    results = {"dot": dtype.name, "nrm2": dtype.real, "asum": dtype.real, "iamax": "int64"}
    out = np.zeros(3 * batch, results[operation])
    out[...] = 99
    reals_out = out.view(dtype.real)
    starts = x.view[:1, :1], y.view[:1, :1], partials, flags, reals_out
    steps, strides_ = (x.increment, y.increment), (x.batch_stride, y.batch_stride)
    integers_ = kernels.integers(dtype, operation, conj, n, steps, strides_, 3)
    run(kernels.source(config, operation), blocks, starts, integers_, (), batch)
    assert not flags.view(np.uint8).any() and (out[1::3] == 99).all() and (out[2::3] == 99).all()
    return out[::3]


def expected_of(operation: str, x, y, conj):
    sizes = abs(x.real) + abs(x.imag)
    return {
        "dot": lambda: ((x.conj() if conj else x) * y).sum(-1),
        "nrm2": lambda: np.sqrt((x.real.astype(float) ** 2 + x.imag.astype(float) ** 2).sum(-1)),
        "asum": lambda: sizes.sum(-1),
        "iamax": lambda: sizes.argmax(-1),
    }[operation]()


def check(
    operation="dot",
    letter="s",
    n=600,
    incs=(1, 1),
    shift=0,
    batch=1,
    conj=False,
    kernels=level1_reduce,
    dim=64,
) -> None:
    """Reduce integers amid NaN by up to three blocks of a few tiles; exact but for the root of NRM2."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    x, y = (Strided(integers(rng, (batch, n), dtype), inc, shift) for inc in incs)
    for each in (x, y):  # also of a batch of one
        each.view = each.view.reshape(batch, n)
    actual = reduced(operation, x, y, conj, kernels, dim)
    expected = expected_of(operation, x.view, y.view, conj)
    if operation == "nrm2":
        np.testing.assert_allclose(actual, expected, rtol=4 * dtype.unit_roundoff)
    else:
        np.testing.assert_array_equal(actual, expected)
    assert x.unharmed() and y.unharmed()


OPERATIONS = level1_reduce.OPERATIONS


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(operation, letter):
    check(operation, letter)
    check(operation, letter, batch=2, conj=True, dim=32)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 31, 33, 64, 255, 256, 257, 1030])
def test_lengths(operation, n):
    check(operation, "s", n)
    check(operation, "c", n)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_increments(operation, letter):
    check(operation, letter, 140, (2, -1))
    check(operation, letter, 140, (-3, 1), batch=2)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("letter", DTYPES)
def test_alignments(letter, shift):
    for operation in OPERATIONS:
        check(operation, letter, shift=shift)


def one(operation: str, values, dtype) -> np.generic:
    x = Strided(np.asarray(values, dtype))
    x.view = x.view.reshape(1, -1)
    return reduced(operation, x, x, dim=32)[0]


def test_the_largest_of_nothing_is_number_minus_1():
    for dtype in (np.float32, np.complex128):
        config = level1_reduce.Reduce(
            dtype=DTYPES[{4: "s", 16: "z"}[np.dtype(dtype).itemsize]].letter, DIM=32
        )
        x, out = np.full(3, np.nan, dtype), np.zeros(1, np.int64)
        room = np.zeros(3, x.real.dtype)
        pointers = x, x, room, room, out.view(room.dtype)
        numbers = level1_reduce.integers(DTYPES[config.dtype], "iamax", False, 0, (1, 1), (0, 0), 1)
        run(level1_reduce.source(config, "iamax"), config.grid(0), pointers, numbers, (), 1)
        assert out[0] == -1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_norms_neither_overflow_nor_underflow(dtype):
    limits = np.finfo(dtype)
    for scale in (limits.max / 32, limits.tiny, limits.smallest_subnormal * 64, 1.0, 2.0**40, 2.0**-52):
        scale = limits.dtype.type(scale)
        actual = one("nrm2", [3 * scale, *[0] * 200, 4 * scale], dtype)
        np.testing.assert_allclose(actual, 5 * scale, rtol=4 * limits.eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_numbers_of_all_sizes(dtype):
    limits = np.finfo(dtype)
    low, high = limits.minexp - limits.nmant, limits.maxexp - 8
    rng = np.random.default_rng(5)
    for bottom, top in ((low, low + 40), (-60, 60), (high - 60, high), (-500, -440), (440, 500)):
        bottom, top = max(bottom, low), min(top, high)
        if bottom >= top:
            continue
        values = np.ldexp(rng.uniform(1, 2, 150), rng.integers(bottom, top, 150)).astype(dtype)
        exact = math.hypot(*map(float, values))
        np.testing.assert_allclose(one("nrm2", values, dtype), exact, rtol=8 * limits.eps)


@pytest.mark.parametrize("operation", ["dot", "nrm2", "asum"])
@pytest.mark.parametrize("at", [0, 77, 299])
def test_nans_and_infinities_reach_the_result(operation, at):
    values = np.ones(300, np.float32)
    values[at] = np.inf
    assert one(operation, values, "float32") == np.inf
    values[(at + 150) % 300] = np.nan
    assert np.isnan(one(operation, values, "float32"))
    values[at] = 1
    assert np.isnan(one(operation, values, "float32"))


@pytest.mark.parametrize("at", [0, 5, 31, 77, 298, 299])
def test_the_largest_is_the_first_one(at):
    values = np.zeros(300)
    assert one("iamax", values, "float64") == 0
    values[at] = -2
    values[at + 1 : 300 : 7] = 2
    assert one("iamax", values, "float64") == at
    values[at:300:50] = np.nan
    values[299 - at] = np.inf
    assert one("iamax", values, "float64") == np.flatnonzero(np.isnan(values))[0]


def test_rules():
    with pytest.raises(ConfigError, match="whole_warps"):
        level1_reduce.Reduce(dtype="s", DIM=48)
    with pytest.raises(ConfigError, match="alone"):
        level1_reduce.Reduce(dtype="s", ALONE=0)
    with pytest.raises(ConfigError, match="operation"):
        level1_reduce.source(level1_reduce.Reduce(dtype="s"), "scal")


def test_blocks():
    config = level1_reduce.Reduce(dtype="d", DIM=32, UNROLL=1, ALONE=2, BLOCKS=5)
    assert config.TILE == 64
    assert [config.grid(n) for n in (1, 64, 128, 129, 320, 321, 10**9)] == [1, 1, 1, 3, 5, 5, 5]
    assert config.grid(10**9, alone=True) == 1
