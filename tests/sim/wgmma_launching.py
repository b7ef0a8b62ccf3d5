"""Run the kernels of `kernels.gemm.wgmma` on NumPy arrays, at toy sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyblasgpu.kernels.common.options import options_of, options_of_factor
from pyblasgpu.kernels.gemm.wgmma import equilibrate, guarded, pack_halves, product
from pyblasgpu.kernels.gemm.wgmma.image import LO_SHIFT, STAGE_K, Image
from pyblasgpu.types import Region

from .launching import once_for_equal_arguments, run, strides

__all__ = ["BLK_K", "LEAST", "PANEL", "Packed", "multiply", "multiply_flagged", "pack", "powers_of"]

PANEL, BLK_N, BLK_K = 64, 16, 64
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


@once_for_equal_arguments
def powers_of(a, b, kernels=equilibrate) -> np.ndarray:
    """What `equilibrate` finds for two matrices, extent by k: two rows of powers."""
    config = kernels.Equilibrate(dtype="c" if np.iscomplexobj(a) else "s")
    powers = np.full(2 * a.shape[1] + 1, np.nan, np.float32)
    integers = a.shape[0], b.shape[0], a.shape[1], *strides(a), *strides(b)
    run(kernels.source(config), config.grid(a.shape[1]), (a, b, powers[None]), integers, ())
    assert powers[-1] == 0
    return powers[:-1].reshape(2, -1)


@once_for_equal_arguments
def pack(
    a,
    b,
    least=LEAST,
    kernels=pack_halves,
    blk_k=BLK_K,
    panel=PANEL,
    conjs=(False, False),
    powers=None,
    region=Region.ALL,
):
    """Batches of two operands, extent by k, packed by one launch into one image; complex ones as real, of
    the first one a `region`.
    """
    letter, reals = ("c", 2) if np.iscomplexobj(a) else ("s", 1)
    config = kernels.PackHalves(dtype=letter, BLK=panel, BLK_K=blk_k, threads=panel)
    extents, k = (reals * a.shape[1], b.shape[1]), reals * a.shape[2]
    images = [config.image(extent, k) for extent in extents]
    units = [image.flags * len(x) for image, x in zip(images, (a, b), strict=True)]
    halves, scales = (
        np.full((1, sum(units) * count), np.nan, np.float32) for count in (config.rows * blk_k, config.rows)
    )
    flags = np.full((1, sum(units)), -1, np.int32)
    steps = [(*strides(x)[1:], strides(x)[0]) for x in (a, b)]
    options = [
        options_of(by_rows=abs(step[0]) < abs(step[1]), conj=conj)
        for step, conj in zip(steps, conjs, strict=True)
    ]
    options[0] |= options_of(region)
    integers = *extents, k, *options, units[0], 0 if powers is None else a.shape[2], *steps[0], *steps[1]
    needed = np.zeros((1, 1), np.int32)
    arrays = a, b, scales if powers is None else powers, halves, scales, flags, needed
    run(kernels.source(config), sum(units), arrays, integers, (least,))
    packed = []
    for image, of_one in zip(images, (slice(units[0]), slice(units[0], None)), strict=True):
        parts = (
            y.reshape(sum(units), -1)[of_one].reshape(-1, size).copy()
            for y, size in ((halves, image.halves), (scales, image.scales), (flags, image.flags))
        )
        packed.append(Packed(image, *parts))
    return packed


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
    ordered=False,
    region=Region.ALL,
    triangle=None,
):
    """C := alpha A B + beta C by `gemm_wgmma`; C is (batch, n, m), its columns contiguous, A a `triangle`."""
    config = kernels.GemmWgmma(
        BLK_M=a.image.blk,
        BLK_N=BLK_N,
        BLK_K=a.image.blk_k,
        PANEL=a.image.blk,
        stages=stages,
        cluster=cluster,
        ordered=ordered,
    )
    batch, n, m = c.shape
    steps = tuple(x.image.panels if len(x.flags) > 1 else 0 for x in (a, b))
    tiles = config.grid(m, n, region) * batch
    options = options_of(region) | options_of_factor(triangle)
    integers = m, n, a.image.k, options, tiles, *steps, strides(c)[1], strides(c)[0]
    arrays = a.halves, b.halves, a.scales, b.scales, a.flags, b.flags, c
    run(kernels.source(config), blocks * cluster, arrays, integers, (alpha, beta))


def multiply_flagged(
    flags: tuple,
    a,
    b,
    c,
    alpha=1.0,
    beta=0.0,
    kernels=guarded,
    trans=(False, False),
    triangle=None,
    others=(),
):
    """The tiles of which a flag is set, and one of the `others`, by `gemm_guarded`; A and B of shape (batch,
    k, m) and (batch, n, k), with `trans` (batch, m, k) and (batch, k, n).
    """
    sizes = {"BLK_M": 32, "BLK_N": 16, "BLK_K": 8, "DIM_X": 8, "DIM_Y": 4, "UNROLL": 8}
    loads = {"DIM_XA": 8, "DIM_YA": 4, "DIM_XB": 8, "DIM_YB": 4, "VEC_A": 1, "PAD_B": 0}
    config = kernels.GemmGuarded(dtype="s", trans_a=trans[0], trans_b=trans[1], PANEL=PANEL, **sizes, **loads)
    batch, n, m = c.shape
    k = a.shape[2 if trans[0] else 1]
    leads = tuple(strides(x)[1] for x in (a, b, c))
    steps = tuple(strides(x)[0] for x in (a, b, c))
    panels = tuple(x.shape[1] for x in flags)
    count = flags[0].shape[1] // -(-m // PANEL)
    per_grain, further = Image(PANEL, BLK_K, m, k).flags_of_grain, count if others else 0
    steps_of_flags = panels + panels
    integers = (
        m,
        n,
        k,
        options_of_factor(triangle),
        count,
        per_grain,
        further,
        *steps_of_flags,
        *leads,
        *steps,
    )
    arrays = *flags, *(others or flags), a, b, c
    run(kernels.source(config), config.grid(m, n), arrays, integers, (alpha, beta), batch)
