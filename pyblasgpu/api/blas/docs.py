"""Docstrings of `blas`: a row a routine of Level 3, and what routines share."""

from __future__ import annotations

from typing import NamedTuple

from ..docstrings import Shared

__all__ = ["COMMON", "LEVEL_3", "REAL_ALPHA", "Row", "docstring"]


class Row(NamedTuple):
    """A routine's docstring: shared text, summary, Returns, an example with ``{}`` for the name and with its
    output, own parameters, the function in keyword style (by default of its name), others to see.
    """

    shared: Shared
    summary: str
    returns: str
    example: str
    parameters: str = ""
    keyword: str | None = ""
    others: str = ""


def docstring(stem: str, row: Row) -> str:
    """Return the docstring of a routine before it is completed by what its row shares."""
    keyword = f"pyblasgpu.{row.keyword or stem} : Keyword style, on stacks and any strides.\n"
    functions = ("" if row.keyword is None else keyword) + row.others
    sections = {
        "Parameters": row.parameters.strip("\n"),
        "Returns": row.returns.strip("\n"),
        "See Also": functions.strip(),
        "Examples": f">>> from pyblasgpu import blas\n>>> {row.example.format(f'blas.{stem}')}",
    }
    texts = [f"{name}\n{'-' * len(name)}\n{text}" for name, text in sections.items() if text]
    return "\n\n".join([f"{row.summary}.", *texts])


COMMON = Shared("""
    Parameters
    ----------
    alpha : number
        The factor of the product.
    side : {0, 1} or {'L', 'R'}, default 0
        Whether `a` is the left factor or the right one.
    lower : {0, 1}, default 0
        Whether the lower triangle of `a` is read, else the upper one.
    trans_a, trans_b : {0, 1, 2} or {'N', 'T', 'C'}, default 0
        Each op: the matrix itself, its transpose, its conjugate transpose.
    trans_a : {0, 1, 2} or {'N', 'T', 'C'}, default 0
        The op: the matrix itself, its transpose, its conjugate transpose.
    trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
        The op: the matrix itself, its transpose, its conjugate transpose.
    diag : {0, 1} or {'N', 'U'}, default 0
        Whether the diagonal of `a` is taken to be 1.
    method : {'tensor'}, optional
        Products on tensor cores, see `pyblasgpu.gemm`; by default FMAs. SciPy has no such argument.
    overwrite_b : bool, default False
        Whether `b` may hold the result.
    overwrite_c : bool, default False
        Whether `c` may hold the result.

    Raises
    ------
    ValueError
        When shapes, offsets, increments or flags do not fit.
    TypeError
        When an array or number is complex and the routine real, or has no such cast (long double, objects).
""")

_PRODUCT = Shared(
    """
    Parameters
    ----------
    a : array, shape (m, k), or (k, m) if transposed
        The left factor.
    b : array, shape (k, n), or (n, k) if transposed
        The right factor.
    beta : number, default 0
        The factor of `c`. With 0, `c` is not read.
    c : array, shaped as the result, optional
        The matrix that is added to. By default 0.

    Returns
    -------
    c : array, shape (m, n)
        The result, column-major.
    """,
    COMMON,
)
_ONE_SIDED = Shared(
    """
    Parameters
    ----------
    a : array, shape (m, m), or (n, n) from the right
        A symmetric matrix, of which one triangle is read.
    b : array, shape (m, n)
        The other factor.
    """,
    _PRODUCT,
)
_WITH_TRIANGLE = Shared(
    """
    Parameters
    ----------
    alpha : number
        The factor of `b`.
    a : array, shape (m, m), or (n, n) from the right
        A triangle. The other one, and a unit diagonal, are not read.
    b : array, shape (m, n)
        The right-hand sides.
    side : {0, 1} or {'L', 'R'}, default 0
        Whether op(a) is the left factor or the right one.
    lower : {0, 1}, default 0
        Whether `a` is lower triangular.
    """,
    COMMON,
)
_UPDATE = Shared(
    """
    Parameters
    ----------
    a, b : array, shape (n, k), or (k, n) if transposed
        The factors.
    a : array, shape (n, k), or (k, n) if transposed
        The factor.
    trans : {0, 1} or {'N', 'T'}, default 0
        The op: the matrix itself, its transpose. Real arrays take all of 0, 1, 2. Others raise ValueError,
        where SciPy prints a complaint and returns zeros.
    lower : {0, 1}, default 0
        Whether the lower triangle is computed, else the upper one.

    Returns
    -------
    c : array, shape (n, n)
        The result, column-major; the other triangle is that of `c`, or zeros.
    """,
    _PRODUCT,
)
_HERMITIAN_UPDATE = Shared(
    """
    Parameters
    ----------
    beta : number, default 0
        The factor of `c`, real. With 0, `c` is not read.
    c : array, shaped as the result, optional
        The matrix that is added to; the imaginary parts of its diagonal are not read. By default 0.
    trans : {0, 2} or {'N', 'C'}, default 0
        The op: the matrix itself, its conjugate transpose. Real arrays take all of 0, 1, 2. Others raise
        ValueError, where SciPy prints a complaint and returns zeros.
    """,
    _UPDATE,
)
REAL_ALPHA = "alpha : number\n    The factor of the product, real."
_HERMITIAN = """
a : array, shape (m, m), or (n, n) from the right
    A Hermitian matrix, of which one triangle is read, without the imaginary parts of the diagonal.
"""
_M_BY_N = "c : array, shape (m, n)"
_N_BY_N = "c : array, shape (n, n)"

LEVEL_3 = {
    "gemm": Row(
        _PRODUCT,
        "General matrix product, ``alpha op(a) op(b) + beta c``",
        _M_BY_N,
        "{}(2, [[1, 2], [3, 4]], [[1, 0], [0, 1]]).real.tolist()\n[[2.0, 4.0], [6.0, 8.0]]",
        parameters="""
method : {'3m', 'tensor'}, optional
    The method, see `pyblasgpu.gemm`; by default FMAs. SciPy has no such argument.
""",
        others="pyblasgpu.linalg.matmul : NumPy's signature.",
    ),
    "gemmtr": Row(
        _UPDATE,
        "One triangle of the product ``alpha op(a) op(b) + beta c``, which SciPy lacks",
        _N_BY_N,
        "{}(1, [[1], [2]], [[3, 4]], lower=1).real.tolist()\n[[3.0, 0.0], [6.0, 8.0]]",
        parameters="""
a : array, shape (n, k), or (k, n) if transposed
    The left factor.
b : array, shape (k, n), or (n, k) if transposed
    The right factor.
""",
    ),
    "symm": Row(
        _ONE_SIDED,
        "Product with a symmetric matrix, ``alpha a b + beta c`` or ``alpha b a + beta c``",
        _M_BY_N,
        "{}(1, [[1, 2], [0, 3]], [[1, 0], [0, 1]]).real.tolist()\n[[1.0, 2.0], [2.0, 3.0]]",
    ),
    "hemm": Row(
        _ONE_SIDED,
        "Product with a Hermitian matrix, ``alpha a b + beta c`` or ``alpha b a + beta c``",
        _M_BY_N,
        "{}(1, [[1, 2j], [0, 3]], [[1, 0], [0, 1]]).tolist()\n[[(1+0j), 2j], [-2j, (3+0j)]]",
        _HERMITIAN,
    ),
    "trmm": Row(
        _WITH_TRIANGLE,
        "Product with a triangle, ``alpha op(a) b`` or ``alpha b op(a)``",
        "b : array, shape (m, n)\n    The product, column-major.",
        "{}(1, [[2, 0], [1, 2]], [[4, 8], [4, 8]], lower=1).real.tolist()\n[[8.0, 16.0], [12.0, 24.0]]",
        parameters="""
a : array, shape (m, m), or (n, n) from the right
    A triangle. The other one, and a unit diagonal, are not read. If `a` is larger, its leading part is used.
b : array, shape (m, n)
    The other factor.
""",
    ),
    "trsm": Row(
        _WITH_TRIANGLE,
        "Solution of ``op(a) x = alpha b`` or ``x op(a) = alpha b``, a triangular",
        "x : array, shape (m, n)\n    The solution, column-major.",
        "{}(1, [[2, 0], [1, 2]], [[4, 8], [4, 8]], lower=1).real.tolist()\n[[2.0, 4.0], [1.0, 2.0]]",
        others="pyblasgpu.linalg.solve_triangular : SciPy's signature.",
    ),
    "syrk": Row(
        _UPDATE,
        "One triangle of ``alpha op(a) op(a)^T + beta c``",
        _N_BY_N,
        "{}(1, [[1], [2]]).real.tolist()\n[[1.0, 2.0], [0.0, 4.0]]",
    ),
    "herk": Row(
        _HERMITIAN_UPDATE,
        "One triangle of ``alpha op(a) op(a)^H + beta c``",
        _N_BY_N,
        "{}(1, [[1], [2j]]).tolist()\n[[(1+0j), -2j], [0j, (4+0j)]]",
        REAL_ALPHA,
    ),
    "syr2k": Row(
        _UPDATE,
        "One triangle of ``alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c``",
        _N_BY_N,
        "{}(1, [[1], [2]], [[0.5], [1]]).real.tolist()\n[[1.0, 2.0], [0.0, 4.0]]",
    ),
    "her2k": Row(
        _HERMITIAN_UPDATE,
        "One triangle of ``alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H + beta c``",
        _N_BY_N,
        "{}(1, [[1], [2j]], [[0.5], [1j]]).tolist()\n[[(1+0j), -2j], [0j, (4+0j)]]",
    ),
}
