"""The families of the factorizations: Cholesky, inverses of triangles, LU, QR, L D L^H, eigenvalues."""

from __future__ import annotations

from ..registry import Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family("potrf_leaf", ".factor.cholesky.potrf_leaf", "PotrfLeaf", "potrf", needs=(8, 0)),
    Family("potrf_small", ".factor.cholesky.potrf_small", "PotrfSmall", "potrf", needs=(8, 0)),
    Family("potrf_panel", ".factor.cholesky.potrf_panel", "PotrfPanel", "potrf", needs=(8, 0)),
    Family("trtri_leaf", ".factor.triangles.trtri_leaf", "TrtriLeaf", "trtri", needs=(8, 0)),
    Family("lauum_leaf", ".factor.triangles.lauum_leaf", "LauumLeaf", "lauum", needs=(8, 0)),
    Family("zero_diagonal", ".factor.triangles.zero_diagonal", "ZeroDiagonal", "trtri", dtypes=("s", "d")),
    Family("getrf_panel", ".factor.lu.getrf_panel", "GetrfPanel", "getrf", needs=(8, 0)),
    Family("getrf_column", ".factor.lu.getrf_column", "GetrfColumn", "getrf", needs=(8, 0)),
    Family("getrf_small", ".factor.lu.getrf_small", "GetrfSmall", "getrf", needs=(8, 0)),
    Family("gesv_small", ".factor.lu.gesv_small", "GesvSmall", "gesv", needs=(8, 0)),
    Family("getrs_small", ".factor.lu.getrs_small", "GetrsSmall", "getrs", needs=(8, 0)),
    Family("determinant", ".factor.lu.determinant", "Determinant", "slogdet"),
    Family("geqrf_small", ".factor.qr.geqrf_small", "GeqrfSmall", "geqrf", needs=(8, 0)),
    Family("geqrf_panel", ".factor.qr.geqrf_panel", "GeqrfPanel", "geqrf"),
    Family("geqrf_tall", ".factor.qr.geqrf_tall", "GeqrfTall", "geqrf"),
    Family("geqp3", ".factor.qr.geqp3", "Geqp3", "geqp3"),
    Family("geqp3_panel", ".factor.qr.geqp3_panel", "Geqp3Panel", "geqp3"),
    Family("larft_leaf", ".factor.qr.larft_leaf", "LarftLeaf", "geqrf"),
    Family("orhr_leaf", ".factor.qr.orhr_leaf", "OrhrLeaf", "geqrf", needs=(8, 0)),
    Family("reflector_copy", ".factor.qr.reflector_copy", "ReflectorCopy", "geqrf"),
    Family("sytrf_panel", ".factor.ldl.sytrf_panel", "SytrfPanel", "sytrf", needs=(8, 0)),
    Family(
        "ldl_triangle",
        ".factor.ldl.ldl_triangle",
        "LdlTriangle",
        "sytrs",
        dtypes=("s", "d"),
        needs=(8, 0),
    ),
    Family("ldl_rows", ".factor.ldl.ldl_rows", "LdlRows", "sytrs"),
    Family("jacobi_eigh", ".factor.eigen.jacobi_eigh", "JacobiEigh", "eigh", successor="jacobi_columns"),
    Family("jacobi_thread", ".factor.eigen.jacobi_thread", "JacobiThread", "eigh"),
    Family("sytrd", ".factor.eigen.sytrd", "Sytrd", "eigh"),
    Family("sytrd_resident", ".factor.eigen.sytrd_resident", "SytrdResident", "eigh"),
    Family("ormtr", ".factor.eigen.ormtr", "Ormtr", "eigh"),
    Family("band_chase", ".factor.eigen.band_chase", "BandChase", "eigh"),
    Family(
        "tridiagonal_merge",
        ".factor.eigen.tridiagonal_merge",
        "TridiagonalMerge",
        "eigh",
        dtypes=("s", "d"),
    ),
    Family(
        "jacobi_columns",
        ".factor.eigen.jacobi_columns",
        "JacobiColumns",
        "svd",
        needs=(9, 0),
    ),
    Family("jacobi_svd", ".factor.eigen.jacobi_svd", "JacobiSvd", "svd"),
    Family("svd_correction", ".factor.eigen.svd_correction", "SvdCorrection", "svd", dtypes=("d", "z")),
    Family("svd_results", ".factor.eigen.svd_results", "SvdResults", "svd", dtypes=("d", "z")),
    Family("restore", ".factor.restore", "Restore", "potrs", dtypes=("s", "d")),
    Family("laswp", ".factor.lu.laswp", "Laswp", "laswp"),
    Family("pivot_moves", ".factor.lu.pivot_moves", "PivotMoves", "laswp", dtypes=("s",)),
    Family("pivot_order", ".factor.lu.pivot_order", "PivotOrder", "getrf", dtypes=("s",)),
    Family("permute_rows", ".factor.lu.permute_rows", "PermuteRows", "getrf", dtypes=("s", "d")),
)
