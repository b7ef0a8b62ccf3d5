"""Loads of a stage's k-tiles: by vectors or by single elements, masked at edges or not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from ...gpu.backend import device_function, ptx
from .config import GemmConfig

__all__ = ["load_stage"]


def load_stage(config: GemmConfig, load_a: SimpleNamespace, load_b: SimpleNamespace) -> SimpleNamespace:
    """``start(vectors, ...)``: begin to load the next k-tiles, by `vectors` or by single elements; nothing is
    loaded where `depth` is used up. ``is_aligned(a, b, lda, ldb)`` says whether vectors may load all k-tiles
    of two matrices.

    A kernel checks once, and has a loop for each way, with `vectors` a constant: where the compiler keeps
    registers for both ways, it orders the loop worse. `ONE_WAY`: there is one alone.
    """
    ONE_WAY = (load_a.ONE_WAY and load_b.ONE_WAY) or config.needs_alignment
    a_is_aligned, b_is_aligned = load_a.is_aligned, load_b.is_aligned
    by_vectors = _starter(config, load_a.vectors, load_a.vectors_edge, load_b.vectors, load_b.vectors_edge)
    by_elements = _starter(
        config, load_a.elements, load_a.elements_edge, load_b.elements, load_b.elements_edge
    )

    @device_function
    def is_aligned(a, b, lda, ldb):
        return a_is_aligned(a, lda) & b_is_aligned(b, ldb)

    @device_function
    def start(vectors, shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth):
        if ONE_WAY or vectors:
            by_vectors(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth)
        else:
            by_elements(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth)

    return SimpleNamespace(start=start, is_aligned=is_aligned, ONE_WAY=ONE_WAY)


def _starter(config: GemmConfig, start_a: Callable, edge_a: Callable, start_b: Callable, edge_b: Callable):
    """``start(...)`` by these copies of whole k-tiles and of k-tiles at an edge."""
    BLK_M, BLK_N, BLK_K, STAGES = config.BLK_M, config.BLK_N, config.BLK_K, config.stages
    B_TILE, commit, offset = config.offset_b, ptx.commit_async, ptx.offset
    if config.packed:  # the last k-tiles and tiles are whole, too
        BLK_M = BLK_N = BLK_K = 1

    @device_function
    def start(shared, staged_a, staged_b, a, b, lda, ldb, t, rows, cols, depth):
        if rows >= BLK_M and cols >= BLK_N and depth >= BLK_K:
            start_a(shared, staged_a, a, lda, t, rows, depth)
            start_b(offset(shared, B_TILE), staged_b, b, ldb, t, cols, depth)
        elif depth > 0:
            edge_a(shared, staged_a, a, lda, t, rows, depth)
            edge_b(offset(shared, B_TILE), staged_b, b, ldb, t, cols, depth)
        if STAGES > 1:
            commit()

    return start
