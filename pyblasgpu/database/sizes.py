"""Size classes: the shapes that have tuned values of their own, and which class substitutes for which.

=========  =============================================  ==============================
family     class                                          tuned at
=========  =============================================  ==============================
gemm       slim_rows: m <= 16 < n                         8 x 4096, k 1024
gemm       slim_cols: n <= 16 < m                         4096 x 8, k 1024
gemm       few_rows: 16 < m <= 64 < n                     32 x 4096, k 1024
gemm       few_cols: 16 < n <= 64 < m                     4096 x 32, k 1024
gemm       rows24, cols24, rows48, cols48: between these  24 x 4096, k 1024; 4096 x 24; 48
gemm       deep_rows, deep_cols: the same with a long k   32 x 4096, k 4096; 4096 x 32
gemm       deep_rows24, deep_cols24: 24, with a long k    24 x 4096, k 4096; 4096 x 24
gemm       panel_rows, panel_cols: 64, with a long k      64 x 4096, k 4096; 4096 x 64
gemm       update_rows, update_cols: between leaves       256 x 4096, k 256; 4096 x 256
gemm       block_rows, block_cols: a panel by its block   128 x 4096, k 128; 4096 x 128
gemm       outer: k <= 45, m n > 750^2                    8192 x 8192, k 32
gemm       low_rank: 45 < k <= 128, m n > 750^2           4096 x 4096, k 64
gemm       tiny: m n <= 350^2                             256 x 256, k 256
gemm       small: m n <= 750^2                            512 x 512, k 512
gemm       middle: m n <= 1450^2                          1024 x 1024, k 1024
gemm       medium: m n <= 2900^2                          2048 x 2048, k 2048
gemm       large: all else                                4096 x 4096, k 4096
gemm       uneven: a large one whose tiles fill no waves  2560 x 2560, k 2560
gemm       square128, square192, square384, square576,    128 x 128, k 128, and so on
           square768, square1536, square3072: below and
           between the orders above
gemm       batch16: many of at most 22^2                  10000 of 16 x 16, k 16
gemm       batch32: many of at most 45^2                  10000 of 32 x 32, k 32
gemm       batch64: many of at most 90^2                  4000 of 64 x 64, k 64
gemm       batch128: many of at most 181^2                1000 of 128 x 128, k 128
leaves     few: at most 64 right-hand sides               32, triangles of 128 and 512
leaves     some: at most 1024                             512, triangles of 128 and 512
leaves     many: at most 2112                             2048, triangles of 128 and 512
leaves     most: more                                     4096, triangles of 128 and 512
leaves     batch64: many with more than 2112 together,    400 of 64, each with 64
           triangles of at most 90 rows
leaves     batch128: of at most 181, with more than 4224  100 of 128, each with 128
leaves     batch256: larger ones, with more than 4224     100 of 256, each with 256
fused      one of `points.TRSM_POINTS`                    order x right-hand sides
level 2    one of `points.MATRIX_VECTOR_POINTS`           rows x columns
=========  =============================================  ==============================

The elements of all matrices of a batch count together; where they are few, a batch is tiny like one product.
So do the right-hand sides of all triangles of a batch, which has classes of its own where they are too many
for blocks that are all there at once. Between the classes of products there is no boundary at run time:
`dispatch.choose` compares the Configs of all of them, and what each of them did at the extents of others;
times of batches serve batches alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from .families import FAMILIES, FUSED_TRSM
from .points import MATRIX_VECTOR_POINTS, TRSM_POINTS, nearest_matrix

__all__ = [
    "BY_TIMES_ALONE",
    "RHS_AT",
    "is_batch",
    "nearest",
    "tuned_points",
    "size_class",
    "sizes_of",
    "tuned_at",
]

SLIM, FEW = 16, 64
#: Classes of block LU: they count where times say what they gain, and not by the model alone.
BY_TIMES_ALONE = ("block_rows", "block_cols")
OUTER, LOW_RANK = 45, 128
SOME = 1024
MANY = 2112  # 132 multiprocessors have a block of 16 columns each
TINY, SMALL, MIDDLE, MEDIUM = 350 * 350, 750 * 750, 1450 * 1450, 2900 * 2900
LEAF_ORDERS = (128, 512)

#: Class of a batch -> m n of one matrix at most.
_BATCHES = {"batch16": 22 * 22, "batch32": 45 * 45, "batch64": 90 * 90, "batch128": 181 * 181}

#: Class of a batch of leaves -> rows of a triangle at most, and right-hand sides of all than which there are
#: more: with fewer they do as one triangle does, but small ones leave much of its Config idle.
_LEAF_BATCHES = {"batch64": (90, MANY), "batch128": (181, 2 * MANY), "batch256": (inf, 2 * MANY)}

_BY_ELEMENTS = {
    "tiny": ("tiny", "small", "middle", "medium", "large"),
    "small": ("small", "middle", "tiny", "medium", "large"),
    "middle": ("middle", "medium", "small", "large", "tiny"),
    "medium": ("medium", "large", "middle", "small", "tiny"),
    "large": ("large", "medium", "middle", "small", "tiny"),
    "uneven": ("uneven", "large", "medium", "middle", "small", "tiny"),
    "square128": ("square128", "tiny", "small", "middle", "medium", "large"),
    "square192": ("square192", "tiny", "small", "middle", "medium", "large"),
    "square384": ("square384", "small", "tiny", "middle", "medium", "large"),
    "square576": ("square576", "small", "middle", "tiny", "medium", "large"),
    "square768": ("square768", "middle", "small", "medium", "tiny", "large"),
    "square1536": ("square1536", "medium", "middle", "large", "small", "tiny"),
    "square3072": ("square3072", "large", "medium", "middle", "small", "tiny"),
}
_OTHERS = (
    "low_rank", "outer", "few_rows", "few_cols", "slim_rows", "slim_cols", "uneven", "square3072",
    "square1536", "square768", "square576", "square384", "square192", "square128", "rows24", "cols24",
    "rows48", "cols48", "deep_rows", "deep_cols", "deep_rows24", "deep_cols24", "panel_rows", "panel_cols",
    "update_rows", "update_cols", "block_rows", "block_cols",
)  # fmt: skip

_SKINNY = (
    "rows24",
    "cols24",
    "rows48",
    "cols48",
    "deep_rows",
    "deep_cols",
    "deep_rows24",
    "deep_cols24",
    "panel_rows",
    "panel_cols",
)
_PREFERRED = {
    "slim_rows": ("slim_rows", "few_rows", *_BY_ELEMENTS["small"]),
    "slim_cols": ("slim_cols", "few_cols", *_BY_ELEMENTS["small"]),
    "few_rows": ("few_rows", "slim_rows", *_BY_ELEMENTS["small"]),
    "few_cols": ("few_cols", "slim_cols", *_BY_ELEMENTS["small"]),
    **{
        size: (size, "few_rows" if "rows" in size else "few_cols", *_BY_ELEMENTS["small"]) for size in _SKINNY
    },
    "update_rows": ("update_rows", *_BY_ELEMENTS["middle"]),
    "update_cols": ("update_cols", *_BY_ELEMENTS["middle"]),
    "block_rows": ("block_rows", "update_rows", *_BY_ELEMENTS["small"]),
    "block_cols": ("block_cols", "update_cols", *_BY_ELEMENTS["small"]),
    "outer": ("outer", "low_rank", *_BY_ELEMENTS["large"]),
    "low_rank": ("low_rank", "outer", *_BY_ELEMENTS["large"]),
    **_BY_ELEMENTS,
}
_GEMM_NEAREST = {
    size: (*preferred, *(other for other in _OTHERS if other not in preferred))
    for size, preferred in _PREFERRED.items()
}

_LEAF_NEAREST: dict[str, tuple[str, ...]] = {
    "few": ("few", "some", "many", "most"),
    "some": ("some", "many", "few", "most"),
    "many": ("many", "most", "some", "few"),
    "most": ("most", "many", "some", "few"),
}

_NEAREST: dict[str, dict[str, tuple[str, ...]]] = {
    "gemm": {
        **{size: (*others, *reversed(_BATCHES)) for size, others in _GEMM_NEAREST.items()},
        "batch16": ("batch16", "batch32", "batch64", "batch128", *_GEMM_NEAREST["tiny"]),
        "batch32": ("batch32", "batch16", "batch64", "batch128", *_GEMM_NEAREST["tiny"]),
        "batch64": ("batch64", "batch32", "batch128", "batch16", *_GEMM_NEAREST["tiny"]),
        "batch128": ("batch128", "batch64", "batch32", "batch16", *_GEMM_NEAREST["small"]),
    },
    "leaf": {
        **_LEAF_NEAREST,
        "batch64": ("batch64", "batch128", "batch256", *_LEAF_NEAREST["most"]),
        "batch128": ("batch128", "batch64", "batch256", *_LEAF_NEAREST["most"]),
        "batch256": ("batch256", "batch128", "batch64", *_LEAF_NEAREST["most"]),
    },
    "fused": {point: (point,) for point in TRSM_POINTS},
    "matrix_vector": {
        point: tuple(nearest_matrix(*extents)) for point, extents in MATRIX_VECTOR_POINTS.items()
    },
}

_GEMM_AT = {
    "slim_rows": (8, 4096, 1024),
    "slim_cols": (4096, 8, 1024),
    "few_rows": (32, 4096, 1024),
    "few_cols": (4096, 32, 1024),
    "rows24": (24, 4096, 1024),
    "cols24": (4096, 24, 1024),
    "rows48": (48, 4096, 1024),
    "cols48": (4096, 48, 1024),
    "deep_rows": (32, 4096, 4096),
    "deep_cols": (4096, 32, 4096),
    "deep_rows24": (24, 4096, 4096),
    "deep_cols24": (4096, 24, 4096),
    "panel_rows": (64, 4096, 4096),
    "panel_cols": (4096, 64, 4096),
    "update_rows": (256, 4096, 256),
    "update_cols": (4096, 256, 256),
    "block_rows": (128, 4096, 128),
    "block_cols": (4096, 128, 128),
    "outer": (8192, 8192, 32),
    "low_rank": (4096, 4096, 64),
    "tiny": (256, 256, 256),
    "small": (512, 512, 512),
    "middle": (1024, 1024, 1024),
    "medium": (2048, 2048, 2048),
    "large": (4096, 4096, 4096),
    "uneven": (2560, 2560, 2560),
    **{f"square{n}": (n, n, n) for n in (128, 192, 384, 576, 768, 1536, 3072)},
    "batch16": (16, 16, 16, 10_000),
    "batch32": (32, 32, 32, 10_000),
    "batch64": (64, 64, 64, 4000),
    "batch128": (128, 128, 128, 1000),
}

#: Right-hand sides at which a class of them is tuned.
RHS_AT = {"few": 32, "some": 512, "many": 2048, "most": 4096}

_LEAF_AT: dict[str, tuple[tuple[int, ...], ...]] = {
    **{size: tuple((order, rhs) for order in LEAF_ORDERS) for size, rhs in RHS_AT.items()},
    "batch64": ((64, 64, 400),),
    "batch128": ((128, 128, 100),),
    "batch256": ((256, 256, 100),),
}


_TUNED_AT: dict[str, dict[str, tuple[tuple[int, ...], ...]]] = {
    "gemm": {size: (extents,) for size, extents in _GEMM_AT.items()},
    "leaf": _LEAF_AT,
    "fused": {point: (extents,) for point, extents in TRSM_POINTS.items()},
    "matrix_vector": {point: (extents,) for point, extents in MATRIX_VECTOR_POINTS.items()},
}


def size_class(stem: str, extents: tuple[int, ...]) -> str:
    """The class of ``(m, n, k[, batch])`` of a GEMM, of ``(n, right-hand sides[, batch])`` of a leaf, of
    ``(rows, columns[, batch])`` of level 2.
    """
    if _kind(stem) == "matrix_vector":
        return nearest_matrix(*extents[:2])[0]
    if _kind(stem) == "gemm":
        m, n, k, *batch = extents
        elements = m * n * prod(batch)
        if prod(batch) > 1 and elements > TINY:
            batch_class = next((name for name, most in _BATCHES.items() if m * n <= most), None)
            if batch_class is not None:
                return batch_class
        for most, kind in ((SLIM, "slim"), (FEW, "few")):
            if m <= most < n:
                return f"{kind}_rows"
            if n <= most < m:
                return f"{kind}_cols"
        if k <= LOW_RANK and elements > SMALL:
            return "outer" if k <= OUTER else "low_rank"
        bounds = (("tiny", TINY), ("small", SMALL), ("middle", MIDDLE), ("medium", MEDIUM))
        return next((name for name, most in bounds if elements <= most), "large")
    return _leaf_class(*extents)


def _leaf_class(n: int, rhs: int, *batch: int) -> str:
    count = prod(batch)
    name, least = next((name, least) for name, (most, least) in _LEAF_BATCHES.items() if n <= most)
    return name if count > 1 and rhs * count > least else _rhs_class(rhs * count)


def _rhs_class(rhs: int) -> str:
    if rhs <= FEW:
        return "few"
    return "some" if rhs <= SOME else "many" if rhs <= MANY else "most"


def sizes_of(stem: str, only: Sequence[str] = ()) -> tuple[str, ...]:
    """The classes of a family; of these `only`, if any."""
    return tuple(size for size in _classes(stem) if not only or size in only)


def is_batch(size: str) -> bool:
    """Whether a class is one of batches."""
    return size in _BATCHES or size in _LEAF_BATCHES


def nearest(stem: str, size: str) -> tuple[str, ...]:
    """All classes, `size` first, then those that substitute for it."""
    return _classes(stem)[size]


def tuned_at(stem: str, size: str) -> tuple[tuple[int, ...], ...]:
    """The extents at which a class is tuned."""
    return _TUNED_AT[_kind(stem)][size]


def tuned_points(stem: str, only: Sequence[str] = ()) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """(class, extents) wherever a family is tuned; of the classes `only`, if any."""
    return tuple((size, extents) for size in sizes_of(stem, only) for extents in tuned_at(stem, size))


def _classes(stem: str) -> dict[str, tuple[str, ...]]:
    return _NEAREST[_kind(stem)]


def _kind(stem: str) -> str:
    """Return the kind of a family's problems: products, triangles of leaves or of a fused TRSM, matrices of
    level 2.
    """
    if stem in FUSED_TRSM:
        return "fused"
    if FAMILIES[stem].is_matrix_vector:
        return "matrix_vector"
    return "gemm" if FAMILIES[stem].is_product else "leaf"
