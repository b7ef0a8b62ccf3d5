"""The families of the factorizations: Cholesky's leaf, inverses of triangles, the pivoted panel of LU."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family("potrf_leaf", ".factor.potrf_leaf", "PotrfLeaf", "potrf", needs=(8, 0)),
    Family("potrf_panel", ".factor.potrf_panel", "PotrfPanel", "potrf", needs=(8, 0)),
    Family("trtri_leaf", ".factor.trtri_leaf", "TrtriLeaf", "trtri", needs=(8, 0)),
    Family("lauum_leaf", ".factor.lauum_leaf", "LauumLeaf", "lauum", needs=(8, 0)),
    Family("zero_diagonal", ".factor.zero_diagonal", "ZeroDiagonal", "trtri", dtypes=("s", "d")),
    Family("getrf_panel", ".factor.getrf_panel", "GetrfPanel", "getrf", needs=(8, 0)),
    Family("getrf_column", ".factor.getrf_column", "GetrfColumn", "getrf", needs=(8, 0)),
    Family("getrf_small", ".factor.getrf_small", "GetrfSmall", "getrf", needs=(8, 0)),
    Family("getrs_small", ".factor.getrs_small", "GetrsSmall", "getrs", needs=(8, 0)),
    Family("restore", ".factor.restore", "Restore", "potrs", dtypes=("s", "d")),
    Family("laswp", ".factor.laswp", "Laswp", "laswp"),
    Family("pivot_moves", ".factor.pivot_moves", "PivotMoves", "laswp", dtypes=("s",)),
)
