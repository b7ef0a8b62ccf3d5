"""Products of three BF16 numbers an element, on the simulator, by themselves and where pairs of FP16 fail."""

from __future__ import annotations

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch import tensor
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm.wgmma import guarded, pack_triples, triples
from pyblasgpu.kernels.gemm.wgmma.image import Image
from pyblasgpu.testing.error_bounds import gemm_error

from .launching import once_for_equal_arguments, run, strides
from .test_gemm_tensor import backend, complexes, families, fresh, normal, small_kernels  # noqa: F401
from .wgmma_launching import multiply_flagged

PANEL, BLK_N, BLK_K = 64, 16, 128
M, N, K = 70, 18, 200
KERNELS = {"equilibrate", "pack_halves", "gemm_wgmma", "pack_triples", "gemm_triples", "gemm_guarded"}


def wide(*shape: int, seed: int = 1) -> np.ndarray:
    return (normal(*shape, seed=seed) * np.exp(4 * normal(*shape, seed=seed + 5))).astype(np.float32)


@once_for_equal_arguments
def packed(a: np.ndarray, b: np.ndarray, needed=1, blk_k=BLK_K, kernels=pack_triples):
    """The image of two matrices, extent by k, and their flags."""
    config = kernels.PackTriples(BLK=PANEL, BLK_K=blk_k, threads=PANEL)
    images = [Image(PANEL, blk_k, len(x), x.shape[1], triples.PARTS) for x in (a, b)]
    units = [image.flags for image in images]
    made = np.full((1, sum(image.halves for image in images)), np.nan, np.float32)
    flags = np.full((1, sum(units)), -1, np.int32)
    options = [options_of(by_rows=abs(strides(x)[0]) < abs(strides(x)[1])) for x in (a, b)]
    steps = [(*strides(x), 0) for x in (a, b)]
    integers = len(a), len(b), a.shape[1], *options, units[0], sum(units), *steps[0], *steps[1]
    arrays = a, b, made, flags, np.full((1, 1), needed, np.int32)
    run(kernels.source(config), 3, arrays, integers, ())
    parts = np.split(made, [images[0].halves], axis=1), np.split(flags, [units[0]], axis=1)
    return [[np.ascontiguousarray(x) for x in part] for part in parts]


def check(
    cluster=1, kernels=triples, packs=None, spoil=lambda a, b: None, needed=1, pairs=1, blk_k=BLK_K, n=N
) -> None:
    """What triples hold is within FP32's bound, tiles of a flag or without one of pairs are left alone."""
    a, b = wide(M, K), np.asfortranarray(wide(n, K, seed=2))
    spoil(a, b)
    (image_a, image_b), (flags_a, flags_b) = packed(a, b, needed, blk_k, kernels=packs)
    config = kernels.GemmTriples(BLK_M=64, BLK_N=BLK_N, BLK_K=blk_k, PANEL=PANEL, stages=2, cluster=cluster)
    c = np.full((n, M), 77, np.float32)
    of_pairs = [np.full((1, panels * 3), pairs, np.int32) for panels in (2, 1)]
    integers = M, n, K, options_of(), config.grid(M, n), 3, 0, 0, strides(c)[0], 0
    arrays = image_a, image_b, *of_pairs, flags_a, flags_b, np.full((1, 1), needed, np.int32), c
    run(kernels.source(config), 2 * cluster, arrays, integers, (1.0, 0.0))
    left = np.broadcast_to(~np.isfinite(a).all(axis=1)[:, None], (M, n)).copy()
    left[:64] |= left[:64].any()
    left[64:] |= left[64:].any()
    left |= ~np.isfinite(b).all() | (needed == 0) | (pairs == 0)
    assert (c.T[left] == 77).all()
    exact, sizes = a.astype(float) @ b.T.astype(float), abs(a.astype(float)) @ abs(b.T.astype(float))
    assert (abs(c.T - exact) <= 32 * 2.0**-24 * sizes)[~left].all()


def test_wide_data():
    check()


def check_infinite(cluster=1, packs=None, n=N) -> None:
    check(cluster, packs=packs, n=n, spoil=lambda a, b: a.__setitem__((66, 3), np.inf))


def test_what_triples_cannot_hold():
    check_infinite(2)


@pytest.mark.parametrize(("needed", "pairs"), [(0, 1), (1, 0)])
def test_tiles_of_pairs_are_left(needed, pairs):
    check(needed=needed, pairs=pairs)


def check_further(kernels=guarded) -> None:
    """`gemm_guarded` leaves a tile without a further flag."""
    a, b = normal(1, 8, M), normal(1, N, 8, seed=2)
    c = np.full((1, N, M), 77, np.float32)
    flags = np.ones((1, 2), np.int32), np.ones((1, 1), np.int32)
    others = np.array([[0, 1]], np.int32), np.zeros((1, 1), np.int32)
    multiply_flagged(flags, a, b, c, kernels=kernels, others=others)
    np.testing.assert_allclose(c[0, :, 64:], (b[0].astype(float) @ a[0])[:, 64:], 1e-4, 1e-5)
    assert (c[0, :, :64] == 77).all()


def test_what_triples_serve_is_left():
    check_further()


@pytest.mark.slow
@pytest.mark.parametrize(("make", "m", "k"), [(wide, M, K), (complexes, 35, 100)])
def test_products(make, m, k, decide_by, monkeypatch):
    """End to end, one row that pairs do not hold, and one that triples do not hold."""
    decide_by(fp16_min_equilibrated_work=0)
    monkeypatch.setattr(tensor, "MIN_TRIPLES_K", 0)
    a, b, last = make(m, k), make(k, N, seed=2), m - 1
    a[3, 5] *= np.float32(2.0**-45)
    a[last, 7] = np.inf
    tile = triples.GemmTriples(BLK_M=64, BLK_N=16, BLK_K=128, PANEL=64, stages=2)
    with small_kernels(), override("gemm_triples", tile):
        result = pyblasgpu.gemm(a, b, method="tensor")
    assert families() == KERNELS
    assert not np.isfinite(result[last]).any()
    assert gemm_error(1, a[:last], b, 0, None, result[:last]) <= 1
