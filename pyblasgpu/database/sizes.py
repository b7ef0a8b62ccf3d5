"""Size classes: the shapes that have tuned values of their own, and which class stands in for which.

=========  =============================================  ==============================
family     class                                          tuned at
=========  =============================================  ==============================
gemm_tile  few_rows: m <= 64 < n                          32 x 4096, k 1024
gemm_tile  few_cols: n <= 64 < m                          4096 x 32, k 1024
gemm_tile  small: m n <= 750^2                            512 x 512, k 512
gemm_tile  middle: m n <= 1200^2                          512 x 2048, k 512
gemm_tile  medium: m n <= 2048^2                          1024 x 2048, k 1024
gemm_tile  large: all else                                4096 x 4096, k 4096
leaves     few: at most 64 right-hand sides               32, triangles of 128 and 512
leaves     some: at most 1024                             512, triangles of 128 and 512
leaves     many: at most 2560                             2048, triangles of 128 and 512
leaves     most: more                                     4096, triangles of 128 and 512
=========  =============================================  ==============================

The stop size of a recursion has the classes of the leaves; it is tuned on a triangle of 2048.
"""

from __future__ import annotations

from math import prod

__all__ = ["RHS_AT", "nearest", "rhs_class", "size_class", "sizes_of", "tuned_at"]

FEW = 64
SOME = 1024
MANY = 2560
SMALL = 750 * 750
MIDDLE = 1200 * 1200
MEDIUM = 2048 * 2048
LEAF_ORDERS = (128, 512)

_NEAREST: dict[str, dict[str, tuple[str, ...]]] = {
    "gemm_tile": {
        "few_rows": ("few_rows", "small", "middle", "medium", "large", "few_cols"),
        "few_cols": ("few_cols", "small", "middle", "medium", "large", "few_rows"),
        "small": ("small", "middle", "medium", "large", "few_rows", "few_cols"),
        "middle": ("middle", "small", "medium", "large", "few_rows", "few_cols"),
        "medium": ("medium", "large", "middle", "small", "few_rows", "few_cols"),
        "large": ("large", "medium", "middle", "small", "few_rows", "few_cols"),
    },
    "leaf": {
        "few": ("few", "some", "many", "most"),
        "some": ("some", "many", "few", "most"),
        "many": ("many", "most", "some", "few"),
        "most": ("most", "many", "some", "few"),
    },
}

_GEMM_AT = {
    "few_rows": (32, 4096, 1024),
    "few_cols": (4096, 32, 1024),
    "small": (512, 512, 512),
    "middle": (512, 2048, 512),
    "medium": (1024, 2048, 1024),
    "large": (4096, 4096, 4096),
}

#: Right-hand sides at which a class of them is tuned.
RHS_AT = {"few": 32, "some": 512, "many": 2048, "most": 4096}


def size_class(stem: str, extents: tuple[int, ...]) -> str:
    """The class of ``(m, n, k[, batch])`` of a GEMM, of ``(n, right-hand sides[, batch])`` of a leaf."""
    if stem == "gemm_tile":
        m, n, _, *batch = extents
        if m <= FEW < n:
            return "few_rows"
        if n <= FEW < m:
            return "few_cols"
        elements = m * n * prod(batch)
        bounds = (("small", SMALL), ("middle", MIDDLE), ("medium", MEDIUM))
        return next((name for name, most in bounds if elements <= most), "large")
    return rhs_class(prod(extents[1:]))


def rhs_class(rhs: int) -> str:
    """The class of `rhs` right-hand sides."""
    if rhs <= FEW:
        return "few"
    return "some" if rhs <= SOME else "many" if rhs <= MANY else "most"


def sizes_of(stem: str) -> tuple[str, ...]:
    """The classes of a family, or of the stop sizes of a recursive routine."""
    return tuple(_classes(stem))


def nearest(stem: str, size: str) -> tuple[str, ...]:
    """All classes, `size` first, then what stands in for it."""
    return _classes(stem)[size]


def tuned_at(stem: str, size: str) -> tuple[tuple[int, ...], ...]:
    """The extents at which a class is tuned."""
    if stem == "gemm_tile":
        return (_GEMM_AT[size],)
    return tuple((order, RHS_AT[size]) for order in LEAF_ORDERS)


def _classes(stem: str) -> dict[str, tuple[str, ...]]:
    return _NEAREST["gemm_tile" if stem == "gemm_tile" else "leaf"]
