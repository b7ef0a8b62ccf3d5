"""`potrf_panel`: a factor and the rows below it, by blocks that wait for none but the last."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import special_pivots
from covering import pairs

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.factor.cholesky import potrf_panel
from pyblasgpu.kernels.factor.cholesky.potrf_panel import PotrfPanel
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_potrf_leaf import factors, hermitian, unknown

NAN = float("nan")


def panel(letter: str, kernels=potrf_panel, rows: int = 8) -> PotrfPanel:
    """Sixteen columns in panels of eight, and eight rows below a block."""
    return kernels.PotrfPanel(letter, 16, 32, 8, rows)


def launch(a, info, m: int, before: int, kernels, rows: int = 8) -> np.ndarray:
    """Factor the leading block of each matrix in place and solve m rows below it; the flags after it."""
    n, count, (*batch_stride, row, col) = a.shape[-1], len(info), strides(a)
    config = panel({"f": "s", "d": "d", "F": "c", "D": "z"}[a.dtype.char], kernels, rows)
    flags, integers = np.zeros(count * config.grid(m), a.real.dtype), (n, m, before, row, col, 1)
    step = batch_stride[0] if batch_stride else 0
    run(kernels.source(config), config.grid(m), (info, a, flags), (*integers, step), (), batch=count)
    return flags


def stack(letter="d", n=16, m=21, count=3, order="F", kernels=potrf_panel) -> None:
    """Matrices of a stack have factors of their own, one of them a bad pivot."""
    rng, dtype = np.random.default_rng(n), DTYPES[letter]
    lower = factors(rng, count, n, dtype)
    whole = np.concatenate([hermitian(lower), rng.uniform(-1, 1, (count, m, n)).astype(dtype.name)], axis=1)
    whole[1, 5, 5] = -1
    a, unharmed = fenced(whole, order)
    info = unknown(count)
    assert not launch(a, info, m, 0, kernels).any() and unharmed()
    assert info.tolist() == [0, 6, *[0] * (count - 2)]
    bound = 400 * dtype.unit_roundoff
    for each, factor, before in zip(a[::2], lower[::2], whole[::2], strict=True):
        assert abs(np.tril(each[:n]) - factor).max() < bound
        assert abs(each[n:] @ factor.conj().T - before[n:]).max() < bound


@pytest.mark.parametrize("letter, order", pairs(DTYPES, "CF"))
def test_a_stack(letter, order):
    stack(letter, order=order)


def check(letter="d", n=16, m=21, order="F", kernels=potrf_panel, seeds=3, rows_below=8) -> None:
    """A random factor and rows below, in some orders of the blocks, between fences."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    lower = factors(rng, 1, n, dtype)
    below = rng.uniform(-1, 1, (m, n)).astype(dtype.name)
    if dtype.is_complex:
        below.imag = rng.uniform(-1, 1, (m, n))
    wide = np.result_type(dtype.name, np.float64)
    product_ = (below.astype(wide) @ lower[0].astype(wide).conj().T).astype(dtype.name)
    for seed in range(seeds):
        simulator.reseed(seed)
        a, unharmed = fenced(np.vstack([hermitian(lower)[0], product_]), order)
        info = unknown(1)
        flags = launch(a, info, m, 0, kernels, rows_below)
        assert info.tolist() == [0] and not flags.any()
        rows, cols = np.tril_indices(n)
        bound = 400 * dtype.unit_roundoff
        assert abs(a[rows, cols] - lower[0, rows, cols]).max() < bound
        assert abs(a[n:] - below).max() < bound
        assert np.isnan(a[:n].real[*np.triu_indices(n, 1)]).all()
        assert unharmed()


@pytest.mark.parametrize("letter, order", list(product(DTYPES, "CF")))
def test_every_dtype_and_order(letter, order):
    check(letter, 16, 21, order)


@pytest.mark.parametrize("n, m", [(16, 1), (13, 8), (7, 17), (16, 24)])
def test_edges(n, m):
    check("d", n, m)


def test_a_block_of_more_rows():
    config = replace(panel("s"), SHARED=1 << 12)
    wide = config.wide
    assert wide.ROWS == 16 and wide.wide == wide and panel("s").wide == panel("s")
    check("s", 16, 37, rows_below=16)


def bad_pivot(at=9, before=0, kernels=potrf_panel) -> None:
    """It is told once, counted in the whole matrix."""
    a = np.vstack([np.eye(16), np.ones((20, 16))])
    a[at, at] = -1
    info = np.zeros(1, np.int32)
    assert not launch(a, info, 20, before, kernels).any()
    assert info.tolist() == [before + at + 1]


@pytest.mark.parametrize("at, before", [(0, 0), (9, 0), (15, 128)])
def test_a_bad_pivot(at, before):
    bad_pivot(at, before)


@pytest.mark.parametrize("place, letter", list(product(special_pivots.PLACES, DTYPES)))
def test_special_values(place, letter):
    """Rows below are divided by the same roots: by inf they give zero."""
    n, m = 14, 9
    whole = special_pivots.matrix(place, letter, n + m)
    a, info = whole[:, :n].copy(), unknown(1)
    launch(a, info, m, 0, potrf_panel)
    expected, number = special_pivots.textbook(whole)
    special_pivots.check(a[:n], info[0], whole[:n, :n])
    if not 0 < number <= n:
        np.testing.assert_allclose(a[n:], expected[n:, :n], atol=1e3 * DTYPES[letter].unit_roundoff)


def earlier_pivot(kernels=potrf_panel) -> None:
    """Nothing changes where an earlier pivot was bad."""
    a, info = np.full((30, 16), 3.0), np.array([7], np.int32)
    assert not launch(a, info, 14, 16, kernels).any()
    assert info.tolist() == [7] and (a == 3).all()


def test_an_earlier_bad_pivot():
    earlier_pivot()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"BLK": 24}, "panels"), ({"ROWS": 0}, "rows"), ({"ROWS": 60}, "rows"), ({"ROWS": 136}, "rows")],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as caught:
        PotrfPanel("d", **changes)
    assert caught.value.rule == rule


def test_devices_with_little_shared_memory():
    smaller = PotrfPanel("d").fitting(101376)
    assert (smaller.ORDER, smaller.ROWS, smaller.DIM) == (64, 64, 128) and smaller.shared_bytes <= 101376
