"""TRMM as one product on tensor cores, end to end on the simulator, with toy tiles."""

from __future__ import annotations

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.wgmma import guarded, pack_halves, product
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.types import Region, Triangle, Uplo

from .test_gemm_tensor import backend, families, fresh, normal, small_kernels  # noqa: F401
from .wgmma_launching import multiply, multiply_flagged, pack

#: More than a square of `GRAIN`, and a part of the next.
N, RHS = 264, 9
KERNELS = {"pack_halves", "gemm_wgmma", "gemm_guarded", "copy_scaled"}
#: A triangle on the left and on the right of column-major matrices; k end at the diagonal or begin there.
CASES = [("L", True, "F", False), ("L", False, "F", True), ("R", True, "F", False), ("L", True, "C", True)]


@pytest.fixture(autouse=True)
def small_triangles(decide_by):
    order, rhs, elements = {"s": N}, {"s": RHS}, {"s": 0}
    decide_by(tensor_trmm_min_order=order, tensor_trmm_min_rhs=rhs, tensor_trmm_min_elements=elements)


def triangle_of(lower: bool, unit: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """T with NaN where it is not read, and what it means."""
    t = normal(N, N)
    meant = (np.tril if lower else np.triu)(t, -unit if lower else unit).astype(float)
    stored = np.where(meant != 0, t, np.float32(np.nan))
    return stored, meant + (np.eye(N) if unit else 0)


def check(side: str, lower: bool, order: str, unit: bool, spoil, alpha=-1.5) -> None:
    """The result is within FP32's bound where it is finite, and not finite where FMAs make it so."""
    stored, meant = triangle_of(lower, unit)
    b = normal(N, RHS, seed=2) if side == "L" else normal(RHS, N, seed=2)
    spoil(meant, b)
    stored = np.where(np.isnan(stored), stored, meant.astype(np.float32))
    out = np.array(b, order=order)
    of_columns = (side == "L") != (order == "F")  # these have many narrow tiles
    tile = GemmWgmma(BLK_M=64, BLK_N=64 if of_columns else 16, PANEL=64, stages=2)
    with small_kernels(), override("gemm_wgmma", tile):
        flags = {"side": side, "lower": lower, "unit_diag": unit}
        pyblasgpu.trmm(stored, out, **flags, out=out, alpha=alpha, method="tensor")
    assert families() == KERNELS
    spoilt = ~np.isfinite(b)
    depends = (meant != 0) @ spoilt if side == "L" else spoilt @ (meant != 0)
    assert (np.isfinite(out) == (depends == 0)).all()
    wide = np.where(spoilt, 0, b.astype(float))
    left, right = (meant, wide) if side == "L" else (wide, meant)
    bound = (N + 2) * 2.0**-24 * abs(alpha) * (abs(left) @ abs(right))
    assert (abs(out - alpha * (left @ right)) <= bound)[depends == 0].all()


@pytest.mark.parametrize(("side", "lower", "order", "unit"), CASES)
def test_triangles(side, lower, order, unit):
    """Some tiles of pairs, some that they cannot hold: Inf reaches what depends on it, and nothing else."""

    def spoil(t, b):
        along = 260 if lower == (side == "L") else 5  # of the one square, and not of the other
        b[(along, 5) if side == "L" else (5, along)] = np.inf
        t[(along, along - 1) if lower else (along - 1, along)] *= 2.0**-60

    check(side, lower, order, unit, spoil)


def of_lower_or_upper(triangle: Triangle) -> tuple[np.ndarray, ...]:
    """T, what is on its right, an empty C, and what is to be computed, with its bound."""
    stored, meant = triangle_of(triangle.uplo is Uplo.LOWER)
    b = normal(8, N, seed=2)
    bound = (N + 2) * 2.0**-24 * (abs(meant) @ abs(b.T))
    return stored, b, np.full((1, 8, N), np.nan, np.float32), meant @ b.T.astype(float), bound


def check_by_triangle(triangle=Triangle.LOWER_LEFT, kernels=product, packs=pack_halves) -> None:
    """All tiles by pairs are those of the triangle alone."""
    stored, b, c, exact, bound = of_lower_or_upper(triangle)
    left, right = pack(stored[None], b[None], kernels=packs, region=Region.of(triangle.uplo))
    multiply(left, right, c, blocks=3, kernels=kernels, triangle=triangle)
    assert (abs(c[0].T - exact) <= bound).all()


def check_guarded_by_triangle(kernels=guarded) -> None:
    """All tiles by FMAs are those of the triangle alone."""
    triangle = Triangle.LOWER_LEFT
    stored, b, c, exact, bound = of_lower_or_upper(triangle)
    flags = np.ones((1, 25), np.int32), np.ones((1, 5), np.int32)
    columns = np.ascontiguousarray(stored.T)[None]
    multiply_flagged(flags, columns, b[None], c, kernels=kernels, triangle=triangle)
    assert (abs(c[0].T - exact) <= bound).all()
