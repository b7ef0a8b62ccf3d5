"""`copy_scaled`: any strides to any strides, scaled, conjugated, in place, or zeros."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pyblasgpu.kernels import copy_scaled
from pyblasgpu.kernels.copy_scaled import CopyScaled
from pyblasgpu.tuning.oracle import fenced, integers
from pyblasgpu.types import DTYPES

from .launching import run, strides

M, N = 13, 18


def launch(letter, source, target, alpha, conj=False, zero=False, read_by_rows=True, write_by_rows=True):
    config = CopyScaled(letter, 8, 16, 8, 4)
    kernel = copy_scaled.source(config, conj, zero, read_by_rows, write_by_rows)
    run(
        kernel,
        config.grid(M, N),
        (source, target),
        (M, N, *strides(source), *strides(target), 0, 0),
        (alpha,),
    )


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("read_by_rows, write_by_rows, conj", list(product((False, True), repeat=3)))
def test_copies(letter, read_by_rows, write_by_rows, conj):
    dtype = DTYPES[letter]
    alpha = 2 - 1j if dtype.is_complex else 2
    values = integers(np.random.default_rng(1), (2 * M, 3 * N), dtype)
    source = values[::2, ::-3]
    target, unharmed = fenced(np.full((M, N), np.nan, dtype.name), "F" if write_by_rows else "C")
    launch(letter, source, target, alpha, conj and dtype.is_complex, False, read_by_rows, write_by_rows)
    assert np.array_equal(target, alpha * (source.conj() if conj else source))
    assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_scales_in_place(letter):
    dtype = DTYPES[letter]
    values = integers(np.random.default_rng(2), (M, N), dtype)
    target, unharmed = fenced(values, "F")
    launch(letter, target, target, -3)
    assert np.array_equal(target, -3 * values)
    assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_zeros_without_reading(letter):
    target, unharmed = fenced(np.full((M, N), np.nan, DTYPES[letter].name), "C")
    launch(letter, target, target, 0, zero=True, read_by_rows=False, write_by_rows=False)
    assert not target.any()
    assert unharmed()
