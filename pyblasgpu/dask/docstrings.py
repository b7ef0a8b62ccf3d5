"""What docstrings of functions on Dask arrays share."""

from __future__ import annotations

from ..api.docstrings import documenting

__all__ = ["documented"]

documented = documenting(
    {
        "cut_triangle": """
Of chunks in the other triangle nothing is computed. It is cut along both dimensions as its rows are;
else it is rechunked.
""",
        "alpha": """
alpha : number, default 1
    A factor.
""",
        "trans": """
op: nothing, the transpose, or the conjugate transpose.
""",
        "triangle_flags": """
lower : bool or {'L', 'U'}, default False
    Which triangle of `a` is read.
trans : {'N', 'T', 'C'}, default 'N'
    op: nothing, the transpose, or the conjugate transpose.
unit_diag : bool or {'N', 'U'}, default False
    The diagonal is taken to be ones, and not read.
""",
        "as_b": """
Returns
-------
dask array, shape (m, n)
    In the chunks of `b`, as `a` cuts it.
""",
        "updated": """
a : dask array, shape (n, k), or (k, n) if transposed
    Its chunks cut the result and the inner dimension.
""",
        "c_lower": """
c : dask array, shape (n, n), optional
    The matrix that `beta` scales; by default none. Its other triangle is that of the result.
lower : bool or {'L', 'U'}, default False
    Which triangle is updated.
""",
        "returns_triangle": """
Returns
-------
dask array, shape (n, n)
    Its other triangle is that of `c`, or zero.
""",
        "update_error": """
ValueError
    When shapes do not fit, a flag is unknown, or `beta` has no `c`.
""",
        "dtype_error": """
TypeError
    When the arrays' common dtype is none of float32, float64, complex64, complex128.
""",
    }
)
