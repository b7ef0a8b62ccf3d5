"""The routines of `blas` that SciPy's BLAS computes: of banded and packed matrices, and of a few numbers.

Arrays on a device are refused, as there are no kernels for them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..frontend.arrays import library_of
from ..frontend.backend_status import preferred_backend
from ..types import DTYPES, Dtype
from .blas_banded import general_product, symmetric_product, triangle, update
from .blas_functions import dressed
from .blas_rotations import rotg, rotmg

__all__ = ["FUNCTIONS"]

_Y = "incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0"
_TRIANGLE = "incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0"


class _Routine(NamedTuple):
    """A routine: letters, what is computed, SciPy's result and parameters, and ``compute(name, dtype, stem,
    arguments)``.
    """

    letters: str
    summary: str
    result: str
    parameters: str
    compute: Callable[[str, Dtype, str, Any], Any]


#: By stem.
_ROUTINES = {
    "gbmv": _Routine(
        "sdcz",
        "Product of a banded matrix and a vector",
        "yout",
        f"m, n, kl, ku, alpha, a, x, {_Y}, trans=0, overwrite_y=0",
        general_product,
    ),
    "sbmv": _Routine(
        "sd",
        "Product of a symmetric banded matrix and a vector",
        "yout",
        f"k, alpha, a, x, {_Y}, lower=0, overwrite_y=0",
        symmetric_product,
    ),
    "hbmv": _Routine(
        "cz",
        "Product of a Hermitian banded matrix and a vector",
        "yout",
        f"k, alpha, a, x, {_Y}, lower=0, overwrite_y=0",
        symmetric_product,
    ),
    "tbmv": _Routine(
        "sdcz",
        "Product of a triangular banded matrix and a vector",
        "xout",
        f"k, a, x, {_TRIANGLE}",
        triangle,
    ),
    "tbsv": _Routine(
        "sdcz", "Solution of a triangular banded system", "xout", f"k, a, x, {_TRIANGLE}", triangle
    ),
    "spmv": _Routine(
        "sdcz",
        "Product of a symmetric packed matrix and a vector",
        "yout",
        f"n, alpha, ap, x, {_Y}, lower=0, overwrite_y=0",
        symmetric_product,
    ),
    "hpmv": _Routine(
        "cz",
        "Product of a Hermitian packed matrix and a vector",
        "yout",
        f"n, alpha, ap, x, {_Y}, lower=0, overwrite_y=0",
        symmetric_product,
    ),
    "spr": _Routine(
        "sdcz",
        "Update of a symmetric packed matrix by a vector",
        "apu",
        "n, alpha, x, ap, incx=1, offx=0, lower=0, overwrite_ap=0",
        update,
    ),
    "hpr": _Routine(
        "cz",
        "Update of a Hermitian packed matrix by a vector",
        "apu",
        "n, alpha, x, ap, incx=1, offx=0, lower=0, overwrite_ap=0",
        update,
    ),
    "spr2": _Routine(
        "sd",
        "Update of a symmetric packed matrix by two vectors",
        "apu",
        "n, alpha, x, y, ap, incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0",
        update,
    ),
    "hpr2": _Routine(
        "cz",
        "Update of a Hermitian packed matrix by two vectors",
        "apu",
        "n, alpha, x, y, ap, incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0",
        update,
    ),
    "tpmv": _Routine(
        "sdcz",
        "Product of a triangular packed matrix and a vector",
        "xout",
        f"n, ap, x, {_TRIANGLE}",
        triangle,
    ),
    "tpsv": _Routine(
        "sdcz", "Solution of a triangular packed system", "xout", f"n, ap, x, {_TRIANGLE}", triangle
    ),
    "rotg": _Routine("sdcz", "Cosine and sine of the plane rotation that makes b zero", "c, s", "a, b", rotg),
    "rotmg": _Routine("sd", "The parameters of a modified plane rotation", "param", "d1, d2, x1, y1", rotmg),
}
_NOTES = {
    "m": "int\n    Rows of the matrix.",
    "n": "int\n    Order of the matrix, or its columns.",
    "k": "int\n    Diagonals beside the main one.",
    "kl": "int\n    Diagonals below the main one.",
    "ku": "int\n    Diagonals above the main one.",
    "a": "array\n    The diagonals, as the BLAS keeps banded matrices.",
    "ap": "array\n    The columns of a triangle, one behind the other.",
    "x": "array\n    Holds the vector.",
    "y": "array\n    Holds the other vector; of a product what is added to, by default 0.",
    "trans": "int\n    1: transposed, 2: conjugate transposed.",
    "lower": "int\n    Whether the lower triangle is kept.",
    "diag": "int\n    Whether the diagonal is taken to be 1.",
}


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
        for argument in arrays:
            value = given[argument]
            if value is not None and not library_of(value, name, argument).host:
                raise NotImplementedError(
                    f"{name}: {argument} is on a device, and this routine is computed by SciPy's BLAS on the "
                    "CPU alone: pass arrays in host memory"
                )
        with preferred_backend("cpu"):
            return routine.compute(name, dtype, stem, SimpleNamespace(**given))

    function.__signature__ = signature  # type: ignore[attr-defined]
    return dressed(function, name, dtype, _doc(stem, name, dtype, routine, signature))


def _signature(parameters: str) -> Signature:
    made = []
    for text in parameters.split(", "):
        argument, _, default = text.partition("=")
        value = {"": Parameter.empty, "None": None, "0.0": 0.0}.get(default, default)
        value = int(default) if default.isdigit() else value
        made.append(Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, default=value, annotation=Any))
    return Signature(made, return_annotation=Any)


def _doc(stem: str, name: str, dtype: Dtype, routine: _Routine, signature: Signature) -> str:
    listed = list(signature.parameters.values())
    needed = [p.name for p in listed if p.default is Parameter.empty]
    others = [p.name for p in listed if p.default is not Parameter.empty]
    call = ", ".join(needed) + (f", [{', '.join(others)}]" if others else "")
    notes = "\n".join(_entry(stem, p) for p in listed)
    return f"""{routine.summary}, in {dtype.name}, by SciPy's BLAS.

``{routine.result} = {name}({call})``

Parameters
----------
{notes}

Returns
-------
{routine.result} : array or number
    As SciPy's function of this name returns it.

Raises
------
ValueError
    When a flag is none, or an array has not the elements that are needed.
TypeError
    When an array or a number is complex and the routine is not, or arrays are of different libraries.
NotImplementedError
    When an array is on a device.

See Also
--------
scipy.linalg.blas : Has the function that is called.
"""


def _entry(stem: str, parameter: Parameter) -> str:
    kind, text = _note(stem, parameter.name).split("\n", 1)
    if parameter.default is None:
        kind += ", optional"
    elif parameter.default is not Parameter.empty:
        kind += f", default {parameter.default}"
    return f"{parameter.name} : {kind}\n{text}"


def _note(stem: str, parameter: str) -> str:
    if stem in ("rotg", "rotmg"):
        return "number\n    As for SciPy's function of this name."
    if parameter in _NOTES:
        return _NOTES[parameter]
    if parameter.startswith("overwrite"):
        return f"int\n    Whether `{parameter.removeprefix('overwrite_')}` may hold the result."
    if parameter[:3] in ("inc", "off"):
        what = "From one element of" if parameter[:3] == "inc" else "The first element of"
        end = " to the next." if parameter[:3] == "inc" else "."
        return f"int\n    {what} `{parameter[3:]}`{end}"
    return "number\n    A factor."


#: By name.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    letter + stem: _make(stem, DTYPES[letter])
    for stem, routine in _ROUTINES.items()
    for letter in routine.letters
}
