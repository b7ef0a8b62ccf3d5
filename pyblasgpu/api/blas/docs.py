"""Docstrings of `blas`: summary and example are written, all else is made from signature and row."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any, NamedTuple

from ...routine import Matrix, Routine
from ...routine_table import ROUTINES
from ...types import DTYPES, TENSOR

__all__ = ["RAISES", "TEXTS", "Text", "arguments_of", "docstring"]


class Text(NamedTuple):
    """The written parts of a routine's docstring.

    Attributes
    ----------
    summary : str
        The result in a line.
    example : str
        A call with ``{}`` for the function, and its output in the next line.
    result : str
        SciPy's names of the results, where they are not that of the row's output.
    keyword : str or None
        The function in keyword style, by default of the routine's name; None: there is none.
    own : mapping of str to (str, str)
        Types and descriptions of parameters of its own.
    returns : str
        Type and description of the results, where there is no row.
    others : tuple of str
        Other functions to see.
    """

    summary: str
    example: str
    result: str = ""
    keyword: str | None = ""
    own: Mapping[str, tuple[str, str]] = {}
    returns: str = ""
    others: tuple[str, ...] = ()


_ROTATED = "x, y = {}([1, 2], [3, 4], %s)\n>>> x.real.tolist(), y.real.tolist()\n([3.0, 4.0], [-1.0, -2.0])"
_SQUARE = "{}(1, [[1, 2], [0, 3]], [[1, 0], [0, 1]]).real.tolist()\n[[1.0, 2.0], [2.0, 3.0]]"
_RANK_1 = "{}(1, [1, 2], lower=1).real.tolist()\n[[1.0, 0.0], [2.0, 4.0]]"
_RANK_2 = "{}(1, [1, 2], [0.5, 1], lower=1).real.tolist()\n[[1.0, 0.0], [2.0, 4.0]]"
_SYMV = "{}(1, [[1, 2], [0, 3]], [1, 1]).real.tolist()\n[3.0, 5.0]"
_GER = "{}(1, [1, 2], [3, 4]).real.tolist()\n[[3.0, 4.0], [6.0, 8.0]]"
_STEP = ("{1, -1}, default 1", "With -1 the vector runs backwards.")
_UNUSED = ("bool, default True", "Without effect: the vector is not written.")
_GER_OWN = {"incx": _STEP, "incy": _STEP, "overwrite_x": _UNUSED, "overwrite_y": _UNUSED}
_OUTER = "Update of a matrix by the outer product of two vectors"
_DOT = "abs({}([1, 2], [3, 4]))\n11.0"
_FACTOR = {"a": ("number, default 1", "The factor of `x`. With 0, `x` is not read.")}
_ROTATION = {"c": ("real number", "The cosine."), "s": ("real number", "The sine.")}
_ROTM = {
    "param": (
        "sequence of five numbers",
        "The flag and h11, h21, h12, h22, as `drotmg` makes them; see `pyblasgpu.rotm`.",
    )
}

TEXTS = {
    "axpy": Text(
        "Sum of vectors, ``y := a x + y``",
        "{}([1, 2], [3, 4], a=2).real.tolist()\n[5.0, 8.0]",
        "z",
        own=_FACTOR,
    ),
    "copy": Text("Copy of a vector, ``y := x``", "{}([1, 2], [0, 0]).real.tolist()\n[1.0, 2.0]"),
    "swap": Text(
        "Exchange of two vectors, ``x, y := y, x``",
        "[z.real.tolist() for z in {}([1, 2], [3, 4])]\n[[3.0, 4.0], [1.0, 2.0]]",
        "x, y",
    ),
    "scal": Text(
        "Multiple of a vector, ``x := a x``",
        "{}(2, [1, 2]).real.tolist()\n[2.0, 4.0]",
        "x",
        own={"a": ("number", "The factor, real for a real routine and for csscal and zdscal.")},
    ),
    "rot": Text("Plane rotation, ``x, y := c x + s y, c y - s x``", _ROTATED % "0, 1", "x, y", own=_ROTATION),
    "rotm": Text(
        "Modified plane rotation, ``x, y := h11 x + h12 y, h21 x + h22 y``",
        _ROTATED % "[-1, 0, -1, 1, 0]",
        "x, y",
        own=_ROTM,
    ),
    "dot": Text("Inner product of vectors, ``sum(x y)``", _DOT, "xy"),
    "dotc": Text("Inner product of vectors, ``sum(conj(x) y)``", _DOT, "xy", "dot"),
    "nrm2": Text(
        "Euclidean norm of a vector, without overflow or underflow",
        "{}([3, 4])\n5.0",
        "n2",
        own={"incx": ("int, default 1", "The step in `x`, positive.")},
    ),
    "asum": Text(
        "Sum of absolute values of real and imaginary parts",
        "{}([3, 4])\n7.0",
        "s",
        own={"incx": ("int, default 1", "The step in `x`. With a negative one the sum is 0.")},
    ),
    "iamax": Text(
        "Index, from 0, of the first element with largest ``|Re x| + |Im x|``",
        "{}([3, 4])\n1",
        "k",
        own={"incx": ("int, default 1", "The step in `x`. With a negative one the index is -1.")},
    ),
    "gemv": Text(
        "Product of a matrix and a vector, ``alpha op(a) x + beta y``",
        "{}(1, [[1, 2], [3, 4]], [1, 1]).real.tolist()\n[3.0, 7.0]",
    ),
    "symv": Text("Product of a symmetric matrix and a vector, ``alpha a x + beta y``", _SYMV),
    "hemv": Text("Product of a Hermitian matrix and a vector, ``alpha a x + beta y``", _SYMV),
    "trmv": Text(
        "Product of a triangular matrix and a vector, ``op(a) x``",
        "{}([[2, 0], [1, 2]], [4, 4], lower=1).real.tolist()\n[8.0, 12.0]",
        "x",
    ),
    "trsv": Text(
        "Solution of a triangular system, the vector y with ``op(a) y = x``",
        "{}([[2, 0], [1, 2]], [4, 4], lower=1).real.tolist()\n[2.0, 1.0]",
        "xout",
    ),
    "ger": Text(f"{_OUTER}, ``alpha x y^T + a``", _GER, own=_GER_OWN),
    "gerc": Text(f"{_OUTER}, ``alpha x y^H + a``", _GER, keyword="ger", own=_GER_OWN),
    "syr": Text("Symmetric update of rank 1, of one triangle, ``alpha x x^T + a``", _RANK_1),
    "her": Text("Hermitian update of rank 1, of one triangle, ``alpha x x^H + a``", _RANK_1),
    "syr2": Text("Symmetric update of rank 2, of one triangle, ``alpha x y^T + alpha y x^T + a``", _RANK_2),
    "her2": Text(
        "Hermitian update of rank 2, of one triangle, ``alpha x y^H + conj(alpha) y x^H + a``", _RANK_2
    ),
    "gemm": Text(
        "General matrix product, ``alpha op(a) op(b) + beta c``",
        "{}(2, [[1, 2], [3, 4]], [[1, 0], [0, 1]]).real.tolist()\n[[2.0, 4.0], [6.0, 8.0]]",
        others=("pyblasgpu.linalg.matmul : NumPy's signature.",),
    ),
    "gemmtr": Text(
        "One triangle of the product ``alpha op(a) op(b) + beta c``, which SciPy lacks",
        "{}(1, [[1], [2]], [[3, 4]], lower=1).real.tolist()\n[[3.0, 0.0], [6.0, 8.0]]",
    ),
    "symm": Text(
        "Product with a symmetric matrix, ``alpha a b + beta c`` or ``alpha b a + beta c``", _SQUARE
    ),
    "hemm": Text(
        "Product with a Hermitian matrix, ``alpha a b + beta c`` or ``alpha b a + beta c``",
        "{}(1, [[1, 2j], [0, 3]], [[1, 0], [0, 1]]).tolist()\n[[(1+0j), 2j], [-2j, (3+0j)]]",
    ),
    "trmm": Text(
        "Product with a triangle, ``alpha op(a) b`` or ``alpha b op(a)``",
        "{}(1, [[2, 0], [1, 2]], [[4, 8], [4, 8]], lower=1).real.tolist()\n[[8.0, 16.0], [12.0, 24.0]]",
        own={
            "a": (
                "array, shape (m, m), or (n, n) from the right",
                "A triangle. The other one, and a unit diagonal, are not read. If `a` is larger, its\n"
                "leading part is used.",
            )
        },
    ),
    "trsm": Text(
        "Solution of ``op(a) x = alpha b`` or ``x op(a) = alpha b``, a triangular",
        "{}(1, [[2, 0], [1, 2]], [[4, 8], [4, 8]], lower=1).real.tolist()\n[[2.0, 4.0], [1.0, 2.0]]",
        "x",
        own={"b": ("array, shape (m, n)", "The right-hand sides.")},
        others=("pyblasgpu.linalg.solve_triangular : SciPy's signature.",),
    ),
    "syrk": Text(
        "One triangle of ``alpha op(a) op(a)^T + beta c``",
        "{}(1, [[1], [2]]).real.tolist()\n[[1.0, 2.0], [0.0, 4.0]]",
    ),
    "herk": Text(
        "One triangle of ``alpha op(a) op(a)^H + beta c``",
        "{}(1, [[1], [2j]]).tolist()\n[[(1+0j), -2j], [0j, (4+0j)]]",
    ),
    "syr2k": Text(
        "One triangle of ``alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c``",
        "{}(1, [[1], [2]], [[0.5], [1]]).real.tolist()\n[[1.0, 2.0], [0.0, 4.0]]",
    ),
    "her2k": Text(
        "One triangle of ``alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H + beta c``",
        "{}(1, [[1], [2j]], [[0.5], [1j]]).tolist()\n[[(1+0j), -2j], [0j, (4+0j)]]",
    ),
}

_STEP_OF = "The step from one element of `{}` to the next; with a negative one the vector runs backwards."
_OP = "The op: the matrix itself, its transpose, its conjugate transpose."
#: Types and descriptions of parameters that are the same in all routines; defaults are the signature's.
_COMMON = {
    "alpha": ("number", "The factor of the product."),
    "side": ("{0, 1} or {'L', 'R'}", "Whether `a` is the left factor or the right one."),
    "diag": ("{0, 1} or {'N', 'U'}", "Whether the diagonal of `a` is taken to be 1."),
    **dict.fromkeys(("trans", "trans_a", "trans_b"), ("{0, 1, 2} or {'N', 'T', 'C'}", _OP)),
    "n": ("int", "The number of elements; by default as many as there are."),
    **{f"inc{name}": ("int", _STEP_OF.format(name)) for name in "xy"},
    **{f"off{name}": ("int", f"The first element of `{name}` in memory.") for name in "xy"},
    **{
        f"overwrite_{name}": ("bool", f"Whether `{name}` may hold the result.")
        for name in ("a", "ap", "b", "c", "x", "y")
    },
}
_OTHERS_ARE_REFUSED = """Real arrays take all of 0, 1, 2. Others raise
ValueError, where SciPy prints a complaint and returns zeros."""
RAISES = """ValueError
    When shapes, offsets, increments or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects)."""
_OVERLAP = "OverlapError\n    When the arrays that are written overlap.\n"


def docstring(function: Any, stem: str, name: str, types: str, text: Text, raises: str = RAISES) -> str:
    """Return the docstring of a function; `types` says in which dtype it computes."""
    row = None if text.keyword is None else ROUTINES[text.keyword or stem]
    result = text.result or (row.output.name if row else "")
    parameters = signature(function).parameters
    see = "scipy.linalg.blas : The module whose function is called."
    if row:
        see = "\n".join([f"pyblasgpu.{row.stem} : Keyword style, on stacks and any strides.", *text.others])
    sections = {
        "Parameters": "\n".join(
            f"{each.name} : {_described(each, row, text)}" for each in parameters.values()
        ),
        "Returns": f"{result} : {_returns(row, text)}",
        "Raises": _OVERLAP + raises if row and ", " in result else raises,
        "See Also": see,
        "Examples": f">>> from pyblasgpu import blas\n>>> {text.example.format(f'blas.{name}')}",
    }
    parts = [f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items()]
    call = f"``{result} = {name}({arguments_of(parameters)})``"
    return "\n\n".join([f"{text.summary}, {types}.", call, *parts]) + "\n"


def arguments_of(parameters: Mapping[str, Parameter]) -> str:
    """The arguments of a function as f2py writes them."""
    needed = [name for name, each in parameters.items() if each.default is Parameter.empty]
    optional = ", ".join(name for name in parameters if name not in needed)
    return ", ".join([*needed, *([f"[{optional}]"] if optional else [])])


def _described(parameter: Parameter, row: Routine | None, text: Text) -> str:
    """Type, default and description of a parameter."""
    kind, description = text.own.get(parameter.name) or _known(parameter.name, row)
    default = parameter.default
    if default is None:
        kind += ", optional"
    elif default is not Parameter.empty and "default" not in kind:
        kind += f", default {bool(default) if kind == 'bool' else default}"
    return "\n    ".join([kind, *description.split("\n")])


def _known(name: str, row: Routine | None) -> tuple[str, str]:
    """Type and description of a parameter by the row of its routine."""
    if row is None:
        return _COMMON[name]
    matrices = {matrix.name: matrix for matrix in row.matrices}
    if name in matrices:
        return _array(matrices[name], row)
    if name == "beta":
        real, added = ", real" if name in row.real else "", row.output.name
        return "number", f"The factor of `{added}`{real}. With 0, `{added}` is not read."
    if name == "lower":
        return "{0, 1}", _lower(row)
    if name == "method":
        what = "The method" if len(row.methods) > 1 else "Products on tensor cores"
        kind = "{" + ", ".join(map(repr, row.methods or (TENSOR,))) + "}"
        return kind, f"{what}, see `pyblasgpu.gemm`; by default FMAs. SciPy has no such argument."
    if name == "trans" and len(values := row.values("trans", DTYPES["z"])) == 2:
        number, turned = (2, "conjugate transpose") if row.hermitian else (1, "transpose")
        kind = f"{{0, {number}}} or {{'N', '{values[1].value}'}}"
        return kind, f"The op: the matrix itself, its {turned}. {_OTHERS_ARE_REFUSED}"
    kind, description = _COMMON[name]
    return kind, description.replace(".", ", real.") if name in row.real else description


def _lower(row: Routine) -> str:
    if row.is_update:
        return "Whether the lower triangle is computed, else the upper one."
    if "diag" in row.flags:
        return "Whether `a` is lower triangular."
    return "Whether the lower triangle of `a` is read, else the upper one."


def _array(matrix: Matrix, row: Routine) -> tuple[str, str]:
    """Type and description of an operand."""
    is_vector = matrix.cols == "1"
    kind = "array" if is_vector else f"array, shape {_shape(matrix)}"
    if matrix is row.output and matrix not in row.inputs and row.group != "level1" and "alpha" in row.scalars:
        is_real = row.hermitian and row.is_update
        unread = "; the imaginary parts of its diagonal are not read" if is_real else ""
        return kind, f"The {'vector' if is_vector else 'matrix'} that is added to{unread}. By default 0."
    if is_vector:
        return kind, "The vector; an array of several dimensions counts in the order of columns."
    if not matrix.is_half:
        others = "The matrix." if row.group == "level2" else "A factor."
        return kind, {"trans_a": "The left factor.", "trans_b": "The right factor."}.get(matrix.op, others)
    if "diag" in row.flags:
        return kind, "A triangle. The other one, and a unit diagonal, are not read."
    if row.hermitian:
        read = "of which one triangle is read, without the imaginary parts of the diagonal"
        return kind, f"A Hermitian matrix, {read}."
    return kind, "A symmetric matrix, of which one triangle is read."


def _shape(matrix: Matrix) -> str:
    if matrix.rows == "order":
        return "(m, m), or (n, n) from the right"
    rows, cols = ("n" if each == "m" and matrix.is_half else each for each in (matrix.rows, matrix.cols))
    transposed = f", or ({cols}, {rows}) if transposed" if matrix.op and rows != cols else ""
    return f"({rows}, {cols}){transposed}"


_NUMBER = """number or array
    The result: a number for arrays in host memory, else a 0-d array on the device, without
    synchronization."""
_WRITTEN = """array
    The argument, with the result, where it may be written, is contiguous by columns and of the
    routine's dtype; else a copy."""


def _returns(row: Routine | None, text: Text) -> str:
    """Type and description of the results."""
    if row is None:
        return text.returns
    if row.group == "level1":
        return _NUMBER if row.output.name == "out" else _WRITTEN
    if row.output.cols == "1":
        kept = "`y` as it was, or zeros in a new one" if "beta" in row.scalars else "`x` as it was"
        return f"array\n    The result; between its elements {kept}."
    triangle = f"; the other triangle is that of `{row.output.name}`, or zeros" if row.is_update else ""
    return f"array, shape {_shape(row.output)}\n    The result, column-major{triangle}."
