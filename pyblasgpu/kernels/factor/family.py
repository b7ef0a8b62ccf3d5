"""The families of the factorizations: Cholesky's leaf, inverses of triangles, the pivoted panel of LU."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

# complex elements take twice the room
_POTRF = {"z": {"ORDER": 64, "BLK": 16, "DIM": 128}}
# one float32 block would leave room for others
_POTRF_PANEL = _POTRF | {"s": {"SHARED": 208 << 10}}
_TRTRI = {letter: {"ORDER": 32, "DIM": 32} for letter in "cz"}
_LAUUM = {"z": {"ORDER": 32, "DIM": 64}}
# blocks of few rows, as many as a cluster holds
_CLUSTER = {"ROWS": 128, "DIRECT": 16, "CLUSTER": 16}
_PANEL = {letter: {"COLS": 32, **_CLUSTER} for letter in "sdc"} | {"z": _CLUSTER}

FAMILIES = (
    Family("potrf_leaf", ".factor.potrf_leaf", "PotrfLeaf", "potrf", needs=(8, 0), best_defaults=_POTRF),
    Family(
        "potrf_panel", ".factor.potrf_panel", "PotrfPanel", "potrf", needs=(8, 0), best_defaults=_POTRF_PANEL
    ),
    Family("trtri_leaf", ".factor.trtri_leaf", "TrtriLeaf", "trtri", needs=(8, 0), best_defaults=_TRTRI),
    Family("lauum_leaf", ".factor.lauum_leaf", "LauumLeaf", "lauum", needs=(8, 0), best_defaults=_LAUUM),
    Family("zero_diagonal", ".factor.zero_diagonal", "ZeroDiagonal", "trtri", dtypes=("s", "d")),
    Family("getrf_panel", ".factor.getrf_panel", "GetrfPanel", "getrf", needs=(8, 0), best_defaults=_PANEL),
    Family("getrf_column", ".factor.getrf_column", "GetrfColumn", "getrf", needs=(8, 0)),
    Family("getrf_small", ".factor.getrf_small", "GetrfSmall", "getrf", needs=(8, 0)),
    Family("getrs_small", ".factor.getrs_small", "GetrsSmall", "getrs", needs=(8, 0)),
    Family("restore", ".factor.restore", "Restore", "potrs", dtypes=("s", "d")),
    Family("laswp", ".factor.laswp", "Laswp", "laswp"),
    Family("pivot_moves", ".factor.pivot_moves", "PivotMoves", "laswp", dtypes=("s",)),
)
