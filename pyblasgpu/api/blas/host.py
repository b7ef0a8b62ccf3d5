"""The routines of `blas` for the processor alone: of banded and packed matrices, and of a few numbers.

Arrays on a device are refused, as there are no kernels for them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from types import SimpleNamespace
from typing import Any, NamedTuple

from ...types import DTYPES, Dtype
from ..processor import on_processor
from .banded import general_product, symmetric_product, triangle, update
from .docs import Text
from .functions import dressed
from .rotations import rotg, rotmg

__all__ = ["FUNCTIONS"]

_Y = "incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0"
_TRIANGLE = "incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0"
_ONE = "incx=1, offx=0, lower=0, overwrite_ap=0"
_TWO = "incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0"


class _Routine(NamedTuple):
    """A routine: letters, what is computed, SciPy's result and parameters, an example with ``{}`` for the
    name, and ``compute(name, dtype, stem, arguments)``.
    """

    letters: str
    summary: str
    result: str
    parameters: str
    example: str
    compute: Callable[[str, Dtype, str, Any], Any]


#: By stem.
_ROUTINES = {
    "gbmv": _Routine(
        "sdcz",
        "Product of a banded matrix and a vector",
        "yout",
        f"m, n, kl, ku, alpha, a, x, {_Y}, trans=0, overwrite_y=0",
        "{}(2, 2, 1, 1, 1, [[0, 2], [1, 4], [3, 0]], [1, 1]).real.tolist()\n[3.0, 7.0]",
        general_product,
    ),
    "sbmv": _Routine(
        "sd",
        "Product of a symmetric banded matrix and a vector",
        "yout",
        f"k, alpha, a, x, {_Y}, lower=0, overwrite_y=0",
        "{}(1, 1, [[0, 2], [1, 3]], [1, 1]).real.tolist()\n[3.0, 5.0]",
        symmetric_product,
    ),
    "hbmv": _Routine(
        "cz",
        "Product of a Hermitian banded matrix and a vector",
        "yout",
        f"k, alpha, a, x, {_Y}, lower=0, overwrite_y=0",
        "{}(1, 1, [[0, 2], [1, 3]], [1, 1]).real.tolist()\n[3.0, 5.0]",
        symmetric_product,
    ),
    "tbmv": _Routine(
        "sdcz",
        "Product of a triangular banded matrix and a vector",
        "xout",
        f"k, a, x, {_TRIANGLE}",
        "{}(1, [[0, 2], [1, 3]], [1, 1]).real.tolist()\n[3.0, 3.0]",
        triangle,
    ),
    "tbsv": _Routine(
        "sdcz",
        "Solution of a triangular banded system",
        "xout",
        f"k, a, x, {_TRIANGLE}",
        "{}(1, [[0, 2], [1, 3]], [3, 3]).real.tolist()\n[1.0, 1.0]",
        triangle,
    ),
    "spmv": _Routine(
        "sdcz",
        "Product of a symmetric packed matrix and a vector",
        "yout",
        f"n, alpha, ap, x, {_Y}, lower=0, overwrite_y=0",
        "{}(2, 1, [1, 2, 3], [1, 1]).real.tolist()\n[3.0, 5.0]",
        symmetric_product,
    ),
    "hpmv": _Routine(
        "cz",
        "Product of a Hermitian packed matrix and a vector",
        "yout",
        f"n, alpha, ap, x, {_Y}, lower=0, overwrite_y=0",
        "{}(2, 1, [1, 2, 3], [1, 1]).real.tolist()\n[3.0, 5.0]",
        symmetric_product,
    ),
    "spr": _Routine(
        "sdcz",
        "Update of a symmetric packed matrix by a vector",
        "apu",
        f"n, alpha, x, ap, {_ONE}",
        "{}(2, 1, [1, 2], [0, 0, 0]).real.tolist()\n[1.0, 2.0, 4.0]",
        update,
    ),
    "hpr": _Routine(
        "cz",
        "Update of a Hermitian packed matrix by a vector",
        "apu",
        f"n, alpha, x, ap, {_ONE}",
        "{}(2, 1, [1, 2], [0, 0, 0]).real.tolist()\n[1.0, 2.0, 4.0]",
        update,
    ),
    "spr2": _Routine(
        "sd",
        "Update of a symmetric packed matrix by two vectors",
        "apu",
        f"n, alpha, x, y, ap, {_TWO}",
        "{}(2, 1, [1, 2], [1, 1], [0, 0, 0]).real.tolist()\n[2.0, 3.0, 4.0]",
        update,
    ),
    "hpr2": _Routine(
        "cz",
        "Update of a Hermitian packed matrix by two vectors",
        "apu",
        f"n, alpha, x, y, ap, {_TWO}",
        "{}(2, 1, [1, 2], [1, 1], [0, 0, 0]).real.tolist()\n[2.0, 3.0, 4.0]",
        update,
    ),
    "tpmv": _Routine(
        "sdcz",
        "Product of a triangular packed matrix and a vector",
        "xout",
        f"n, ap, x, {_TRIANGLE}",
        "{}(2, [1, 2, 3], [1, 1]).real.tolist()\n[3.0, 3.0]",
        triangle,
    ),
    "tpsv": _Routine(
        "sdcz",
        "Solution of a triangular packed system",
        "xout",
        f"n, ap, x, {_TRIANGLE}",
        "{}(2, [1, 2, 3], [3, 3]).real.tolist()\n[1.0, 1.0]",
        triangle,
    ),
    "rotg": _Routine(
        "sdcz",
        "Cosine and sine of the plane rotation that makes b zero",
        "c, s",
        "a, b",
        "[round(abs(z), 3) for z in {}(3, 4)]\n[0.6, 0.8]",
        rotg,
    ),
    "rotmg": _Routine(
        "sd",
        "The parameters of a modified plane rotation",
        "param",
        "d1, d2, x1, y1",
        "{}(1, 1, 1, 0).tolist()\n[-2.0, 0.0, 0.0, 0.0, 0.0]",
        rotmg,
    ),
}

#: Types and descriptions of parameters, and of results by SciPy's names.
_ELEMENT = ("number", "An element that is rotated.")
_OWN = {
    "m": ("int", "Rows of the matrix."),
    "n": ("int", "Order of the matrix, or its columns."),
    "k": ("int", "Diagonals of the matrix besides the main one, above or below it."),
    "kl": ("int", "Diagonals below the main one."),
    "ku": ("int", "Diagonals above the main one."),
    "a": ("array", "The diagonals, as the BLAS keeps banded matrices."),
    "ap": ("array", "The columns of a triangle, one after the other."),
    "x": ("array", "The array that holds the vector."),
    "y": ("array", "The array that holds the second vector; that of a product is added to, by default 0."),
    "beta": ("number", "The factor of `y`."),
    "lower": ("int", "Whether the lower triangle is kept."),
    "trans": ("int", "1: transposed, 2: conjugate transposed."),
    "diag": ("int", "Whether the diagonal is taken to be 1."),
}
_ROTATED = {"a": _ELEMENT, "b": _ELEMENT, "x1": _ELEMENT, "y1": _ELEMENT}
_ROTATED |= dict.fromkeys(("d1", "d2"), ("number", "A scaling factor of a row."))
_RETURNS = {
    "yout": "array\n    The result; between its elements `y` as it was, or zeros in a new one.",
    "xout": "array\n    The result; between its elements `x` as it was.",
    "apu": "array\n    The updated triangle, packed as `ap`.",
    "c, s": "number\n    Cosine, real, and sine.",
    "param": "array, shape (5,)\n    The flag and h11, h21, h12, h22, as `pyblasgpu.rotm` takes them.",
}
_RAISES = """ValueError
    When a flag is none, or an array lacks elements.
TypeError
    When an array or a number is complex and the routine is not, or arrays are of different libraries.
NotImplementedError
    When an array is on a device."""


def _make(stem: str, dtype: Dtype) -> Callable[..., Any]:
    routine = _ROUTINES[stem]
    name, signature = dtype.letter + stem, _signature(routine.parameters)
    arrays = [each for each in signature.parameters if each in ("a", "ap", "x", "y")]
    arrays = arrays if "x" in arrays else []  # rotations have numbers alone
    defaults = {each.name: each.default for each in signature.parameters.values()}
    names, needed = tuple(defaults), {key for key, value in defaults.items() if value is Parameter.empty}

    def function(*arguments: Any, **options: Any) -> Any:
        given = dict(zip(names, arguments, strict=False)) | options
        if len(given) < len(arguments) + len(options) or not needed <= given.keys() <= defaults.keys():
            signature.bind(*arguments, **options)  # which raises
        given = defaults | given
        with on_processor(name, {argument: given[argument] for argument in arrays}, "BLAS"):
            return routine.compute(name, dtype, stem, SimpleNamespace(**given))

    function.__signature__ = signature  # type: ignore[attr-defined]
    summary = routine.summary if routine.compute is rotg else f"{routine.summary}, by SciPy's BLAS"
    result, own = routine.result, _OWN if arrays else _ROTATED
    text = Text(summary, routine.example, result, keyword=None, own=own, returns=_RETURNS[result])
    return dressed(function, stem, name, dtype, text, _RAISES)


def _signature(parameters: str) -> Signature:
    made = []
    for text in parameters.split(", "):
        argument, _, default = text.partition("=")
        value = {"": Parameter.empty, "None": None, "0.0": 0.0}.get(default, default)
        value = int(default) if default.isdigit() else value
        made.append(Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, default=value, annotation=Any))
    return Signature(made, return_annotation=Any)


#: By name.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    letter + stem: _make(stem, DTYPES[letter])
    for stem, routine in _ROUTINES.items()
    for letter in routine.letters
}
