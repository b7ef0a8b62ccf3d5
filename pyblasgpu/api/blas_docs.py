"""The docstrings of `blas`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from .docstrings import examples_of, filled, see_also

__all__ = ["gemm", "gemmtr", "rank_k", "symm", "triangular"]

#: What the docstrings share.
_PARTS = {
    "examples": examples_of("blas"),
    "alpha": """
alpha : number
    The factor of the product.
""",
    "beta_c": """
beta : number, default 0
    The factor of `c`. With 0, `c` is not read.
c : array, shape (m, n), optional
    What is added to. By default 0.
""",
    "beta": """
beta : number, default 0
    The factor of `c`. With 0, `c` is not read.
""",
    "square_c": """
c : array, shape (n, n), optional
    What is added to. By default 0.
""",
    "trans_ab": """
trans_a, trans_b : {0, 1, 2} or {'N', 'T', 'C'}, default 0
    Each op: as it is, transposed, conjugate transposed.
""",
    "computed_triangle": """
lower : {0, 1}, default 0
    Whether the lower triangle is computed, else the upper one.
""",
    "overwrite_c": """
overwrite_c : bool, default False
    Whether `c` may hold the result.
""",
    "method": """
method : {'tensor'}, optional
    Products on tensor cores, see `pyblasgpu.gemm`; by default FMAs. SciPy has no such argument.
""",
    "product_method": """
method : {'3m', 'tensor'}, optional
    As that of `pyblasgpu.gemm`; by default FMAs. SciPy has no such argument.
""",
    "result": """
c : array, shape (m, n)
    Column-major.
""",
    "square_result": """
c : array, shape (n, n)
    Column-major; the other triangle is that of `c`, or zeros.
""",
    "raises": """
Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
""",
}

#: Functions beside the one in keyword style.
_OTHERS = {
    "gemm": {"linalg__matmul": "With NumPy's signature."},
    "trsm": {"linalg__solve_triangular": "With SciPy's signature."},
}

_GEMM = """General matrix product, ``alpha op(a) op(b) + beta c``%(types)s.

``c = %(name)s(alpha, a, b, [beta, c, trans_a, trans_b, overwrite_c, method])``

Parameters
----------
%(alpha)s
a : array, shape (m, k), or (k, m) if transposed
    The left factor.
b : array, shape (k, n), or (n, k) if transposed
    The right factor.
%(beta_c)s
%(trans_ab)s
%(overwrite_c)s
%(product_method)s

Returns
-------
%(result)s

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(2, [[1, 2], [3, 4]], [[1, 0], [0, 1]]).real.tolist()
[[2.0, 4.0], [6.0, 8.0]]
"""

_TRIANGULAR = """%(summary)s%(types)s.

``%(output)s = %(name)s(alpha, a, b, [side, lower, trans_a, diag, overwrite_b, method])``

Parameters
----------
alpha : number
    The factor of `b`.
a : array, shape (m, m), or (n, n) from the right
    A triangle. %(a_note)sThe other one, and a unit diagonal, are not read.
b : array, shape (m, n)
    %(b_note)s
side : {0, 1} or {'L', 'R'}, default 0
    Whether op(a) stands to the left or to the right.
lower : {0, 1}, default 0
    Whether `a` is lower triangular.
trans_a : {0, 1, 2} or {'N', 'T', 'C'}, default 0
    The op: as it is, transposed, conjugate transposed.
diag : {0, 1} or {'N', 'U'}, default 0
    Whether the diagonal of `a` is taken to be 1.
overwrite_b : bool, default False
    Whether `b` may hold the result.
%(method)s

Returns
-------
%(output)s : array, shape (m, n)
    Column-major.

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, [[2, 0], [1, 2]], [[4, 8], [4, 8]], lower=1).real.tolist()
%(example)s
"""

_SYMM = """Product with a %(kind)s matrix, ``alpha a b + beta c`` or ``alpha b a + beta c``%(types)s.

``c = %(name)s(alpha, a, b, [beta, c, side, lower, overwrite_c, method])``

Parameters
----------
%(alpha)s
a : array, shape (m, m), or (n, n) from the right
    One triangle of it is read%(diagonal)s.
b : array, shape (m, n)
    The other factor.
%(beta_c)s
side : {0, 1} or {'L', 'R'}, default 0
    Whether `a` stands to the left or to the right.
lower : {0, 1}, default 0
    Whether the lower triangle of `a` is read, else the upper one.
%(overwrite_c)s
%(method)s

Returns
-------
%(result)s

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, [[1, 2], [0, 3]], [[1, 0], [0, 1]]).real.tolist()
[[1.0, 2.0], [2.0, 3.0]]
"""

_RANK_K = """One triangle of ``%(sum)s + beta c``%(types)s.

``c = %(name)s(alpha, %(inputs)s, [beta, c, trans, lower, overwrite_c, method])``

Parameters
----------
alpha : number
    %(alpha_note)sThe factor of the product.
%(inputs)s : array, shape (n, k), or (k, n) if transposed
    %(inputs_note)s
%(beta)s%(beta_note)s
%(square_c)s%(diagonal)s
trans : {0, %(code)s} or {'N', '%(letter)s'}, default 0
    The op: as it is, %(op)s. Real arrays take all of 0, 1, 2.
%(computed_triangle)s
%(overwrite_c)s
%(method)s

Returns
-------
%(square_result)s

%(raises)s

%(see_also)s

Notes
-----
Where SciPy prints a complaint and returns zeros, ValueError is raised.

%(examples)s
>>> blas.%(name)s(1, %(example)s).real.tolist()
[[1.0, 2.0], [0.0, 4.0]]
"""

_GEMMTR = """One triangle of the product ``alpha op(a) op(b) + beta c``%(types)s.

``c = %(name)s(alpha, a, b, [beta, c, trans_a, trans_b, lower, overwrite_c])``

SciPy has no such function.

Parameters
----------
%(alpha)s
a : array, shape (n, k), or (k, n) if transposed
    The left factor.
b : array, shape (k, n), or (n, k) if transposed
    The right factor.
%(beta)s
%(square_c)s
%(trans_ab)s
%(computed_triangle)s
%(overwrite_c)s

Returns
-------
%(square_result)s

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, [[1], [2]], [[3, 4]], lower=1).real.tolist()
[[3.0, 0.0], [6.0, 8.0]]
"""

_TRIANGULAR_WORDS = {
    "trmm": {
        "output": "b",
        "summary": "Product with a triangle, ``alpha op(a) b`` or ``alpha b op(a)``",
        "a_note": "If `a` is larger, its leading part is used. ",
        "b_note": "The other factor.",
        "example": "[[8.0, 16.0], [12.0, 24.0]]",
    },
    "trsm": {
        "output": "x",
        "summary": "Solution of ``op(a) x = alpha b`` or ``x op(a) = alpha b``, a triangular",
        "a_note": "",
        "b_note": "The right-hand sides.",
        "example": "[[2.0, 4.0], [1.0, 2.0]]",
    },
}
_SYMM_WORDS = {
    "symm": {"kind": "symmetric", "diagonal": ""},
    "hemm": {"kind": "Hermitian", "diagonal": ", without the imaginary parts of its diagonal"},
}
_SYMMETRIC = {
    "alpha_note": "",
    "beta_note": "",
    "diagonal": "",
    "code": "1",
    "letter": "T",
    "op": "transposed",
}
_HERMITIAN = {
    "alpha_note": "",
    "beta_note": " It is real.",
    "diagonal": " The imaginary parts of the diagonal are not read.",
    "code": "2",
    "letter": "C",
    "op": "conjugate transposed",
}
_RANK_K_WORDS = {
    "syrk": {**_SYMMETRIC, "inputs": "a", "sum": "alpha op(a) op(a)^T"},
    "herk": {**_HERMITIAN, "inputs": "a", "sum": "alpha op(a) op(a)^H", "alpha_note": "Real. "},
    "syr2k": {**_SYMMETRIC, "inputs": "a, b", "sum": "alpha (op(a) op(b)^T + op(b) op(a)^T)"},
    "her2k": {
        **_HERMITIAN,
        "inputs": "a, b",
        "sum": "alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H",
    },
}


def gemm(name: str, types: str) -> str:
    """The docstring of GEMM; `types` is what its summary says about dtypes."""
    return _of(_GEMM, "gemm", name, types)


def triangular(which: str, name: str, types: str) -> str:
    """The docstring of TRMM or TRSM (`which`)."""
    return _of(_TRIANGULAR, which, name, types, _TRIANGULAR_WORDS[which])


def symm(which: str, name: str, types: str) -> str:
    """The docstring of SYMM or HEMM (`which`)."""
    return _of(_SYMM, which, name, types, _SYMM_WORDS[which])


def rank_k(which: str, name: str, types: str) -> str:
    """The docstring of SYRK, HERK, SYR2K or HER2K (`which`)."""
    inputs_note = "The factors." if which.endswith("2k") else "The factor."
    example = "[[1], [2]], [[0.5], [1]]" if which.endswith("2k") else "[[1], [2]]"
    words = {**_RANK_K_WORDS[which], "inputs_note": inputs_note, "example": example}
    return _of(_RANK_K, which, name, types, words)


def gemmtr(name: str, types: str) -> str:
    """The docstring of GEMMTR."""
    return _of(_GEMMTR, "gemmtr", name, types)


def _of(template: str, stem: str, name: str, types: str, words: dict[str, str] | None = None) -> str:
    others = see_also(**{stem: "In keyword style.", **_OTHERS.get(stem, {})})
    return filled(template, {**_PARTS, **(words or {}), "name": name, "types": types, "see_also": others})
