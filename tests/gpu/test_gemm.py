"""GEMM on a device: exact on integers, and within its bound on real numbers."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu.database import FAMILIES, families_of
from pyblasgpu.dispatch.choose import select
from pyblasgpu.gpu.device import current
from pyblasgpu.gpu.intrinsics.mma import SHAPES
from pyblasgpu.kernels.gemm.simt_three_m import GemmSimtThreeM
from pyblasgpu.testing.cases import GemmCase
from pyblasgpu.testing.error_bounds import gemm_3m_error, gemm_error
from pyblasgpu.testing.reference import exact_gemm, integers
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.types import DTYPES, Trans

from .running import NAN, RUNS, cupy, exact_by, reals, same

GEMMS = [run for run in RUNS if run.routine == "gemm"]
LAYOUTS = FAMILIES["gemm_simt"].layouts


@pytest.mark.parametrize("aligned", [True, False], ids=["aligned", "odd"])
@pytest.mark.parametrize("letter", DTYPES)
def test_all_cases(letter, aligned):
    for run in GEMMS:
        if (run.letter, run.aligned) == (letter, aligned):
            run.check()


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("stem", families_of("gemm", "d"))
def test_every_family(letter, stem):
    """Each family that could serve double precision, whichever one is chosen by itself."""
    dtype = DTYPES[letter]
    exact_by(stem, dtype, [select(stem, dtype, layout, (40, 40, 40), current()).config for layout in LAYOUTS])


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction(letter, shape):
    if SHAPES[shape] > current().cc:
        pytest.skip(f"needs compute capability {SHAPES[shape]}")
    m, k = shape
    configs = [
        next(c for c in candidates("gemm_mma", letter, layout, current(), "quick").left if c.BLK_K % 16 == 0)
        for layout in LAYOUTS
    ]
    exact_by("gemm_mma", DTYPES[letter], [replace(c, MMA_M=m, MMA_K=k, prefetch=False) for c in configs])


@pytest.mark.parametrize("trans_a, trans_b", [("N", "N"), ("T", "N"), ("N", "C"), ("C", "T")])
@pytest.mark.parametrize("m, n, k", [(130, 67, 45), (64, 64, 3000), (1000, 1000, 1000)])
def test_three_products(m, n, k, trans_a, trans_b):
    """Exact on integers, and within the bound of sums of parts."""
    z, seen = DTYPES["z"], {"N": lambda x: x, "T": lambda x: x.T, "C": lambda x: x.conj().T}
    shapes = (m, k) if trans_a == "N" else (k, m), (k, n) if trans_b == "N" else (n, k)
    options = {"trans_a": trans_a, "trans_b": trans_b, "method": "3m"}
    exactly = [integers(np.random.default_rng(k), shape, z) for shape in shapes]
    c = pyblasgpu.gemm(*map(cupy.asarray, exactly), **options).get()
    same(c, seen[trans_a](exactly[0]) @ seen[trans_b](exactly[1]), f"3m {m} {n} {k}")
    a, b = (reals(z, *shape, seed=seed) for seed, shape in enumerate(shapes))
    c = pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), **options).get()
    assert gemm_3m_error(1, seen[trans_a](a), seen[trans_b](b), 0, None, c) < 1
    assert "three_m=True" in str(pyblasgpu.explain("gemm", "z", m, n, k, method="3m"))


@pytest.mark.parametrize("letter", "cz")
def test_three_products_by_fmas(letter):
    dtype = DTYPES[letter]
    chosen = [select("gemm_simt", dtype, layout, (40, 40, 40), current()).config for layout in LAYOUTS]
    exact_by("gemm_simt", dtype, [GemmSimtThreeM(**asdict(config)) for config in chosen])


@pytest.mark.parametrize("letter", "sc")
@pytest.mark.parametrize("number", range(3))
def test_smem_tiles_as_they_lie(letter, number):
    """Operands that are contiguous along k, and stay so in shared memory."""
    configs = []
    for layout in LAYOUTS:
        left = candidates("gemm_simt", letter, layout, current()).left
        configs += [config for config in left if config.VEC_K > 1][number::7][:1]
    assert len(configs) == 3
    exact_by("gemm_simt", DTYPES[letter], configs)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("trans_a, trans_b", [("N", "N"), ("T", "N"), ("N", "C"), ("C", "T")])
def test_error_bound(letter, trans_a, trans_b):
    dtype, (m, n, k) = DTYPES[letter], (1000, 1000, 1000)
    scalars = (0.7 - 0.2j, -1.3 + 1j) if dtype.is_complex else (0.7, -1.3)
    a, b, c = (reals(dtype, *shape, seed=seed) for seed, shape in enumerate(((m, k), (k, n), (m, n))))
    out = cupy.asarray(c)
    options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": scalars[0], "beta": scalars[1]}
    pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), out=out, **options)
    seen = {"N": lambda x: x, "T": lambda x: x.T, "C": lambda x: x.conj().T}
    error = gemm_error(scalars[0], seen[trans_a](a), seen[trans_b](b), scalars[1], c, out.get())
    assert error < 1


@st.composite
def views(draw):
    """Which part of a larger array: first row and column, steps, order."""
    start = st.integers(0, 2)
    step = st.sampled_from([1, 1, 1, 2, -1, -2])
    return (draw(start), draw(start)), (draw(step), draw(step)), draw(st.sampled_from("CF"))


def view(values: np.ndarray, how):
    """`values` in such a part of an array of NaN, on the device; and the whole array."""
    (top, left), steps, order = how
    rows, cols = (extent * abs(step) for extent, step in zip(values.shape, steps))
    whole = np.full((top + rows + 1, left + cols + 1), NAN, values.dtype, order=order)
    part = (slice(top, top + rows), slice(left, left + cols))
    inner = tuple(slice(None, None, step) for step in steps)
    whole[part][inner] = values
    device = cupy.asarray(whole, order=order)
    return device[part][inner], device


@settings(max_examples=150)
@given(st.data())
def test_any_view(data):
    """Slices and their reversals, of either order: read in place or packed, never written beside."""
    draw = data.draw
    dtype = DTYPES[draw(st.sampled_from("sz"))]
    m, n, k = (draw(st.integers(1, 70)) for _ in range(3))
    trans = st.sampled_from([Trans.NO, Trans.CONJ])
    case = GemmCase(
        dtype, m, n, k, draw(trans), draw(trans), draw(st.sampled_from([1, -2])), draw(st.integers(-1, 1))
    )
    rng = np.random.default_rng(m + n + k)
    a, b, c = (integers(rng, shape, dtype) for shape in case.shapes)
    (left, _), (right, _), (out, whole) = (view(x, draw(views())) for x in (a, b, c))
    before = cupy.isnan(whole).sum()
    pyblasgpu.gemm(
        left, right, alpha=case.alpha, beta=case.beta, trans_a=case.trans_a, trans_b=case.trans_b, out=out
    )
    same(out.get(), exact_gemm(case, a, b, c), case)
    assert cupy.isnan(whole).sum() == before, f"{case}: written outside the view"


@pytest.mark.parametrize("letter", DTYPES)
def test_views_that_begin_beside_an_aligned_address(letter):
    dtype, rng = DTYPES[letter], np.random.default_rng(1)
    a, b = (integers(rng, (129, 129), dtype) for _ in "ab")
    left, right, out = cupy.asarray(a), cupy.asarray(b, order="F"), cupy.zeros((129, 129), dtype.name)
    for row, col in product(range(3), repeat=2):
        pyblasgpu.gemm(left[row:, 1:], right[1:, col:], out=out[row:, col:])
        same(out[row:, col:].get(), a[row:, 1:] @ b[1:, col:], f"{letter} {row} {col}")


@pytest.mark.parametrize("letter", "sz")
def test_stacks(letter):
    dtype, rng = DTYPES[letter], np.random.default_rng(2)
    a, b = integers(rng, (5, 1, 33, 31), dtype), integers(rng, (4, 31, 17), dtype)
    same(pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b)).get(), a @ b, "broadcast")
    out = cupy.full((4, 5, 17, 33), 1, dtype.name).transpose(1, 0, 3, 2)
    pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), beta=2, out=out)
    same(out.get(), a @ b + 2, "out with its own strides")
    innermost = cupy.asarray(np.moveaxis(b, 0, -1).copy()).transpose(2, 0, 1)
    same(pyblasgpu.gemm(cupy.asarray(a[0, 0]), innermost).get(), a[0, 0] @ b, "batch innermost")


def test_an_outer_and_an_inner_product():
    x = np.arange(-500, 500, dtype=np.float64)
    column, row = cupy.asarray(x[:, None]), cupy.asarray(x[None])
    same(pyblasgpu.gemm(column, row).get(), np.outer(x, x), "outer")
    same(pyblasgpu.gemm(row, column).get(), np.array([[x @ x]]), "inner")


def test_columns_of_strides_of_any_size():
    """One row or one column has strides that mean nothing."""
    a = cupy.lib.stride_tricks.as_strided(cupy.arange(6.0), (1, 6), (3, 8))
    same(pyblasgpu.gemm(a[:, :4], cupy.eye(4)).get(), np.arange(4.0)[None], "one row")
