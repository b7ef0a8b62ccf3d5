"""Run the kernels of `kernels.gemm.int8` on NumPy arrays, at toy sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm.int8 import combine_residues, pack_residues, product, row_scales
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.kernels.gemm.int8.image import FACTS, Image, parts_of
from pyblasgpu.kernels.gemm.int8.moduli import MODULI
from pyblasgpu.types import DTYPES, dtype_of

from .launching import once_for_equal_arguments, run, strides

__all__ = ["PANEL", "Packed", "Products", "combine", "config_of", "facts_of", "multiply", "pack"]

PANEL = 64


class Packed(NamedTuple):
    """An operand of these extents: facts of its rows, and images, of residues and of digits."""

    image: Image
    moduli: int
    dtype: str
    facts: np.ndarray
    images: np.ndarray

    def values(self, digits: bool = False) -> np.ndarray:
        """The bytes of residues, or of digits, of shape (images, rows, k), of whole panels and stages."""
        of_residues = self.moduli * parts_of(DTYPES[self.dtype])
        image, first = self.image, self.image.words * of_residues
        chosen = self.images[first:] if digits else self.images[:first]
        count = 1 if digits else of_residues
        chunks = chosen.view(np.int8).reshape(count, image.panels, -1, image.blk, 8, 16)
        rows = np.arange(image.blk)[:, None]
        chunks = chunks[..., rows, np.arange(8) ^ rows % 8, :]
        return chunks.transpose(0, 1, 3, 2, 4, 5).reshape(len(chunks), image.rows, -1)


class Products(NamedTuple):
    """What `gemm_int8` has found: flags of tiles, and residues."""

    config: GemmInt8
    flags: np.ndarray
    residues: np.ndarray

    def values(self, m: int, n: int) -> np.ndarray:
        """Residues of shape (images, m, n)."""
        config = self.config
        count, across = config.warpgroups * 128, -(-n // config.BLK_N)
        shape = config.images, -1, across, config.vectors, count // 32, 8, 4, 4, 2, 2
        # image, tiles down and across, vector, warp, lane's row and column, four of: columns, row, column
        whole = self.residues.view(np.uint8).reshape(shape).transpose(0, 1, 4, 8, 5, 2, 3, 7, 6, 9)
        return whole.reshape(config.images, -1, across * config.BLK_N)[:, :m, :n]


def _integers(a: np.ndarray, b: np.ndarray, of_a: int, conj=False, places=()) -> tuple[int, ...]:
    steps = [strides(x) for x in (a, b)]
    options = [options_of(by_rows=abs(row) < abs(along_k), conj=conj) for row, along_k in steps]
    return len(a), len(b), a.shape[1], *options, of_a, *places, *steps[0], *steps[1]


@once_for_equal_arguments
def facts_of(
    *operands: np.ndarray, moduli: int = 13, panel=PANEL, verdicts=(), kernels=row_scales
) -> list[np.ndarray]:
    """What `row_scales` finds of A and B, extent by k, or of B alone, after `verdicts`."""
    rows = [Image(panel, *x.shape).rows for x in operands]
    config = kernels.RowScales(dtype_of(operands[0].dtype).letter, moduli=moduli, threads=64)
    facts = [np.full((FACTS, count), np.nan) for count in rows]
    of_a = rows[0] if len(rows) == 2 else 0
    arrays = operands[0], operands[-1], facts[0], facts[-1], np.array([*verdicts, 0], np.int32)
    integers = _integers(operands[0], operands[-1], of_a, places=(len(verdicts),))
    run(kernels.source(config), config.grid(sum(rows)), arrays, integers, ())
    return facts


@once_for_equal_arguments
def pack(
    *operands: np.ndarray, moduli=13, facts=None, sample=1, panel=PANEL, conj=False, kernels=pack_residues
):
    """A and B, extent by k, or B alone, packed; with `conj` conjugated."""
    facts = facts_of(*operands, moduli=moduli, panel=panel) if facts is None else facts
    dtype = dtype_of(operands[0].dtype).letter
    config = kernels.PackResidues(dtype, moduli=moduli, BLK=panel, rows=8, sample=sample)
    images = [config.image(*x.shape) for x in operands]
    made = [np.full(image.all_words(config.images, sample), -1, np.int32) for image in images]
    units = [config.grid(image) for image in images]
    arrays = operands[0], operands[-1], facts[0], facts[-1], made[0], made[-1]
    places = images[0].rows, images[-1].rows, images[0].stages, 0, 0
    integers = _integers(operands[0], operands[-1], units[0] if len(units) == 2 else 0, conj, places)
    run(kernels.source(config), sum(units), arrays, integers, ())
    return [Packed(image, moduli, dtype, *parts) for image, *parts in zip(images, facts, made, strict=True)]


def pack_part(packed: Packed, x: np.ndarray, begin: int, first: int, kernels=pack_residues) -> None:
    """Pack rows from `begin` on, of stages from `first` on, of what is `packed`, whose facts are there."""
    image, facts, config = packed.image, packed.facts.ravel()[begin:], kernels.PackResidues
    config = config(packed.dtype, moduli=packed.moduli, BLK=image.blk, rows=8, sample=1)
    arrays = x, x, facts, facts, packed.images, packed.images
    integers = _integers(x, x, 0, places=(image.rows, image.rows, image.stages, begin, first))
    run(kernels.source(config), config.grid(config.image(*x.shape)), arrays, integers, ())


def config_of(moduli: int, kernels=product, **fields) -> GemmInt8:
    sizes = {"BLK_M": 64, "BLK_N": 32, "PANEL": PANEL, "stages": 2, "cluster": 2, "sample": 1, **fields}
    return kernels.GemmInt8(moduli=moduli, **sizes)


def multiply(
    a: Packed, b: Packed, flags=None, clusters=1, kernels=product, begin=0, k=None, verdicts=(), **fields
) -> Products:
    """Residues of A B by `gemm_int8`; where no flags are given, only those that digits tell. Of A the rows
    from `begin` on, of both the first k.
    """
    moduli, m, n = a.moduli, a.image.extent - begin, b.image.extent
    config = config_of(moduli, kernels, dtype=a.dtype, **fields)
    tiles = config.tiles(m, n)
    first, images = (config.images, 1) if flags is None else (0, config.images)
    flags = np.full((tiles, config.flags_of_tile), -1, np.int32) if flags is None else flags
    residues = np.full((config.images, tiles, config.words_of_tile), -1, np.int32)
    arrays = a.images, b.images, a.facts.ravel()[begin:], b.facts, flags, residues
    arrays = *arrays, np.array([*verdicts, 0], np.int32)
    rows, stages = (a.image.rows, b.image.rows), a.image.stages
    places = tiles, begin, 0, *rows, stages, len(verdicts)
    integers = m, n, k or a.image.k, 0, config.grid(m, n), first, images, *places
    run(kernels.source(config), clusters * config.cluster, arrays, integers, ())
    return Products(config, flags, residues)


def combine(of_a, of_b, products: Products, c, alpha=1.0, beta=0.0, kernels=combine_residues) -> None:
    """C := alpha A B + beta C by `combine_residues`, from facts of A and of B; C is (n, m), its columns
    contiguous.
    """
    config = kernels.CombineResidues(products.config.dtype).specialize(products.config)
    n, m = c.shape
    arrays = products.residues, of_a, of_b, products.flags, c
    integers = m, n, 0, of_a.shape[1], of_b.shape[1], strides(c)[0]
    run(kernels.source(config), config.grid(m, n), arrays, integers, (alpha, beta))


def residues_of(values: np.ndarray, moduli: int) -> np.ndarray:
    """Residues of exact integers, by modulus."""
    return np.stack([values % p for p in MODULI[:moduli]])
