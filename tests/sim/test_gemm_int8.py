"""``gemm(..., method="tensor")`` of float64 end to end on the simulator, with toy tiles."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.kernels.gemm.int8.guarded import GemmInt8Guarded
from pyblasgpu.kernels.gemm.int8.pack_residues import PackResidues
from pyblasgpu.kernels.gemm.int8.row_scales import RowScales
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.error_bounds import gemm_error

M, N, K = 67, 35, 150
SMALL = GemmInt8(BLK_M=64, BLK_N=32, PANEL=64, stages=2, cluster=2)
KERNELS = {"row_scales", "pack_residues", "gemm_int8", "combine_residues", "gemm_int8_guarded"}


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


@contextmanager
def small_kernels(config: GemmInt8 = SMALL):
    """Toy tiles of all kernels."""
    tile = {"BLK_M": 32, "BLK_N": 16, "BLK_K": 8, "WARP_M": 32, "WARP_N": 16, "VEC_A": 1, "VEC_B": 1}
    loads = {"DIM_XA": 32, "DIM_YA": 1, "DIM_XB": 8, "DIM_YB": 4}
    with ExitStack() as stack:
        stack.enter_context(override("gemm_int8", config))
        stack.enter_context(override("pack_residues", PackResidues(rows=8)))
        stack.enter_context(override("row_scales", RowScales(threads=64)))
        for trans in product((False, True), (False, True)):
            guarded = GemmInt8Guarded(dtype="d", **tile, **loads).serving(*trans)
            stack.enter_context(override("gemm_int8_guarded", guarded))
        yield


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(launch_list, "cache", {})


def families() -> set[str]:
    """Of what the last call has launched."""
    (launches,) = launch_list.cache.values()
    return {entry.source.name for entry in launches.entries}


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def multiply(a, b, config=SMALL, **options):
    with small_kernels(config):
        return pyblasgpu.gemm(a, b, method="tensor", **options)


@pytest.mark.parametrize(
    ("trans_a", "trans_b", "order", "beta"),
    [("N", "N", "C", 0), ("N", "T", "F", -0.5), ("T", "N", "F", 0), ("C", "T", "C", 2)],
)
def test_every_layout(trans_a, trans_b, order, beta):
    a, b = normal(M, K), normal(K, N, seed=2)
    left, right = a if trans_a == "N" else a.T.copy(), b if trans_b == "N" else b.T.copy()
    out = np.asarray(normal(M, N, seed=3), order=order)
    before = out.copy()
    options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": 1.5, "beta": beta}
    assert multiply(left, right, out=out, **options) is out and families() == KERNELS
    assert gemm_error(1.5, a, b, beta, before, out) <= 1
