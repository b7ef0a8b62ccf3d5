"""``cpu_gemm``: GEMM on one core, blocked for caches and registers (Goto; Matsumoto et al. on processors).

B is packed BLK_K deep and BLK_N wide for the last-level cache, A BLK_M high for the second level; the
innermost loop computes a register tile of THR_M x THR_N from a panel of each. C has contiguous rows, or is
written through a buffer of one register tile.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from . import pack
from .backend import cpu
from .config import CpuGemm

__all__ = ["STEM", "buffer_bytes", "kernel"]

STEM = CpuGemm.STEM
LINE = 64  # bytes of a cache line


def buffer_bytes(config: CpuGemm, m: int, n: int, k: int) -> tuple[int, int, int]:
    """Bytes that a product needs for packed A, packed B and a register tile, in whole cache lines."""
    size, depth = config.dtype_facts.itemsize, min(k, config.BLK_K)
    rows = min(-(-m // config.THR_M) * config.THR_M, config.BLK_M)
    cols = min(-(-n // config.THR_N) * config.THR_N, config.BLK_N)
    return (
        _lines(rows * depth * size),
        _lines(cols * depth * size),
        _lines(config.THR_M * config.THR_N * size),
    )


def _lines(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE


@lru_cache(maxsize=64)
def kernel(config: CpuGemm) -> Any:
    """The compiled kernel of `config`; it runs without the interpreter's lock.

    Its parameters are extents m, n, k; address, row and column stride in elements of A, B, C; whether A, B
    are conjugated; addresses of the three buffers; alpha and beta (real, imaginary part).
    """
    blocks = config.BLK_M, config.BLK_N, config.BLK_K
    return partial(_compiled(replace(config, BLK_M=config.THR_M, BLK_N=config.THR_N, BLK_K=1)), *blocks)


@lru_cache(maxsize=64)
def _compiled(config: CpuGemm) -> Any:
    """The kernel of a register tile, which takes the blocks as arguments."""
    intp, boolean, number = cpu.types.intp, cpu.types.boolean, cpu.REALS[config.dtype_facts.real]
    signature = cpu.types.void(*[intp] * 15, boolean, boolean, *[intp] * 3, *[number] * 4)
    return cpu.njit(signature, nogil=True)(build(config))


def build(config: CpuGemm) -> Any:
    """The kernel's function: all extents of a block are arguments, those of a register tile constants."""
    facts = config.dtype_facts
    SIZE, number, THR_M, THR_N = facts.itemsize, cpu.REALS[facts.real], config.THR_M, config.THR_N
    pack_panels = pack.build(config.dtype)
    multiply_block = _block_multiplier(config)

    def cpu_gemm(
        BLK_M, BLK_N, BLK_K, m, n, k, a, rs_a, cs_a, b, rs_b, cs_b, c, rs_c, cs_c, conj_a, conj_b,
        packed_a, packed_b, tile, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        for jj in range(0, n, BLK_N):
            cols = min(BLK_N, n - jj)
            re, im = beta, beta_i
            for kk in range(0, k, BLK_K):
                depth = min(BLK_K, k - kk)
                part = b + (kk * rs_b + jj * cs_b) * SIZE
                pack_panels(packed_b, part, cs_b, rs_b, cols, depth, THR_N, conj_b)
                for ii in range(0, m, BLK_M):
                    rows = min(BLK_M, m - ii)
                    part = a + (ii * rs_a + kk * cs_a) * SIZE
                    pack_panels(packed_a, part, rs_a, cs_a, rows, depth, THR_M, conj_a)
                    here = c + (ii * rs_c + jj * cs_c) * SIZE
                    multiply_block(
                        rows, cols, depth, packed_a, packed_b, here, rs_c, cs_c, tile, alpha, alpha_i, re, im
                    )
                re, im = number(1), number(0)  # what the first part of k has scaled

    return cpu_gemm


def _block_multiplier(config: CpuGemm) -> Any:
    """``multiply(...)``: C := alpha A B + beta C of a packed block of A, and of B."""
    facts = config.dtype_facts
    REALS, SIZE, number = facts.reals_per_element, facts.itemsize, cpu.REALS[facts.real]
    THR_M, THR_N = config.THR_M, config.THR_N
    multiply = cpu.rank_k_update(facts.real, REALS, config.VEC, config.vectors, THR_N, config.UNROLL)
    write_tile = _tile_writer(config)

    @cpu.njit
    def multiply_block(rows, cols, depth, packed_a, packed_b, c, rs, cs, tile, alpha, alpha_i, beta, beta_i):
        zero = number(0)
        for j in range(0, cols, THR_N):
            for i in range(0, rows, THR_M):
                a, b = packed_a + i * depth * SIZE, packed_b + j * depth * SIZE
                here = c + (i * rs + j * cs) * SIZE
                is_whole = rs == 1 and rows - i >= THR_M and cols - j >= THR_N
                target, step, re, im = here, cs * REALS, beta, beta_i
                if not is_whole:
                    target, step, re, im = tile, THR_M * REALS, zero, zero
                multiply(a, b, depth, target, step, alpha, alpha_i, re, im)
                if not is_whole:
                    write_tile(here, rs, cs, min(THR_M, rows - i), min(THR_N, cols - j), tile, beta, beta_i)

    return multiply_block


def _tile_writer(config: CpuGemm) -> Any:
    """``write(c, rs, cs, rows, cols, tile, beta, beta_i)``: C := tile + beta C, of a part of it."""
    facts = config.dtype_facts
    REALS, THR_M, number = facts.reals_per_element, config.THR_M, cpu.REALS[facts.real]
    load, store = cpu.load(facts.real), cpu.store(facts.real)

    @cpu.njit
    def write(c, rs, cs, rows, cols, tile, beta, beta_i):
        reads = beta != number(0) or beta_i != number(0)
        for j in range(cols):
            for i in range(rows):
                at, source = (i * rs + j * cs) * REALS, (i + j * THR_M) * REALS
                value = load(tile, source)
                if REALS == 1:
                    store(c, at, value + beta * load(c, at) if reads else value)
                    continue
                value_i = load(tile, source + 1)
                if reads:
                    old, old_i = load(c, at), load(c, at + 1)
                    value += beta * old - beta_i * old_i
                    value_i += beta * old_i + beta_i * old
                store(c, at, value)
                store(c, at + 1, value_i)

    return write
