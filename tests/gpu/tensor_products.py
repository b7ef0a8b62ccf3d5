"""Checks of products on tensor cores that hold in any dtype."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.gpu.device import current
from pyblasgpu.testing.cases import GemmCase
from pyblasgpu.testing.error_bounds import rank_k_error
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.testing.reference import exact_gemm, integers
from pyblasgpu.types import Dtype, Trans, Uplo

from .running import NAN, Placed, cupy, same

TRANS = (Trans.NO, Trans.TRANS)


def is_hopper() -> bool:
    return current().cc == (9, 0)


def skip_without_hopper() -> None:
    if not is_hopper():
        pytest.skip("wgmma needs compute capability 9.0")


def multiply(a, b, **options):
    return pyblasgpu.gemm(a, b, method="tensor", **options)


def check_exact(dtype: Dtype, shape: tuple[int, int, int], aligned: bool, order: str) -> None:
    """All layouts, odd extents and strides."""
    for number, (trans_a, trans_b) in enumerate(product(TRANS, TRANS)):
        case = GemmCase(dtype, *shape, trans_a, trans_b, 2, (-1, 0)[number % 2])
        check_case(case, number, aligned, order)


def check_case(case: GemmCase, seed: int, aligned: bool, order: str) -> None:
    """Exact on integers; what must not be read is NaN, all around C is fenced."""
    rng = np.random.default_rng(seed)
    a, b, start = (integers(rng, each, case.dtype) for each in case.shapes)
    expected = exact_gemm(case, a, b, start)
    if case.beta == 0:
        start[...] = NAN
    out = Placed(start, order, aligned)
    left, right = (Placed(x, "F", aligned).array for x in (a, b))
    options = {"trans_a": case.trans_a, "trans_b": case.trans_b, "alpha": case.alpha, "beta": case.beta}
    assert multiply(left, right, out=out.array, **options) is out.array
    same(out.fetch(), expected, f"{case} {order}")
    assert out.unharmed(), f"{case}: memory outside the result was written"


def check_triangle(dtype: Dtype, routine: str, uplo: Uplo, order: str, n: int = 517, k: int = 300) -> None:
    """A triangle of C, exact on integers: nothing is written beyond it, no imaginary diagonal is read."""
    rng = np.random.default_rng(n)
    hermitian, is_two = routine.startswith("her"), routine.endswith("2k")
    factors = [integers(rng, (n, k), dtype) for _ in range(1 + is_two)]
    left, right = factors[0], factors[-1]
    opposite = right.conj().T if hermitian else right.T
    expected = left @ opposite
    if is_two:
        expected = expected + (right @ (left.conj().T if hermitian else left.T))
    start = integers(rng, (n, n), dtype)
    on_diagonal, inside = np.eye(n, dtype=bool), np.tri(n, dtype=bool)
    inside = inside if uplo is Uplo.LOWER else inside.T
    expected = 2 * expected - (np.where(on_diagonal, start.real, start) if hermitian else start)
    if hermitian:
        start = np.where(on_diagonal, start.real + complex(0, NAN), start)
    start = np.where(inside, start, NAN).astype(dtype.name)
    out = Placed(start, order, aligned=order == "F")
    with pyblasgpu.set_math_mode("tensor"):
        call = getattr(pyblasgpu, routine)
        call(*(Placed(x).array for x in factors), alpha=2, beta=-1, out=out.array, lower=uplo is Uplo.LOWER)
    same(out.fetch()[inside], expected[inside].astype(dtype.name), f"{routine} {uplo} {order}")
    assert np.isnan(out.fetch()[~inside]).all() and out.unharmed()


def check_wide_triangle(dtype: Dtype, n: int = 900) -> None:
    """Rows of any size, and some of a wide range, within the bound."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype.is_complex else 0)
    power = 12 if dtype.real_size == 4 else 100
    a *= 2.0 ** rng.integers(-power, power, n)[:, None]
    a[n // 2 : n // 2 + 3] *= np.exp(6 * rng.standard_normal((3, n)))
    a = a.astype(dtype.name)
    out = cupy.zeros((n, n), dtype.name, order="F")
    with pyblasgpu.set_math_mode("tensor"):
        pyblasgpu.syrk(cupy.asarray(a), out=out, lower=True)
    assert rank_k_error([(1, a, a.T)], 0, None, out.get(), Uplo.LOWER) <= 1


def check_kept_factor(dtype: Dtype, uplo: Uplo, n: int = 1100) -> None:
    """A graded matrix within the bound; a row without a pivot is found, whatever its size."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype.is_complex else 0)
    sizes = 2.0 ** rng.integers(-100, 101, n)
    a = (a @ a.conj().T / n + np.eye(n) / 8) * sizes * sizes[:, None]
    inside = np.tri(n, dtype=bool) if uplo is Uplo.LOWER else np.tri(n, dtype=bool).T
    for order, bad in (("F", None), ("C", None), ("F", 700)):
        stored = np.where(inside, a, NAN)
        stored[np.diag_indices(n)] = a.diagonal().real + (complex(0, NAN) if dtype.is_complex else 0)
        if bad is not None:
            stored[bad, :bad] *= 2.0**40
            stored[:bad, bad] *= 2.0**40
            stored[bad + 200, bad + 200] = -1  # of two the first counts
        out = Placed(stored.astype(dtype.name), order)
        least = {"d": 512, "z": 512}
        with (
            deciding_by(tensor_potrf_min_order=least, tensor_potrf_columns=512),
            pyblasgpu.set_math_mode("tensor"),
        ):
            made, info = pyblasgpu.lapack.potrf(
                out.array, lower=int(uplo is Uplo.LOWER), clean=0, overwrite_a=1
            )
        if bad is not None:
            assert int(info) == bad + 1
            continue
        made = made.get()
        assert int(info) == 0 and np.isnan(made[~inside]).all() and out.unharmed()
        factor = np.where(inside, made, 0)
        product = factor @ factor.conj().T if uplo is Uplo.LOWER else factor.conj().T @ factor
        scale = np.sqrt(a.diagonal().real)
        assert (abs(product - a) / (scale * scale[:, None])).max() <= (2 * n + 4) * dtype.unit_roundoff
