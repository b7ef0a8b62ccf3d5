"""The docstrings of `blas_level1`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from ..types import Dtype
from .docstrings import examples_of, filled, see_also

__all__ = ["axpy", "copy", "dot", "reduction", "rot", "rotm", "scal", "swap"]

_PARTS = {
    "examples": examples_of("blas"),
    "x": """
x : array
    Holds the vector; of more dimensions than one, in the order of columns.
""",
    "xy": """
x, y : array
    Hold the vectors; of more dimensions than one, in the order of columns.
""",
    "n": """
n : int, optional
    Elements of the vectors; by default as many as fit into `x` behind its offset.
""",
    "at_x": """
offx : int, default 0
    The first element of the vector in `x`.
incx : int, default 1
    From one element to the next. A negative one runs backwards, and ends at the offset.
""",
    "at_xy": """
offx, incx : int, optional
    The first element of the vector in `x`, and from one to the next; by default 0 and 1. A negative increment
    runs backwards, and ends at the offset.
offy, incy : int, optional
    The same of `y`; by default 0 and 1.
""",
    "overwrite_xy": """
overwrite_x, overwrite_y : bool, default False
    Whether `x`, `y` may hold the results.
""",
    "result_y": """
array
    `y`, if it is contiguous by columns and of the routine's dtype; else a copy with the result.
""",
    "result_xy": """
x, y : array
    The arrays that were passed, where they may be written, are contiguous by columns and of the routine's
    dtype; else copies with the results.
""",
    "raises": """
Raises
------
ValueError
    When offset, increment and n reach beyond an array.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
""",
}

_WRITE = """%(summary)s, in %(dtype)s.

``%(output)s = %(name)s(x, y, [n, %(a)soffx, incx, offy, incy])``

Parameters
----------
%(xy)s
%(n)s
FACTOR%(at_xy)s

Returns
-------
%(result)s

%(raises)s
OVERLAP
%(see_also)s

%(examples)s
>>> %(example)s
"""

_SCAL = """Multiple of a vector, ``x := a x``, in %(dtype)s.

``x = %(name)s(a, x, [n, offx, incx%(overwrite)s])``

Parameters
----------
a : %(kind)s
    The factor.
%(x)s
%(n)s
%(at_x)s
OVERWRITE
Returns
-------
array
    `x`, if it %(may)sis contiguous by columns and of the routine's dtype; else a copy with the result.

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(2, [1, 2]).real.tolist()
[2.0, 4.0]
"""

_ROT = """%(summary)s, in %(dtype)s.

``x, y = %(name)s(x, y, %(numbers)s, [n, offx, incx, offy, incy, overwrite_x, overwrite_y])``

Parameters
----------
%(xy)s
%(number_notes)s
%(n)s
%(at_xy)s
%(overwrite_xy)s

Returns
-------
%(result_xy)s

%(raises)s
OverlapError
    When what is written overlaps.

%(see_also)s

%(examples)s
>>> x, y = blas.%(name)s([1, 2], [3, 4], %(example)s)
>>> x.real.tolist(), y.real.tolist()
([3.0, 4.0], [-1.0, -2.0])
"""

_NUMBER = """%(summary)s, in %(dtype)s.

``%(output)s = %(name)s(%(inputs)s, [n, offx, incx%(more)s])``

Parameters
----------
%(vectors)s
%(n)s
%(offsets)s

Returns
-------
%(kind)s
    Of arrays on a device an array without dimensions, for which nothing waits.

%(raises)s

%(see_also)s

%(examples)s
>>> %(example)s
"""


_OVERLAP = "OverlapError\n    When what is written overlaps.\n"


def _of(template: str, stem: str, name: str, dtype: Dtype, **words: str) -> str:
    # the words may name parts themselves
    others = see_also(**{stem: "In keyword style."})
    parts = {**_PARTS, "name": name, "dtype": dtype.name, "see_also": others}
    return filled(filled(template, {**words, **parts}), parts)


def axpy(name: str, dtype: Dtype) -> str:
    """The docstring of AXPY."""
    factor = "a : number, default 1\n    The factor of `x`. With 0, `x` is not read.\n"
    words = {"summary": "Sum of vectors, ``y := a x + y``", "output": "z", "a": "a, "}
    words["example"] = "blas.%(name)s([1, 2], [3, 4], a=2).real.tolist()\n[5.0, 8.0]"
    template = _WRITE.replace("FACTOR", factor).replace("OVERLAP", "")
    return _of(template, "axpy", name, dtype, **words, result=_PARTS["result_y"])


def copy(name: str, dtype: Dtype) -> str:
    """The docstring of COPY."""
    words = {"summary": "Copy of a vector, ``y := x``", "output": "y", "a": ""}
    words["example"] = "blas.%(name)s([1, 2], [0, 0]).real.tolist()\n[1.0, 2.0]"
    template = _WRITE.replace("FACTOR", "").replace("OVERLAP", "")
    return _of(template, "copy", name, dtype, **words, result=_PARTS["result_y"])


def swap(name: str, dtype: Dtype) -> str:
    """The docstring of SWAP."""
    words = {"summary": "Exchange of two vectors, ``x, y := y, x``", "output": "x, y", "a": ""}
    words["example"] = "[z.real.tolist() for z in blas.%(name)s([1, 2], [3, 4])]\n[[3.0, 4.0], [1.0, 2.0]]"
    template = _WRITE.replace("FACTOR", "").replace("OVERLAP", _OVERLAP)
    return _of(template, "swap", name, dtype, **words, result=_PARTS["result_xy"])


def scal(name: str, dtype: Dtype, kind: str, overwrite: str) -> str:
    """The docstring of SCAL; `overwrite` is the name of the argument that allows to write in place."""
    note = f"{overwrite} : bool, default False\n    Whether `x` may hold the result.\n" if overwrite else ""
    more, may = (f", {overwrite}", "may hold the result, ") if overwrite else ("", "")
    return _of(_SCAL.replace("OVERWRITE", note), "scal", name, dtype, kind=kind, overwrite=more, may=may)


def rot(name: str, dtype: Dtype) -> str:
    """The docstring of ROT."""
    notes = "c, s : real number\n    Cosine and sine."
    summary = "Plane rotation, ``x, y := c x + s y, c y - s x``"
    words = {"numbers": "c, s", "number_notes": notes, "example": "0, 1"}
    return _of(_ROT, "rot", name, dtype, summary=summary, **words)


def rotm(name: str, dtype: Dtype) -> str:
    """The docstring of ROTM."""
    notes = (
        "param : sequence of five numbers\n"
        "    The flag and h11, h21, h12, h22, as `drotmg` makes them; see `pyblasgpu.rotm`."
    )
    summary = "Modified plane rotation, ``x, y := h11 x + h12 y, h21 x + h22 y``"
    words = {"numbers": "param", "number_notes": notes, "example": "[-1, 0, -1, 1, 0]"}
    return _of(_ROT, "rotm", name, dtype, summary=summary, **words)


def dot(name: str, dtype: Dtype, conj: bool) -> str:
    """The docstring of DOT."""
    formula = "sum(conj(x) y)" if conj else "sum(x y)"
    words = {"summary": f"Inner product of vectors, ``{formula}``", "output": "xy", "inputs": "x, y"}
    kind = "complex" if dtype.is_complex else "float"
    offsets = {"vectors": _PARTS["xy"], "offsets": _PARTS["at_xy"], "more": ", offy, incy"}
    example = "abs(blas.%(name)s([1, 2], [3, 4]))\n11.0"
    return _of(_NUMBER, "dot", name, dtype, **words, **offsets, kind=kind, example=example)


_REDUCTIONS = {
    "nrm2": ("Euclidean norm of a vector, without overflow or underflow", "n2", "float", "It is positive."),
    "asum": ("Sum of the sizes of real and imaginary parts", "s", "float", "With a negative one it is 0."),
    "iamax": (
        "Index, from 0, of the first element with largest ``|Re x| + |Im x|``",
        "k",
        "int",
        "With a negative one the index is -1.",
    ),
}

_OF_3_4 = {"nrm2": "5.0", "asum": "7.0", "iamax": "1"}


def reduction(which: str, name: str, dtype: Dtype) -> str:
    """The docstring of NRM2, ASUM or I?AMAX (`which`)."""
    summary, output, kind, note = _REDUCTIONS[which]
    at_x = (
        "offx : int, default 0\n    The first element of the vector in `x`.\n"
        f"incx : int, default 1\n    From one element to the next. {note}"
    )
    words = {"summary": summary, "output": output, "inputs": "x", "kind": kind, "more": ""}
    example = f"blas.%(name)s([3, 4])\n{_OF_3_4[which]}"
    return _of(_NUMBER, which, name, dtype, **words, vectors=_PARTS["x"], offsets=at_x, example=example)
