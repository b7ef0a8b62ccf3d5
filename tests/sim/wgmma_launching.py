"""Run the kernels of `kernels.gemm.wgmma` on NumPy arrays, at toy sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm.wgmma import guarded, pack_halves, product
from pyblasgpu.kernels.gemm.wgmma.image import LO_SHIFT, STAGE_K, Image
from pyblasgpu.types import Region

from .launching import run, strides

__all__ = ["BLK_K", "BLK_M", "BLK_N", "LEAST", "Packed", "multiply", "multiply_flagged", "pack"]

BLK_M, BLK_N, BLK_K = 64, 16, 64
LEAST = 2.0**-15


class Packed(NamedTuple):
    """A batch of operands, split and packed."""

    image: Image
    halves: np.ndarray
    scales: np.ndarray
    flags: np.ndarray

    def values(self) -> np.ndarray:
        """What it holds, of shape (batch, extent, k) and padded to whole blocks, in float64."""
        image, batch = self.image, len(self.flags)
        shape = batch, image.panels, image.blocks, image.blk_k // STAGE_K, image.blk, 8, 4
        words = self.halves.reshape(shape).copy().view(np.float16).reshape(*shape[:-1], 8)
        rows = np.arange(image.blk)[:, None]
        words = words[..., rows, np.arange(8) ^ rows % 8, :].astype(np.float64)
        pairs = words.reshape(*shape[:-2], 2, STAGE_K)
        scales = self.scales.reshape(batch, image.panels, image.blocks, 1, image.blk, 1)
        values = (pairs[..., 0, :] + pairs[..., 1, :] * 2.0**-LO_SHIFT) * scales
        return values.transpose(0, 1, 4, 2, 3, 5).reshape(batch, image.panels * image.blk, -1)


def pack(x: np.ndarray, blk: int, by_rows: bool, least=LEAST, kernels=pack_halves, threads=32) -> Packed:
    """A batch of operands, extent by k, packed; `by_rows`: neighbours along the extent are neighbours."""
    config = kernels.PackHalves(BLK=blk, BLK_K=BLK_K, threads=max(threads, blk))
    batch, extent, k = x.shape
    image = config.image(extent, k)
    halves = np.full((batch, image.halves), np.nan, np.float32)
    scales = np.full((batch, image.scales), np.nan, np.float32)
    flags = np.full((batch, image.flags), -1, np.int32)
    stride, *steps = strides(x)
    integers = extent, k, options_of(by_rows=by_rows), *steps, stride, *(y.shape[1] for y in (halves, scales))
    arrays = x, halves, scales, flags
    run(kernels.source(config), image.flags, arrays, (*integers, image.flags), (least,), batch)
    return Packed(image, halves, scales, flags)


def multiply(
    a: Packed,
    b: Packed,
    c: np.ndarray,
    alpha=1.0,
    beta=0.0,
    blocks=2,
    kernels=product,
    stages=2,
    cluster=1,
    region=Region.ALL,
):
    """C := alpha A B + beta C by `gemm_wgmma`; C is (batch, n, m), its columns contiguous."""
    config = kernels.GemmWgmma(BLK_M=BLK_M, BLK_N=BLK_N, BLK_K=BLK_K, stages=stages, cluster=cluster)
    batch, n, m = c.shape
    steps = tuple(x.image.panels if len(x.flags) > 1 else 0 for x in (a, b))
    tiles = config.grid(m, n, region) * batch
    integers = m, n, a.image.k, options_of(region), tiles, *steps, strides(c)[1], strides(c)[0]
    arrays = a.halves, b.halves, a.scales, b.scales, a.flags, b.flags, c
    run(kernels.source(config), blocks * cluster, arrays, integers, (alpha, beta))


def multiply_flagged(flags: tuple, a, b, c, alpha=1.0, beta=0.0, kernels=guarded, trans=(False, False)):
    """The tiles of which a flag is set, by `gemm_guarded`; A and B of shape (batch, k, m) and (batch, n, k),
    with `trans` (batch, m, k) and (batch, k, n).
    """
    sizes = {"BLK_M": 32, "BLK_N": 16, "BLK_K": 8, "DIM_X": 8, "DIM_Y": 4, "UNROLL": 8}
    loads = {"DIM_XA": 8, "DIM_YA": 4, "DIM_XB": 8, "DIM_YB": 4, "VEC_A": 1, "PAD_B": 0}
    config = kernels.GemmGuarded(
        dtype="s", trans_a=trans[0], trans_b=trans[1], PANEL_M=BLK_M, PANEL_N=BLK_N, **sizes, **loads
    )
    batch, n, m = c.shape
    k = a.shape[2 if trans[0] else 1]
    leads = tuple(strides(x)[1] for x in (a, b, c))
    steps = tuple(strides(x)[0] for x in (a, b, c))
    panels = tuple(x.shape[1] for x in flags)
    integers = m, n, k, 0, -(-k // BLK_K), *panels, *leads, *steps
    run(kernels.source(config), config.grid(m, n), (*flags, a, b, c), integers, (alpha, beta), batch)
