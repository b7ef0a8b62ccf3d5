"""Fused TRMM and TRSM by a GEMM Config, but for their kernels: rules, tiles and shared memory."""

from __future__ import annotations

from types import SimpleNamespace

from ...errors import require
from ...types import Dtype, Triangle
from .config import GemmConfig

__all__ = [
    "FLAG_STRIDE",
    "check",
    "group_of",
    "row_ld",
    "shared_bytes",
    "shared_reals",
    "sharing",
    "solve_layout",
    "tile_counts",
    "tile_orders",
]

FLAG_STRIDE = 128  # bytes between flags, so that polls hit different lines
MAX_SHARING_THREADS = 128  # threads that share: all of them load what they meet of T
MIN_SHARED_PARTS = 32  # parts of the unknowns that threads share
MAX_SIDES_PER_UNKNOWN = (
    2  # times the unknowns, right-hand sides that are shared: more keep the block busy, a thread each
)


def check(config: GemmConfig, triangle: Triangle) -> None:
    """Raise `ConfigError` where no kernel of `config` can multiply in place by `triangle`."""
    order, _ = tile_orders(config, triangle)
    require(
        order % config.BLK_K == 0,
        "k_tiles_tile_diagonal",
        "BLK along T % BLK_K == 0",
        BLK=order,
        BLK_K=config.BLK_K,
    )
    require(
        config.stages > 1 and not config.persistent and not config.packed,
        "in_place",
        "in place only with stages > 1, not persistent, not packed",
        stages=config.stages,
        persistent=config.persistent,
        packed=config.packed,
    )
    require(not getattr(config, "three_m", False), "in_place_four", "in place only without three_m")
    slices = config.SLICES_K
    require(slices == 1, "in_place_whole", "in place only with SLICES_K == 1", SLICES_K=slices)


def tile_orders(config: GemmConfig, triangle: Triangle) -> tuple[int, int]:
    """Extents of a tile of C: along the triangle, and across its strips."""
    return (config.BLK_M, config.BLK_N) if triangle.on_left else (config.BLK_N, config.BLK_M)


def tile_counts(config: GemmConfig, triangle: Triangle, m: int, n: int) -> tuple[int, int]:
    """Tiles of an m-by-n C: along the triangle, its levels, and across, its strips."""
    block, strip = tile_orders(config, triangle)
    order, others = (m, n) if triangle.on_left else (n, m)
    return -(-order // block), -(-others // strip)


def group_of(facts: Dtype) -> int:
    """Unknowns of a group: fewer of what takes four registers."""
    return 8 if facts.itemsize < 16 else 4


def sharing(facts: Dtype, threads: int, sides: int, count: int) -> int:
    """Threads that share each of `sides` right-hand sides of `count` unknowns; 1 where none should."""
    group = group_of(facts)
    if (
        count * facts.reals_per_element < MIN_SHARED_PARTS
        or sides > MAX_SIDES_PER_UNKNOWN * count
        or count % group
    ):
        return 1
    most = min(min(threads, MAX_SHARING_THREADS) // sides, group)
    return 1 << most.bit_length() - 1 if most else 1


def row_ld(facts: Dtype, count: int) -> int:
    """Elements from one row of a triangle to the next: rows that a warp reads at once share no bank."""
    return count + 16 // facts.itemsize


def solve_layout(config: GemmConfig, triangle: Triangle) -> SimpleNamespace:
    """Reals from one row of T to the next in its k-tile, and from one column to the next; of X likewise from
    one unknown to the next, and from one right-hand side; how many there are of each, and unknowns of a tile;
    threads that share a right-hand side; elements from one row of a prepared triangle to the next, or column,
    reals before the diagonal of the tile, and before its inverses, in what is prepared.

    "Rows" are equations: where T is on the right they are its columns.
    """
    facts, OF_A, count = config.dtype_facts, triangle.on_left, config.BLK_K
    of_t, of_x = (config.smem_tile_a, config.smem_tile_b)[:: 1 if OF_A else -1]
    (block, sides), REALS = tile_orders(config, triangle), facts.reals_per_element
    shares = sharing(facts, config.threads, sides, count)
    ld = row_ld(facts, count) if shares > 1 else count
    return SimpleNamespace(
        row=of_t.step * REALS,
        col=of_t.step_k * REALS,
        unknown=of_x.step_k * REALS,
        side=of_x.step * REALS,
        count=count,
        sides=sides,
        block=block,
        by_cols=of_t.k_major,
        shares=shares,
        ld=ld,
        diagonal=block * ld * REALS,
        inverse=block * (ld + 1) * REALS,
    )


def shared_reals(config: GemmConfig, triangle: Triangle) -> int:
    """Reals of shared memory for a tile: its triangles, their diagonal and its inverses."""
    layout = solve_layout(config, triangle)
    return layout.inverse + layout.block * config.dtype_facts.reals_per_element


def shared_bytes(config: GemmConfig, triangle: Triangle) -> int:
    """Shared memory of a block: its stages, and what is made of the tile's triangles."""
    reals = shared_reals(config, triangle) + 1
    return config.shared_bytes + -(-reals * config.dtype_facts.real_size // 16) * 16
