"""How the stripes of a stage come from memory: masked at edges or not."""

from __future__ import annotations

from ...gpu.backend import device_function, ptx
from .config import GemmConfig

__all__ = ["load_stage"]


def load_stage(config: GemmConfig, load_a, load_b):
    """``start(...)``: begin to bring the next stripes; nothing comes where `depth` is used up."""
    BLK_M, BLK_N, BLK_K, STAGES = config.BLK_M, config.BLK_N, config.BLK_K, config.stages
    B_STRIPE = config.place_b
    start_a, start_a_edge = load_a.start, load_a.start_edge
    start_b, start_b_edge = load_b.start, load_b.start_edge
    commit, offset = ptx.commit_async, ptx.offset
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
        if STAGES > 1:
            commit()

    return start
