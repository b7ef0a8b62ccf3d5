"""TRMM and TRSM whose products are made on tensor cores, end to end on the simulator, with toy tiles."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override

from .test_gemm_simt import config as simt
from .test_gemm_tensor import backend, families, fresh, normal, small_kernels  # noqa: F401

N, RHS = 150, 9
LEAST = {"order": N, "rhs": RHS, "elements": 0}


@pytest.fixture(autouse=True)
def small_triangles(decide_by):
    """Take the recursion, which ends at 128 rows."""
    for routine, (size, least) in product(("trmm", "trsm"), LEAST.items()):
        decide_by(**{f"tensor_{routine}_min_{size}": {"s": least}})
    decide_by(tensor_stop=128)


@pytest.mark.parametrize(("side", "lower", "order"), [("L", True, "F"), ("L", False, "C"), ("R", False, "F")])
@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_products_are_of_tensor_cores(routine, side, lower, order):
    """Within FP32's bounds; of T the other triangle is never read."""
    t, b = normal(N, N) / 16, normal(N, RHS, seed=2)
    t[np.diag_indices(N)] = 2
    b = b if side == "L" else b.T
    meant = (np.tril if lower else np.triu)(t).astype(float)
    stored = np.where(meant != 0, t, np.float32(np.nan))
    out = np.array(b, order=order)
    tile = simt("s", False, False, stages=2)
    with small_kernels(), override("gemm_simt", tile):
        getattr(pyblasgpu, routine)(stored, out, side=side, lower=lower, out=out, method="tensor")
    assert {"pack_halves", "gemm_wgmma", "gemm_guarded"} <= families()
    made, wide = (out, b) if routine == "trsm" else (b, out)
    product, sizes = (
        (meant @ made, abs(meant) @ abs(made)) if side == "L" else (made @ meant, abs(made) @ abs(meant))
    )
    assert (abs(product - wide) <= (N + 2) * 2.0**-24 * sizes).all()
