"""The candidates of products (`space`): tiles, pipelines, and how a tile's k-tiles are loaded."""

from __future__ import annotations

from functools import cache
from itertools import product

from ...gpu.device import Device
from ...types import Dtype
from ..common.axes import VECTOR, Axis, Parameters, first, instructions, residence, widest
from ..registry import FAMILIES

__all__ = ["deepened", "gemm_mma", "gemm_simt", "laid_out"]

KEPT = 64  # bytes of the shortest row that keeps its layout
LINE = 128  # bytes of shared memory that one access serves without a conflict

# Of gemm_simt, DIM_X, DIM_Y, THR_M, THR_N: tiles for large products, small ones, few columns, few rows
_QUICK_TILES = {
    "s": (
        (16, 16, 8, 8), (16, 16, 8, 16), (16, 16, 16, 8), (8, 16, 8, 8), (16, 8, 8, 8), (16, 16, 4, 8),
        (8, 16, 8, 4), (8, 8, 4, 4), (32, 8, 4, 4), (8, 16, 4, 2),
    ),
    "d": (
        (16, 16, 8, 8), (8, 16, 8, 8), (16, 8, 8, 8), (8, 16, 8, 4), (16, 16, 8, 4), (8, 8, 4, 4),
        (16, 16, 2, 2), (16, 8, 8, 4), (8, 16, 4, 8), (8, 8, 8, 8),
    ),
    "c": (
        (16, 16, 8, 4), (16, 16, 4, 8), (16, 16, 4, 4), (8, 16, 8, 4), (16, 8, 4, 8), (8, 16, 4, 4),
        (8, 8, 4, 4), (16, 16, 2, 2), (16, 8, 8, 4), (8, 16, 4, 8), (8, 8, 8, 4), (8, 16, 8, 6),
        (16, 16, 8, 8),
    ),
    "z": (
        (16, 16, 4, 4), (16, 8, 4, 4), (8, 16, 4, 4), (8, 16, 8, 4), (16, 16, 4, 2), (8, 8, 4, 4),
        (16, 16, 2, 2), (8, 8, 2, 2), (32, 8, 4, 4), (8, 32, 4, 4), (8, 16, 4, 2),
    ),
}  # fmt: skip
_QUICK_PIPELINES = ((8, 4, True), (16, 3, True), (8, 1, False))
# Those for batches of small products, and for few rows or columns; deeper k-tiles, of which there are few
_SMALL_TILES = {
    "s": (
        (8, 4, 2, 4),
        (8, 8, 4, 2),
        (8, 8, 2, 4),
        (8, 4, 4, 8),
        (8, 8, 8, 8),
        (8, 4, 8, 2),
        (4, 8, 2, 8),
    ),
    "d": ((8, 4, 2, 4), (16, 8, 2, 2), (8, 16, 2, 2), (8, 8, 4, 2), (8, 4, 4, 8)),
    "c": ((8, 8, 2, 2), (16, 8, 2, 2), (8, 16, 2, 2), (8, 4, 4, 8), (8, 8, 8, 4)),
    "z": ((8, 4, 2, 4), (16, 8, 2, 2), (8, 16, 2, 2), (8, 4, 4, 4)),
}
_SMALL_PIPELINES = ((16, 3, True), (32, 2, True))
_SMALL_SYNCHRONOUS = ((16, 1, False),)

_GRIDS = ((4, 8), (8, 4), (8, 8), (8, 16), (16, 8), (16, 16), (8, 32), (32, 8))
_PER_THREAD = (1, 2, 3, 4, 6, 8, 12, 16)
_MAX_TILE = 256
_LARGE_PER_THREAD = 128  # elements of C
_SHARED_BOTH = {"share_a": True, "share_b": True, "read_only": False}

# Slices of k within a block: of tiles that leave a multiprocessor few warps
_SLICES = (1, 2, 4)
_SLICED_TILE, _SLICED_THREADS, _SLICE = (
    128 * 64,
    256,
    8,
)  # elements of C, threads of a block, least k of a slice


def _slices(tile: int, threads: int, depth: int, stages: int) -> list[int]:
    """Return the numbers of slices for a tile of `tile` elements and `threads` for each slice."""
    fits = tile <= _SLICED_TILE and stages > 1
    return [
        slices
        for slices in _SLICES
        if slices == 1 or (fits and threads * slices <= _SLICED_THREADS and depth >= _SLICE * slices)
    ]


def gemm_simt(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    trans_a, trans_b = (letter == "t" for letter in layout)
    stages = (1, 2, 3, 4) if device.has_async_copy else (1,)

    def tile(x, y, thr_m, thr_n, depth, stages, prefetch, shared, keeps, slices=1) -> Parameters:
        chosen = {
            "DIM_X": x,
            "DIM_Y": y,
            "BLK_M": x * thr_m,
            "BLK_N": y * thr_n,
            "BLK_K": depth,
            "UNROLL": depth // slices,
            "SLICES_K": slices,
            "stages": stages,
            "prefetch": prefetch,
            **shared,
        }
        chosen |= _fragments(dtype, layout, chosen, keeps)
        return {**chosen, **_lanes(chosen)[0], **loads_a(chosen)[-1], **loads_b(chosen)[-1]}

    def tiles(_: Parameters) -> list[Parameters]:
        """All that resources and reuse depend on; lanes and loads are the plainest, for now."""
        if effort == "quick":
            small = _SMALL_PIPELINES if device.has_async_copy else _SMALL_SYNCHRONOUS
            return [
                tile(*each, *pipeline, _SHARED_BOTH, keeps)
                for tiles, pipelines in ((_QUICK_TILES, _QUICK_PIPELINES), (_SMALL_TILES, small))
                for each, pipeline in product(tiles[dtype.letter], pipelines)
                if pipeline[1] in stages
                for keeps in _keeping(dtype, layout, device, *pipeline[:2])
            ]
        depths = (4, 8, 16, 32) if dtype.letter == "z" else (8, 16, 32)
        shapes = product(_GRIDS, _PER_THREAD, _PER_THREAD, depths, stages, (True, False))
        return [
            tile(x, y, thr_m, thr_n, depth, stage, prefetch, shared, keeps, slices)
            for (x, y), thr_m, thr_n, depth, stage, prefetch in shapes
            if (stage > 1 or not prefetch) and max(x * thr_m, y * thr_n) <= _MAX_TILE
            for shared in (_sharing(stage) if effort == "exhaustive" else [_SHARED_BOTH])
            for keeps in _keeping(dtype, layout, device, depth, stage)
            for slices in _slices(x * thr_m * y * thr_n, x * y, depth, stage)
        ]

    def loads_a(chosen: Parameters) -> list[Parameters]:
        return _loads(dtype, chosen, "A", chosen["BLK_M"], chosen["VEC_M"], k_major=trans_a)

    def loads_b(chosen: Parameters) -> list[Parameters]:
        return _loads(dtype, chosen, "B", chosen["BLK_N"], chosen["VEC_N"], k_major=not trans_b)

    def order(chosen: Parameters) -> list[Parameters]:
        """A double's FMA is slow enough to load its registers in time; small tiles have them at hand."""
        tile = chosen["BLK_M"] * chosen["BLK_N"] // (chosen["DIM_X"] * chosen["DIM_Y"])
        both = dtype.letter == "s" and tile >= _LARGE_PER_THREAD and chosen["prefetch"]
        return [{"by_rows": by_rows} for by_rows in ((False, True) if both else (dtype.letter == "c",))]

    inner: list[Axis] = [_lanes, loads_a, loads_b]
    if effort != "exhaustive":
        inner = [first(axis) for axis in inner]
    return [tiles, order, *inner, residence(effort)]


def _keeping(dtype: Dtype, layout: str, device: Device, depth: int, stages: int) -> tuple[bool, ...]:
    """Whether k-tiles along k may keep their layout, which is worth it for rows of some length.

    Wide copies are asynchronous; where FMAs take long, narrow ones do as well.
    """
    along_k = device.has_async_copy and layout != "nt" and dtype.real_size == 4
    worth = along_k and stages > 1 and depth * dtype.itemsize >= KEPT
    return (False, True) if worth else (False,)


def _fragments(dtype: Dtype, layout: str, chosen: Parameters, keeps: bool) -> Parameters:
    """Return the vectors by which threads read k-tiles; `keeps`: those along k keep their layout."""
    thr_m, thr_n = chosen["BLK_M"] // chosen["DIM_X"], chosen["BLK_N"] // chosen["DIM_Y"]
    return {
        "VEC_M": 1 if keeps and layout[0] == "t" else widest(dtype, thr_m),
        "VEC_N": 1 if keeps and layout[1] == "n" else widest(dtype, thr_n),
        "VEC_K": VECTOR // dtype.itemsize if keeps else 1,
    }


# Of gemm_mma, BLK_M, BLK_N, WARP_M, WARP_N; then BLK_K, stages, MMA_K, prefetch
_MMA_TILES = {
    "d": (
        (128, 128, 64, 32), (128, 128, 32, 64), (128, 64, 64, 32), (64, 128, 32, 64),
        (128, 64, 32, 32), (64, 128, 32, 32), (64, 64, 32, 32),
        (64, 64, 16, 32), (64, 32, 32, 16), (32, 64, 16, 32), (32, 32, 16, 16),
        (64, 32, 16, 16), (32, 32, 16, 8), (256, 64, 64, 32), (64, 256, 32, 64),
    ),
    "z": (
        (64, 64, 32, 32), (64, 64, 32, 16), (64, 64, 16, 32), (64, 128, 32, 32),
        (128, 64, 32, 32), (64, 32, 32, 16), (32, 64, 16, 32), (32, 32, 16, 16),
        (64, 48, 32, 24), (32, 32, 16, 8), (64, 32, 16, 16), (32, 64, 16, 16),
    ),
}  # fmt: skip
_MMA_PIPELINES = {
    "d": ((16, 4, 4, True), (16, 3, 4, True), (16, 5, 4, True)),
    "z": ((8, 4, 8, True), (16, 4, 8, True), (16, 4, 16, True), (32, 3, 16, True)),
}
# For batches of small products, and for few rows or columns
_MMA_SMALL_TILES = {
    "d": (
        (16, 16, 16, 8),
        (16, 32, 16, 8),
        (32, 16, 16, 8),
        (32, 32, 16, 16),
        (16, 64, 16, 16),
        (64, 16, 16, 16),
    ),
    "z": ((16, 16, 16, 8), (16, 32, 16, 8), (32, 16, 16, 8), (16, 64, 16, 16), (64, 16, 16, 16)),
}
_MMA_SMALL_PIPELINES = {"d": ((16, 4, 4, True), (32, 3, 4, True)), "z": ((16, 3, 8, True), (8, 4, 8, True))}
_MMA_WIDE = (16, 32, 48, 64, 96, 128, 192, 256), (8, 16, 24, 32, 48, 64)  # edges of tiles, of warps
#: MMA_K of the large instructions; complex products of k 4 are four, and were slower where they were timed.
_MMA_DEPTHS = {"d": (4, 8), "z": (16, 8)}
_MMA_WARPS = 8  # most of a block: more leave each too few registers


def gemm_mma(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    if dtype.letter not in _MMA_TILES:
        return [lambda _: []]
    depths = _MMA_DEPTHS[dtype.letter]

    def tiles(_: Parameters) -> list[Parameters]:
        if effort == "quick":
            listed = (_MMA_TILES, _MMA_PIPELINES), (_MMA_SMALL_TILES, _MMA_SMALL_PIPELINES)
            return [
                _warps(*tile, depth, stages, instruction, prefetch)
                for tiles, pipelines in listed
                for tile, pipeline in product(tiles[dtype.letter], pipelines[dtype.letter])
                for depth, stages, mma_k, prefetch in (pipeline,)
                for instruction in instructions(dtype, device, tile[2], (mma_k,))
            ]
        edges, warps = _MMA_WIDE
        shapes = product(edges, edges, warps, warps, (8, 16, 32), (2, 3, 4, 5, 6))
        return [
            _warps(m, n, warp_m, warp_n, depth, stages, instruction, prefetch, slices)
            for m, n, warp_m, warp_n, depth, stages in shapes
            if m % warp_m == 0 and n % warp_n == 0 and m // warp_m * (n // warp_n) <= _MMA_WARPS
            for slices in _slices(m * n, 32 * (m // warp_m) * (n // warp_n), depth, stages)
            for instruction, prefetch in product(instructions(dtype, device, warp_m, depths), (True, False))
        ]

    def loaded(tile: Parameters) -> Parameters:
        a = _rows(dtype, tile, "A", tile["BLK_M"], k_major=layout[0] == "t")
        b = _rows(dtype, tile, "B", tile["BLK_N"], k_major=layout[1] == "n")
        return {**tile, **a, **b}

    return [lambda chosen: [loaded(tile) for tile in tiles(chosen)], residence("normal")]


def _warps(
    m: int,
    n: int,
    warp_m: int,
    warp_n: int,
    depth: int,
    stages: int,
    instruction: tuple[int, int],
    prefetch: bool,
    slices: int = 1,
) -> Parameters:
    return {
        "BLK_M": m,
        "BLK_N": n,
        "WARP_M": warp_m,
        "WARP_N": warp_n,
        "BLK_K": depth,
        "stages": stages,
        "MMA_M": instruction[0],
        "MMA_K": instruction[1],
        "prefetch": prefetch,
        "SLICES_K": slices,
    }


def _rows(dtype: Dtype, chosen: Parameters, name: str, blk: int, k_major: bool) -> Parameters:
    """Return the thread grid for a k-tile that keeps its layout, by the widest loads, its rows padded against
    bank conflicts.
    """
    warps = chosen["BLK_M"] // chosen["WARP_M"] * (chosen["BLK_N"] // chosen["WARP_N"])
    warps *= chosen.get("SLICES_K", 1)
    return _kept_rows(dtype.itemsize, name, 32 * warps, chosen["BLK_K"], blk, k_major)


@cache
def _kept_rows(itemsize: int, name: str, threads: int, depth: int, blk: int, k_major: bool) -> Parameters:
    """Return the thread grid for rows kept along k, with a given number of threads.

    A load of a fragment takes four neighbours along k and four (complex: two) along the other dimension at a
    time: rows must be so far apart that these are all of the banks.
    """
    major, minor = (depth, blk) if k_major else (blk, depth)
    line = LINE // itemsize
    apart = 4 if k_major else line // 4
    for vec in (2, 1):
        rows = _tiling(threads, major, minor, vec)
        if rows and vec * itemsize <= VECTOR:
            return _grid(name, threads, max(rows), vec, (apart - major) % line)
    return _no_grid(name, threads)


def _sharing(stages: int) -> list[Parameters]:
    """Return the operands that may pass through shared memory (Steinsland's schemes); cp.async leads nowhere
    else.
    """
    if stages > 1:
        return [_SHARED_BOTH]
    direct = [
        {"share_a": a, "share_b": b, "read_only": read_only}
        for a, b in ((True, False), (False, True), (False, False))
        for read_only in (False, True)
    ]
    return [_SHARED_BOTH, *direct]


def _loads(
    dtype: Dtype, chosen: Parameters, name: str, blk: int, fragment: int, k_major: bool
) -> list[Parameters]:
    """Return the thread grids for a k-tile, the widest loads first; for each width the longest rows.

    Rows that are transposed on the way are kept so short that one padding serves both the stores and the
    loads of whole fragments. Where no grid of threads tiles the k-tile, the one given breaks the rule
    that says so.
    """
    transposes = k_major and chosen["VEC_K"] == 1
    widest = 1 if transposes and chosen["stages"] > 1 else VECTOR // dtype.itemsize
    threads, depth = chosen["DIM_X"] * chosen["DIM_Y"] * chosen.get("SLICES_K", 1), chosen["BLK_K"]
    if transposes:
        return _transposing(dtype.itemsize, name, threads, depth, blk, fragment, widest)
    pad = _apart(depth, chosen["VEC_K"]) if k_major else 0
    return _straight(name, threads, depth, blk, k_major, pad, widest)


@cache
def _straight(
    name: str, threads: int, depth: int, blk: int, k_major: bool, pad: int, widest: int
) -> list[Parameters]:
    """Return the thread grids of a k-tile that keeps its layout, for loads of at most `widest` elements."""
    major, minor = (depth, blk) if k_major else (blk, depth)
    tilings = {vec: _tiling(threads, major, minor, vec) for vec in (4, 2, 1) if vec <= widest}
    grids = [_grid(name, threads, max(rows), vec, pad) for vec, rows in tilings.items() if rows]
    return grids or [_no_grid(name, threads)]


@cache
def _transposing(
    itemsize: int, name: str, threads: int, depth: int, blk: int, fragment: int, widest: int
) -> list[Parameters]:
    """Return the thread grids of a k-tile along k that is transposed while it is loaded."""
    grids = []
    for vec in (4, 2, 1):
        rows = _tiling(threads, depth, blk, vec) if vec <= widest else []
        if rows:
            # there are so many copies of 4 bytes that longer rows are worth a conflict
            spread = fragment // (2 if itemsize == 4 else 1)
            short = [x for x in rows if LINE // itemsize // x >= spread]
            x = max(short or rows)
            grids.append(_grid(name, threads, x, vec, _pad(itemsize, blk, x, fragment)))
    return grids or [_no_grid(name, threads)]


@cache
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(x for x in range(1, number + 1) if number % x == 0)


def _tiling(threads: int, major: int, minor: int, vec: int) -> list[int]:
    """Threads along the contiguous dimension such that loads of `vec` tile a k-tile."""
    return [x for x in _divisors(threads) if major % (x * vec) == 0 and minor % (threads // x) == 0]


def _grid(name: str, threads: int, x: int, vec: int, pad: int) -> Parameters:
    return {f"DIM_X{name}": x, f"DIM_Y{name}": threads // x, f"VEC_{name}": vec, f"PAD_{name}": pad}


def _no_grid(name: str, threads: int) -> Parameters:
    """Breaks the rule that says why nothing tiles the k-tile."""
    return {f"DIM_X{name}": threads, f"DIM_Y{name}": 1}


def _pad(itemsize: int, blk: int, lanes: int, fragment: int) -> int:
    """Elements after a row of `blk` such that a transposing store meets no bank twice.

    `lanes` neighbours store into as many rows, the next ones an element further: rows must be (elements of a
    line) / lanes apart. A row must still hold whole fragments.
    """
    line = LINE // itemsize
    apart = max(line // lanes, fragment)
    return (apart - blk) % line


def _apart(row: int, vector: int) -> int:
    """Elements after a row of `row`, such that neighbouring rows are an odd number of vectors apart: as many
    of them as a line holds meet in no bank.
    """
    return vector if row // vector % 2 == 0 else 0


def _lanes(chosen: Parameters) -> list[Parameters]:
    """Shapes of a warp, 8 x 4 first."""
    fit = [x for x in (8, 4, 16) if chosen["DIM_X"] % x == 0 and chosen["DIM_Y"] % (32 // x) == 0]
    return [{"WARP_X": x} for x in fit or (8,)]


def deepened(stem: str, dtype: Dtype, layout: str, parameters: Parameters, depth: int) -> Parameters:
    """Return the parameters of a product with the same tile and k-tiles of another depth, loaded by the
    plainest formula.
    """
    chosen, (trans_a, trans_b) = {**parameters, "BLK_K": depth}, (letter == "t" for letter in layout)
    edges = ("A", chosen["BLK_M"], "VEC_M", trans_a), ("B", chosen["BLK_N"], "VEC_N", not trans_b)
    for name, blk, vector, k_major in edges:
        if FAMILIES[stem].tensor_cores:
            chosen |= _rows(dtype, chosen, name, blk, k_major)
        else:
            chosen |= _loads(dtype, chosen, name, blk, chosen[vector], k_major)[0]
    return chosen


def laid_out(stem: str, dtype: Dtype, layout: str, parameters: Parameters, device: Device) -> Parameters:
    """Return the parameters of a product with the same tile and pipeline for operands of another layout,
    loaded by the plainest formula.
    """
    chosen = dict(parameters)
    if not FAMILIES[stem].tensor_cores:
        keeps = _keeping(dtype, layout, device, chosen["BLK_K"], chosen["stages"])[-1]
        chosen |= _fragments(dtype, layout, chosen, keeps)
        chosen |= _lanes(chosen)[0]
    return deepened(stem, dtype, layout, chosen, chosen["BLK_K"])
