"""`level1_map`: SCAL, AXPY, SWAP and ROT of vectors of any increments, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from strided_vectors import Strided

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.level1 import map as level1_map
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run


def expected_of(operation: str, x, y, alpha, beta):
    """What x and v become."""
    if operation == "scal":
        return x, alpha * x
    if operation == "axpy":
        return x, alpha * x + y
    if operation == "swap":
        return y, x
    return alpha.real * x + alpha.imag * y, beta.real * x + beta.imag * y


def check(
    operation="axpy",
    letter="s",
    n=150,
    incs=(1, 1, 1),
    shift=(0, 0, 0),
    batch=1,
    in_place=True,
    alpha=2 - 3j,
    kernels=level1_map,
) -> None:
    """Run on integers amid NaN, two tiles and a bit long; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    if operation in ("scal", "axpy") and not dtype.is_complex:
        alpha = complex(alpha.real)
    beta = -1 + 2j
    config = kernels.Map(dtype=letter, DIM=32, UNROLL=2)
    x, y, v = (
        Strided(integers(rng, (batch, n), dtype), inc, first) for inc, first in zip(incs, shift, strict=True)
    )
    if operation == "scal":
        y = x
    elif in_place or operation in ("swap", "rot"):
        v = y
    scale = alpha if dtype.is_complex else alpha.real
    expected = expected_of(
        operation, x.view.copy(), y.view.copy(), scale if operation in ("scal", "axpy") else alpha, beta
    )
    vectors = x, y, v
    steps = tuple(w.increment for w in vectors), tuple(w.batch_stride for w in vectors)
    integers_ = kernels.integers(dtype, operation, n, *steps)
    starts = tuple(w.view.reshape(batch, n)[:1, :1] for w in vectors)
    run(kernels.source(config, operation), config.grid(n), starts, integers_, (alpha, beta), batch)
    np.testing.assert_array_equal(x.view, expected[0])
    np.testing.assert_array_equal(v.view, expected[1])
    assert all(w.unharmed() for w in vectors)


OPERATIONS = level1_map.OPERATIONS


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(operation, letter):
    check(operation, letter)
    check(operation, letter, in_place=False, batch=2)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 127, 128, 129, 255, 259])
def test_lengths(letter, n):
    check("axpy", letter, n)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_increments(operation, letter):
    check(operation, letter, 70, (2, 1, 3), in_place=False)
    check(operation, letter, 70, (-1, 2, -3), in_place=False, batch=2)


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("letter", DTYPES)
def test_alignments(letter, shift):
    check("axpy", letter, shift=(shift, 0, 0))
    check("axpy", letter, shift=(0, 0, shift), in_place=False)
    check("rot", letter, shift=(0, shift, 0))
    check("swap", letter, shift=(shift, shift, shift))


def test_a_real_factor_keeps_infinities_apart():
    """CSSCAL has it so: (2 + 0i) times (Inf + i) has no NaN."""
    x = np.array([complex(np.inf, 1)], np.complex64)
    config = level1_map.Map(dtype="c", DIM=32)
    run(level1_map.source(config, "scal"), 1, (x, x, x), (1, 0, 1, 1, 1, 0, 0, 0), (2, 0))
    assert x[0] == complex(np.inf, 2)


def test_a_copy_keeps_every_bit():
    values = np.array([np.nan, -0.0, 5e-324, np.inf, 1.5])
    x, v = values.copy(), np.zeros(5)
    config = level1_map.Map(dtype="d", DIM=32)
    run(level1_map.source(config, "scal"), 1, (x, x, v), (5, 0, 1, 1, 1, 0, 0, 0), (1, 0))
    assert v.tobytes() == values.tobytes()


def test_rules():
    with pytest.raises(ConfigError, match="whole_warps"):
        level1_map.Map(dtype="s", DIM=48)
    with pytest.raises(ConfigError, match="operation"):
        level1_map.source(level1_map.Map(dtype="s"), "dot")
