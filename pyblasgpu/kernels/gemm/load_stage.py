"""How the stripes of a stage come from memory: by vectors or by elements, masked at edges or not."""

from __future__ import annotations

from ...gpu.backend import device_function, ptx
from ..common.smem_tile import loaders
from .config import GemmConfig

__all__ = ["load_stage"]


def load_stage(config: GemmConfig, load_a, load_b):
    """``start(...)``: begin to bring the next stripes; nothing comes where `depth` is used up.

    Asynchronous copies are of vectors where the stripes of both operands are aligned for them, else of
    elements: the same kernel serves all alignments.
    """
    STAGES, either, is_wide = config.stages, config.serves_any_alignment, _is_wide(config)
    start_wide, start_narrow = _loads(config, load_a, load_b), device_function(_nothing)
    if either:
        narrow = config.scalar_variant
        loads = (loaders(stripe, STAGES, True) for stripe in (narrow.stripe_a, narrow.stripe_b))
        start_narrow = _loads(narrow, *loads)
    commit = ptx.commit_async

    @device_function
    def start(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth):
        if either and not is_wide(a, b, lda, ldb):
            start_narrow(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth)
        else:
            start_wide(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth)
        if STAGES > 1:
            commit()

    return start


def _nothing(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth):
    pass


def _is_wide(config: GemmConfig):
    """``is_wide(a, b, lda, ldb)``: whether stripes that begin there had better come by vectors."""
    PARTS, (WIDTH_A, WIDTH_B) = config.dtype_facts.reals_per_element, config.alignment
    aligned_a, aligned_b = ptx.is_aligned(WIDTH_A * PARTS), ptx.is_aligned(WIDTH_B * PARTS)

    @device_function
    def is_wide(a, b, lda, ldb):
        return aligned_a(a) and aligned_b(b) and lda % WIDTH_A == 0 and ldb % WIDTH_B == 0

    return is_wide


def _loads(config: GemmConfig, load_a, load_b):
    """``start(...)``: loads of both stripes, masked at edges."""
    BLK_M, BLK_N, BLK_K, B_STRIPE = config.BLK_M, config.BLK_N, config.BLK_K, config.place_b
    start_a, start_a_edge = load_a.start, load_a.start_edge
    start_b, start_b_edge = load_b.start, load_b.start_edge
    offset = ptx.offset
    if config.packed:  # the last stripes and tiles are whole, too
        BLK_M = BLK_N = BLK_K = 1

    @device_function
    def start(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth):
        if rows >= BLK_M and cols >= BLK_N and depth >= BLK_K:
            start_a(shared, staged_a, a, lda, t, rows, depth)
            start_b(offset(shared, B_STRIPE), staged_b, b, ldb, t, cols, depth)
        elif depth > 0:
            start_a_edge(shared, staged_a, a, lda, t, rows, depth)
            start_b_edge(offset(shared, B_STRIPE), staged_b, b, ldb, t, cols, depth)

    return start
