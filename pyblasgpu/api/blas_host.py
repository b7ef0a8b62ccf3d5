"""The routines of `blas` that SciPy's BLAS computes: of banded and packed matrices, and of a few numbers.

Arrays on a device are refused, as there are no kernels for them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from ..frontend.arrays import library_of
from ..frontend.cpu import scipys_blas
from ..types import DTYPES, Dtype
from .blas_functions import dressed

__all__ = ["FUNCTIONS"]

_Y = "incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0"
_TRIANGLE = "incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0"

#: What SciPy's functions take as it is; all else are arrays of other libraries.
_NUMPYS = (np.ndarray, np.generic, list, tuple, int, float, complex, type(None))

#: By stem: letters, what is computed, SciPy's result and parameters.
_ROUTINES = {
    "gbmv": (
        "sdcz",
        "Product of a banded matrix and a vector",
        "yout",
        f"m, n, kl, ku, alpha, a, x, {_Y}, trans=0, overwrite_y=0",
    ),
    "sbmv": (
        "sd",
        "Product of a symmetric banded matrix and a vector",
        "yout",
        f"k, alpha, a, x, {_Y}, lower=0, overwrite_y=0",
    ),
    "hbmv": (
        "cz",
        "Product of a Hermitian banded matrix and a vector",
        "yout",
        f"k, alpha, a, x, {_Y}, lower=0, overwrite_y=0",
    ),
    "tbmv": ("sdcz", "Product of a triangular banded matrix and a vector", "xout", f"k, a, x, {_TRIANGLE}"),
    "tbsv": ("sdcz", "Solution of a triangular banded system", "xout", f"k, a, x, {_TRIANGLE}"),
    "spmv": (
        "sdcz",
        "Product of a symmetric packed matrix and a vector",
        "yout",
        f"n, alpha, ap, x, {_Y}, lower=0, overwrite_y=0",
    ),
    "hpmv": (
        "cz",
        "Product of a Hermitian packed matrix and a vector",
        "yout",
        f"n, alpha, ap, x, {_Y}, lower=0, overwrite_y=0",
    ),
    "spr": (
        "sdcz",
        "Update of a symmetric packed matrix by a vector",
        "apu",
        "n, alpha, x, ap, incx=1, offx=0, lower=0, overwrite_ap=0",
    ),
    "hpr": (
        "cz",
        "Update of a Hermitian packed matrix by a vector",
        "apu",
        "n, alpha, x, ap, incx=1, offx=0, lower=0, overwrite_ap=0",
    ),
    "spr2": (
        "sd",
        "Update of a symmetric packed matrix by two vectors",
        "apu",
        "n, alpha, x, y, ap, incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0",
    ),
    "hpr2": (
        "cz",
        "Update of a Hermitian packed matrix by two vectors",
        "apu",
        "n, alpha, x, y, ap, incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0",
    ),
    "tpmv": ("sdcz", "Product of a triangular packed matrix and a vector", "xout", f"n, ap, x, {_TRIANGLE}"),
    "tpsv": ("sdcz", "Solution of a triangular packed system", "xout", f"n, ap, x, {_TRIANGLE}"),
    "rotg": ("sdcz", "Cosine and sine of the plane rotation that makes b zero", "c, s", "a, b"),
    "rotmg": ("sd", "The parameters of a modified plane rotation", "param", "d1, d2, x1, y1"),
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
    _, summary, result, parameters = _ROUTINES[stem]
    name = dtype.letter + stem
    signature = _signature(parameters)

    def function(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options).arguments
        for argument, value in bound.items():
            if not isinstance(value, _NUMPYS):
                library = library_of(value, name, argument)
                if not library.host:
                    raise NotImplementedError(
                        f"{name}: {argument} is on a device, and this routine is computed by SciPy's BLAS on "
                        "the CPU alone: pass arrays in host memory"
                    )
                bound[argument] = library.to_numpy(value)
        return scipys_blas(name)(
            **{argument: value for argument, value in bound.items() if value is not None}
        )

    function.__signature__ = signature  # type: ignore[attr-defined]
    return dressed(function, name, dtype, _doc(stem, name, dtype, summary, result, signature))


def _signature(parameters: str) -> Signature:
    made = []
    for text in parameters.split(", "):
        argument, _, default = text.partition("=")
        value = {"": Parameter.empty, "None": None, "0.0": 0.0}.get(default, default)
        value = int(default) if default.isdigit() else value
        made.append(Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, default=value, annotation=Any))
    return Signature(made, return_annotation=Any)


def _doc(stem: str, name: str, dtype: Dtype, summary: str, result: str, signature: Signature) -> str:
    listed = list(signature.parameters.values())
    needed = [p.name for p in listed if p.default is Parameter.empty]
    others = [p.name for p in listed if p.default is not Parameter.empty]
    call = ", ".join(needed) + (f", [{', '.join(others)}]" if others else "")
    notes = "\n".join(_entry(stem, p) for p in listed)
    return f"""{summary}, in {dtype.name}, by SciPy's BLAS.

``{result} = {name}({call})``

Parameters
----------
{notes}

Returns
-------
{result} : array or number
    As SciPy's function of this name returns it.

Raises
------
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
    for stem, (letters, *_) in _ROUTINES.items()
    for letter in letters
}
