"""What docstrings share: each part stands here once, and whole in every ``help()``.

A docstring names a part by ``%(name)s``. The part's further lines are indented as the line that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["documented", "documenting", "examples_of", "filled", "see_also"]

_Function = TypeVar("_Function", bound=Callable[..., object])
_PART = re.compile(r"%\((\w+)\)s")

#: Parts of functions in keyword style, and of plans.
_PARTS = {
    "dtypes": """
Of float32, float64, complex64 or complex128. Integers and booleans count as float64, float16
as float32; mixed dtypes are cast as by `numpy.result_type`. Any strides; read-only arrays too.
""",
    "planned_dtypes": """
CuPy arrays or PyTorch tensors on one device and of one dtype: float32, float64, complex64 or
complex128. Any strides.
""",
    "alpha_beta": """
alpha, beta : number, optional
    By default 1 and 0. With ``alpha=0`` neither `a` nor `b` is read, with ``beta=0`` `out` is not read.
""",
    "alpha_beta_vector": """
alpha, beta : number, optional
    By default 1 and 0. With ``alpha=0`` neither `a` nor `x` is read, with ``beta=0`` `out` is not read.
""",
    "alpha_beta_hermitian": """
alpha : number, default 1
    With 0 neither `a` nor `b` is read.
beta : number, default 0
    Real. With 0 `out` is not read.
""",
    "trans_ab": """
trans_a, trans_b : {'N', 'T', 'C'}, default 'N'
    Each op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2
    serve too.
""",
    "trans": """
trans : {'N', 'T', 'C'}, default 'N'
    The op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2
    serve too.
""",
    "vector_triangle_flags": """
lower : bool, default False
    Whether `a`, as it is stored, is lower triangular.
trans : {'N', 'T', 'C'}, default 'N'
    The op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2
    serve too.
unit_diag : bool, default False
    Take the diagonal of `a` to be 1.
""",
    "read_triangle": """
lower : bool, default False
    Whether the lower triangle of `a` is read, else the upper one.
""",
    "triangle": """
A triangle. The other one, and a unit diagonal, are never read.
""",
    "triangle_flags": """
alpha : number, default 1
    With 0 the result is 0 and neither `a` nor `b` is read.
side : {'L', 'R'}, default 'L'
    Where op(a) stands; 0 and 1 serve too.
lower : bool, default False
    Whether `a`, as it is stored, is lower triangular.
trans : {'N', 'T', 'C'}, default 'N'
    The op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2
    serve too.
unit_diag : bool, default False
    Take the diagonal of `a` to be 1.
""",
    "symmetric_flags": """
side : {'L', 'R'}, default 'L'
    Where `a` stands; 0 and 1 serve too.
lower : bool, default False
    Whether the lower triangle of `a` is read, else the upper one.
""",
    "updated_triangle": """
lower : bool, default False
    Whether the lower triangle is computed, else the upper one. The other one is neither read nor
    written.
""",
    "trans_symmetric": """
trans : {'N', 'T'}, default 'N'
    The op: the matrix itself, its transpose. 'C' is 'T' for real arrays, and refused for complex
    ones.
""",
    "trans_hermitian": """
trans : {'N', 'C'}, default 'N'
    The op: the matrix itself, its conjugate transpose. 'T' is 'C' for real arrays, and refused
    for complex ones.
""",
    "out": """
out : array, shape (..., m, n), optional
    Written in place, whatever its strides. It may not share memory with `a` or `b`.
""",
    "out_vector": """
out : array, shape (..., m), optional
    Written in place, whatever its strides. It may not share memory with an input.
""",
    "out_vector_square": """
out : array, shape (..., n), optional
    Written in place, whatever its strides. It may not share memory with an input.
""",
    "out_vector_in_place": """
out : array, shape (..., n), optional
    Written in place, whatever its strides. It may be `x`; else it shares no memory with it.
""",
    "out_updated": """
out : array, shape (..., m, n), optional
    What is added to, in place, whatever its strides; by default a new array of zeros. It may not
    share memory with an input.
""",
    "out_updated_square": """
out : array, shape (..., n, n), optional
    What is added to, in place, whatever its strides; by default a new array of zeros. It may not
    share memory with an input.
""",
    "vector_x": """
x : array, shape (..., n)
    The vector.
    Of float32, float64, complex64 or complex128. Integers and booleans count as float64, float16
    as float32; mixed dtypes are cast as by `numpy.result_type`. Any strides; read-only arrays too.
""",
    "vectors_xy": """
x, y : array, shape (..., n)
    The vectors.
    Of float32, float64, complex64 or complex128. Integers and booleans count as float64, float16
    as float32; mixed dtypes are cast as by `numpy.result_type`. Any strides; read-only arrays too.
""",
    "out_square": """
out : array, shape (..., n, n), optional
    Written in place, whatever its strides. It may not share memory with an input.
""",
    "real_diagonal": """
    The imaginary parts of its diagonal are not read, and become zero (unless there is nothing to
    do: alpha or k is 0 and beta 1).
""",
    "stream_backend": """
stream : int or stream object, optional
    Where to run, on the device of the arrays; by default the library's current stream. Host arrays
    are computed on the device of the stream, by default on the one that is current; there the call
    follows what a given stream holds.
backend : {'auto', 'cuda', 'cpu', 'sim', 'numba'}, optional
    For host arrays; `pyblasgpu.backend_status` tells what each does.
""",
    "engine_options": """
device : int, optional
    The card for host arrays; by default that of the stream.
devices : sequence of int or 'all', optional
    Several cards, by number, that compute matrices together, tile by tile. Device arrays lie on one
    of them, and the call waits for the result.
max_device_memory : int, optional
    Bytes that tiles of host arrays may take on each card; by default most of what is free. Matrices
    that need more are streamed through it. Workspace of kernels comes on top.
blocking : bool, default True
    With False the call returns a `Handle`, whose ``wait()`` gives the result.
progress : callable or bool, optional
    ``progress(done, total)`` is called as tasks end. True shows a bar, False none; by default long
    calls on a terminal show one.
""",
    "plan_stream": """
stream : int or stream object, optional
    On which the plan runs, of the arrays' device; by default the library's current stream at the
    time of each call.
""",
    "method": """
method : {'3m', 'tensor'}, optional
    '3m': complex products may be made of three real ones instead of four, as by the BLAS's
    ``zgemm3m``: fewer operations, and a weaker bound of the error, see `gemm`. complex128 on tensor
    cores is computed so; complex64, and what runs on the CPU, as without. Real dtypes raise ValueError.
    'tensor': products of float32 and complex64 are made of FP16 ones on Hopper's tensor cores, those of
    float64 and complex128 of INT8 ones, within the same bound of the error, see `gemm`. Small products,
    other devices and the CPU compute as without; `explain` tells.
""",
    "tensor_method": """
method : {'tensor'}, optional
    Products on Hopper's tensor cores, within the same bound of the error, see `gemm`. Where tensor cores do
    not serve, as for triangles of float64, it changes nothing; `explain` tells. `set_math_mode` asks for it
    in a block.
""",
    "result": """
`out`, or a new array of the inputs' library: column-major if all inputs are, else row-major.
""",
    "vector_result": """
`out`, or a new array of the inputs' library.
""",
    "number_out": """
out : array, shape (...), optional
    Written in place, of the dtype of the result.
""",
    "number_result": """
`out`, or a new array of the inputs' library. Of single vectors it has no dimensions: on a device
it is there when the stream is, and ``float`` or ``int`` of it waits; in host memory it is a number.
""",
    "result_square": """
`out`, or a new array of the inputs' library with zeros in the other triangle: column-major if all
inputs are, else row-major.
""",
    "new_triangle": """
`out`, or a new array of the inputs' library with zeros in the other triangle.
""",
    "casting": """
casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}, default 'same_kind'
    Which casts of inputs to `dtype`, and of the result to `out`, are allowed.
""",
    "computed_in": """
dtype : dtype, optional
    To compute in: float32, float64, complex64 or complex128; by default that of the inputs together.
subok : bool, default True
    Accepted; results are never instances of subclasses.
""",
    "vector_product_options": """
out : array, optional
    Where the result goes, of any dtype that `casting` allows; by default a new array.
%(casting)s
order : {'K', 'A', 'C', 'F'}, default 'K'
    Accepted as by `matmul`.
%(computed_in)s
""",
    "vector_product_errors": """
Raises
------
ValueError
    When shapes do not fit.
TypeError
    When `casting` forbids a cast, or arrays are of different libraries.
""",
    "shape_error": """
ValueError
    When shapes, flags, devices, strides or the stream do not fit. Nothing is written then.
""",
    "type_error": """
TypeError
    When dtypes or libraries do not fit, or a number is complex and the arrays are real.
""",
    "real_error": """
TypeError
    When dtypes or libraries do not fit, or a number is complex that has to be real.
""",
    "overlap_error": """
OverlapError
    When `out` shares memory with an input.
""",
    "plan": """
Plan
    Of which ``plan(a, b, out)`` computes, with these arrays or with others that lie alike.
""",
    "plan_errors": """
ValueError
    When shapes, flags, devices, strides or the stream do not fit.
TypeError
    When dtypes or libraries do not fit, a number is complex and the arrays are real, or an array
    would have to be cast or copied first.
OverlapError
    When `out` shares memory with an input.
""",
}


def filled(text: str, parts: Mapping[str, str]) -> str:
    """`text` with each ``%(name)s`` replaced by the part of that name."""
    return "\n".join(_filled_line(line, parts) for line in text.split("\n"))


def _filled_line(line: str, parts: Mapping[str, str]) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return _PART.sub(lambda match: parts[match[1]].strip("\n").replace("\n", f"\n{indent}"), line)


def see_also(**functions: str) -> str:
    """A section See Also: each function of `pyblasgpu`, dots as ``__``, and what it is."""
    lines = [f"pyblasgpu.{name.replace('__', '.')} : {text}" for name, text in functions.items()]
    return "\n".join(["See Also", "--------", *lines])


_RAISES = "Raises\n------\n"
_RETURNS = "Returns\n-------\n"


def _entry(heading: str, part: str) -> str:
    """An entry of a section, with a part as its text."""
    return heading + "\n" + "".join(f"    {line}\n" for line in _PARTS[part].strip("\n").split("\n"))


#: Sections that many have.
_PARTS |= {
    "raises": _RAISES
    + "".join(_PARTS[f"{kind}_error"].lstrip("\n") for kind in ("shape", "type", "overlap")),
    "vector_product_options": filled(_PARTS["vector_product_options"], _PARTS),
    "see_blas": see_also(blas="SciPy's names and signatures."),
    "returns_vector": _RETURNS + _entry("array, shape (..., n)", "vector_result"),
    "returns_number": _RETURNS + _entry("array, shape (...)", "number_result"),
    "returns_matrix": _RETURNS + _entry("array, shape (..., m, n)", "result"),
    "returns_square": _RETURNS + _entry("array, shape (..., n, n)", "result_square"),
    "returns_triangle": _RETURNS + _entry("array, shape (..., n, n)", "new_triangle"),
}


def examples_of(module: str) -> str:
    """How the examples of a function of this module begin."""
    return f"Examples\n--------\n>>> from pyblasgpu import {module}"


def documenting(parts: Mapping[str, str]) -> Callable[[_Function], _Function]:
    """A decorator that fills in the parts that a docstring names."""

    def decorate(function: _Function) -> _Function:
        if function.__doc__:  # none with python -OO
            function.__doc__ = filled(function.__doc__, parts)
        return function

    return decorate


#: Of functions in keyword style, and of plans.
documented = documenting(_PARTS)
