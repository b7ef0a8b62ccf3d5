"""The kernels of products by residues computed with NumPy, for the stand-ins of kernels.

Instead of its residues an integer is kept, a float64 a part in the place of its image: row after row, k by k.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from region_mask import mask

from pyblasgpu.kernels.common.options import BY_ROWS, CONJUGATE
from pyblasgpu.kernels.gemm.int8.image import FACTS, INVERSE, SCALE, STAGE_K
from pyblasgpu.kernels.gemm.int8.pivot_scales import ALLOWED, MOST, SQUARES
from pyblasgpu.kernels.gemm.int8.row_scales import ROWS


def _memory(pointer: int, *shape: int, dtype: Any = np.float64) -> np.ndarray:
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(pointer)).view(dtype).reshape(shape)


def pivot_scales(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Scales from the diagonal, or squares that are added up."""
    m, n, rows, *steps = numbers
    assert grid == (fake.source.config.grid(m), 1, 1)
    facts = _memory(pointers[1], FACTS * rows)  # from the first row that is meant on
    if n == 0:
        pivots = fake.view(pointers[0], m, 1, *steps, 1, 0)[0, :, 0].real
        # the largest power of two with which no element of the row has too many bits
        shift = fake.source.config.bits - np.ceil(np.log2(pivots * (1 + 2.0**-20)) / 2)
        facts[SCALE * rows :][:m], facts[INVERSE * rows :][:m] = 2.0**shift, 2.0**-shift
        facts[SQUARES * rows :][:m], facts[MOST * rows :][:m] = 0, pivots * ALLOWED
        return
    block = fake.view(pointers[0], m, n, *steps, 1, 0)[0]
    facts[SQUARES * rows :][:m] += (abs(block) ** 2).sum(axis=1)
    left = facts[SQUARES * rows :][:m] > facts[MOST * rows :][:m]
    facts[INVERSE * rows :][:m][left] = np.nan


FLAG = 0  # of all tiles, by products of digits


def row_scales(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Scales of one operand, by its largest elements."""
    _, extent, k, _, options, rows_a, judges, _, _, *steps = numbers
    rows = grid[0] * ROWS
    assert rows_a == 0 and not judges and bool(options & BY_ROWS) == (abs(steps[0]) < abs(steps[1]))
    source = fake.view(pointers[1], extent, k, *steps, 1, 0)[0]
    largest = np.maximum(abs(source.real), abs(source.imag)).max(axis=1)
    shift = 50 - np.ceil(np.log2(largest))
    facts = _memory(pointers[3], FACTS * rows)
    facts[SCALE * rows :][:extent], facts[INVERSE * rows :][:extent] = 2.0**shift, 2.0**-shift


def _image(fake: Any, pointer: int, rows: int, stages: int) -> np.ndarray:
    return _memory(pointer, rows, stages * STAGE_K, dtype=fake.dtype.name)


def pack_residues(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """Integers of one operand."""
    _, extent, k, _, options, units_a, _, rows, stages, begin, first, _, _, *steps = numbers
    config = fake.source.config
    assert units_a == 0 and grid == (config.grid(config.image(extent, k)), 1, 1)
    assert begin % config.BLK == 0 and begin + extent <= rows and first * STAGE_K + k <= stages * STAGE_K
    assert bool(options & BY_ROWS) == (abs(steps[0]) < abs(steps[1]))
    source = fake.view(pointers[1], extent, k, *steps, 1, 0, bool(options & CONJUGATE))[0]
    scale = _memory(pointers[3], FACTS * rows)[SCALE * rows :][:extent, None]
    integers = np.rint(source.real * scale)
    if fake.dtype.is_complex:
        integers = integers + 1j * np.rint(source.imag * scale)
    _image(fake, pointers[5], rows, stages)[begin:][:extent, first * STAGE_K :][:, :k] = integers


def gemm_int8(fake: Any, grid: tuple, pointers: tuple, numbers: tuple) -> None:
    """The product of integers, with the first image; that of digits sets flags."""
    m, n, k, options, tiles, first, images, slots, begin_a, begin_b, rows_a, rows_b, stages, judges = numbers
    config = fake.source.config
    assert first + images <= config.images + 1 and tiles * config.cluster >= slots and not judges
    flags = _memory(pointers[4], slots * config.flags_of_tile, dtype=np.int32)
    if first == config.images:
        flags[:] = FLAG
    elif first == 0 and not flags.any():
        a = _image(fake, pointers[0], rows_a, stages)[begin_a:][:m, :k]
        b = _image(fake, pointers[1], rows_b, stages)[begin_b:][:n, :k]
        _memory(pointers[5], slots * config.words_of_tile * config.images, dtype=np.int32)[:] = 0
        kept = _memory(pointers[5], m, n, dtype=fake.dtype.name)
        kept[...] = np.where(mask(fake._region(options), m, n), a @ b.T, np.nan)


def combine_residues(fake: Any, grid: tuple, pointers: tuple, numbers: tuple, alpha: Any, beta: Any) -> None:
    """C of the products, in its region."""
    m, n, options, rows_a, rows_b, ldc = numbers
    if _memory(pointers[3], 1, dtype=np.int32)[0]:
        return
    c = fake.view(pointers[4], m, n, 1, ldc, 1, 0)[0]
    of_a, of_b = (
        _memory(pointer, FACTS * rows)[INVERSE * rows :][:count]
        for pointer, rows, count in ((pointers[1], rows_a, m), (pointers[2], rows_b, n))
    )
    products = _memory(pointers[0], m, n, dtype=fake.dtype.name)
    meant = mask(fake._region(options), m, n)
    c[meant] = (alpha * products * of_a[:, None] * of_b + beta * c)[meant]


def gemm_int8_guarded(fake: Any, grid: tuple, pointers: tuple, numbers: tuple, alpha: Any, beta: Any) -> None:
    """All of C where its tiles have flags."""
    flags, _, a, b, c, _, _ = pointers
    m, n, k, _, conj, _, _, _, _, _, lda, ldb, ldc = numbers
    config = fake.source.config
    if _memory(flags, 1, dtype=np.int32)[0]:
        left = fake.view(a, m, k, *((lda, 1) if config.trans_a else (1, lda)), 1, 0)[0]
        right = fake.view(b, k, n, *((ldb, 1) if config.trans_b else (1, ldb)), 1, 0, bool(conj))[0]
        target = fake.view(c, m, n, 1, ldc, 1, 0)[0]
        target[...] = alpha * (left @ right) + (beta * target if beta else 0)
