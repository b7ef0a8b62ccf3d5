"""Routines of `lapack` of eigenvalues and singular values: a table of them, and functions made of its rows.

SciPy's LAPACK computes them of host arrays, a matrix of a stack at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import numpy as np

from ...arguments import enabled, shown
from ...cpu.scipy import values
from ...cpu.scipy.cholesky import lapack
from ...cpu.scipy.eigen import is_finite
from ...frontend.arrays.any_array import library_of
from ...frontend.calls.attempts import by_scipy_without_row
from ...types import DTYPES, Dtype, Uplo
from ..blas.vectors import whole
from ..docstrings import Shared
from .call import dressed, order_of
from .docs import HOST_SPECTRA, SPECTRA
from .host_stacks import HostStacks

__all__ = [
    "FUNCTIONS",
    "QUERIES",
    "ROWS",
    "checked",
    "functions",
    "made",
    "scipys_name",
]


class Row(NamedTuple):
    """A routine as SciPy has it.

    Attributes
    ----------
    of_complex : str
        Its name for complex matrices.
    arrays, options : str
        Its arguments in SciPy's order.
    results : str
    summary : str
        The first line of its docstring.
    complex_options : str
        The options for complex matrices, where they are others.
    """

    of_complex: str
    arrays: str
    options: str
    results: str
    summary: str
    complex_options: str = ""


_RANGE = "range lower vl vu il iu abstol"
#: The rows by the names for real matrices.
ROWS = {
    "syev": Row(
        "heev",
        "a",
        "compute_v lower lwork overwrite_a",
        "w v info",
        "Eigenvalues and eigenvectors of Hermitian matrices by QR iteration",
    ),
    "syevd": Row(
        "heevd",
        "a",
        "compute_v lower lwork liwork overwrite_a",
        "w v info",
        "Eigenvalues and eigenvectors of Hermitian matrices by divide and conquer",
        "compute_v lower lwork liwork lrwork overwrite_a",
    ),
    "syevr": Row(
        "heevr",
        "a",
        f"compute_v {_RANGE} lwork liwork overwrite_a",
        "w z m isuppz info",
        "Some eigenvalues of Hermitian matrices by relatively robust representations",
        f"compute_v {_RANGE} lwork lrwork liwork overwrite_a",
    ),
    "syevx": Row(
        "heevx",
        "a",
        f"compute_v {_RANGE} lwork overwrite_a",
        "w z m ifail info",
        "Some eigenvalues of Hermitian matrices by bisection and inverse iteration",
    ),
    "sygv": Row(
        "hegv",
        "a b",
        "itype jobz uplo lwork overwrite_a overwrite_b",
        "w v info",
        "Generalized Hermitian eigenproblems by QR iteration",
    ),
    "sygvd": Row(
        "hegvd",
        "a b",
        "itype jobz uplo lwork liwork overwrite_a overwrite_b",
        "w v info",
        "Generalized Hermitian eigenproblems by divide and conquer",
        "itype jobz uplo lwork lrwork liwork overwrite_a overwrite_b",
    ),
    "sygvx": Row(
        "hegvx",
        "a b",
        "itype jobz range uplo vl vu il iu abstol lwork overwrite_a overwrite_b",
        "w z m ifail info",
        "Some eigenvalues of generalized Hermitian eigenproblems",
    ),
    "sygst": Row(
        "hegst",
        "a b",
        "itype lower overwrite_a",
        "c info",
        "Generalized Hermitian eigenproblems as standard ones, from the Cholesky factor of b",
    ),
    "sytrd": Row(
        "hetrd",
        "a",
        "lower lwork overwrite_a",
        "c d e tau info",
        "Tridiagonal matrices that are similar to Hermitian ones, by reflectors",
    ),
    "gesdd": Row(
        "gesdd",
        "a",
        "compute_uv full_matrices lwork overwrite_a",
        "u s vt info",
        "Singular values and vectors by divide and conquer",
    ),
    "gesvd": Row(
        "gesvd",
        "a",
        "compute_uv full_matrices lwork overwrite_a",
        "u s vt info",
        "Singular values and vectors by QR iteration",
    ),
}
#: SciPy's queries of workspaces: arguments, and results for real and for complex matrices.
QUERIES = {
    "syev": ("n lower", "work", ""),
    "syevd": ("n compute_v lower", "work iwork", "work iwork rwork"),
    "syevr": ("n lower", "work iwork", "work rwork iwork"),
    "syevx": ("n lower", "work", ""),
    "sygv": ("n uplo", "work", ""),
    "sygvx": ("n uplo", "work", ""),
    "sytrd": ("n lower", "work", ""),
    "gesdd": ("m n compute_uv full_matrices", "work", ""),
    "gesvd": ("m n compute_uv full_matrices", "work", ""),
}
#: Arguments: annotations, defaults, and values where these are few.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("a", "b"), ("Array",)),
    **dict.fromkeys(("m", "n"), ("int",)),
    **dict.fromkeys(("lower", "overwrite_a", "overwrite_b"), ("Flag", 0)),
    **dict.fromkeys(("compute_v", "compute_uv", "full_matrices"), ("Flag", 1)),
    **dict.fromkeys(("lwork", "lrwork", "liwork", "iu"), ("int | None", None)),
    **dict.fromkeys(("vl", "abstol"), ("float", 0.0)),
    "vu": ("float", 1.0),
    "il": ("int", 1),
    "itype": ("int", 1, (1, 2, 3)),
    "range": ("str", "A", ("A", "V", "I")),
    "jobz": ("str", "V", ("N", "V")),
    "uplo": ("str", "L", ("L", "U")),
}
#: Results whose entries of docstrings are no array's.
_NUMBERS = {"m": "int or array of int32", "info": "int or array of int32"}
_PARAMETERS = """Parameters
----------
a : array, shape (m, n) or (..., m, n)
    The matrix, or a stack.

"""
_EXAMPLES = {
    "w": ("w.tolist()", "[1.0, 2.0]"),
    "c": ("c.real.tolist()", "[[2.0, 0.0], [0.0, 1.0]]"),
    "u": ("s.tolist()", "[2.0, 1.0]"),
}


def scipys_name(letter: str, stem: str) -> str:
    """SciPy's name of a routine for a dtype, whose letter may be that of real or complex ones."""
    return letter + (ROWS[stem].of_complex if DTYPES[letter].is_complex else stem)


def _signature_of(names: list[str], result: str) -> Signature:
    """The signature with these arguments, as SciPy's wrapper has them."""
    parameters = []
    for name in names:
        annotation, *default = _ARGUMENTS[name]
        options = {"default": default[0]} if default else {}
        parameters.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation, **options))
    return Signature(parameters, return_annotation=result)


def checked(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as SciPy's wrapper takes them, those that are None left out; ValueError where one is none."""
    found: dict[str, Any] = {}
    for argument, value in options.items():
        annotation, _, *values = _ARGUMENTS[argument]
        letter = value.decode("ascii", "replace") if isinstance(value, bytes) else value
        if values and (np.ndim(letter) or letter not in values[0]):
            raise ValueError(f"{name}: {argument}={shown(value)} is none of {', '.join(map(str, values[0]))}")
        if argument == "lower":
            found[argument] = int(Uplo.parse(value, name, "lower") is Uplo.LOWER)
        elif annotation == "Flag":
            found[argument] = int(enabled(value, name, argument))
        elif annotation.startswith("int") and value is not None:
            found[argument] = whole(value, name, argument)
        elif value is not None:
            found[argument] = letter
    return found


def _arguments_of(stem: str, dtype: Dtype | None) -> list[str]:
    """The names of a routine's arguments in SciPy's order."""
    row, is_complex = ROWS[stem], dtype is not None and dtype.is_complex
    options = row.complex_options if is_complex and row.complex_options else row.options
    return [*row.arrays.split(), *options.split()]


def _computed_by_scipy(stem: str, name: str, dtype: Dtype | None) -> Callable[..., tuple[Any, ...]]:
    """Return ``run(arguments)``, with arguments by name: results for host arrays."""
    row = ROWS[stem]
    arrays, is_hermitian = row.arrays.split(), row.of_complex != stem

    def run(passed: Mapping[str, Any]) -> tuple[Any, ...]:
        stacks = HostStacks(name, {each: passed[each] for each in arrays}, dtype)
        options = checked(name, {each: passed[each] for each in passed if each not in arrays})
        shapes = [each.shape for each in stacks.arrays]
        orders = {order_of(name, *each) for each in zip(arrays, stacks.arrays, strict=True) if is_hermitian}
        if len(orders) > 1:
            raise ValueError(f"{name}: a has shape {shapes[0]} and b {shapes[1]}, of another order")
        if 0 in shapes[0][-2:]:
            raise ValueError(f"{name}: a has shape {shapes[0]}; LAPACK needs rows and columns")
        routine = lapack(row.of_complex if stacks.dtype.is_complex else stem, stacks.dtype.name)
        overwritten = [each for each in arrays if options.get(f"overwrite_{each}")]
        low = options.get("lower", 0) or options.get("uplo") == "L" if is_hermitian else None
        return tuple(stacks.computed(lambda *each: _spectrum(name, routine, each, options, low), overwritten))

    return run


def _spectrum(
    name: str, routine: Callable[..., Any], each: tuple[Any, ...], options: dict[str, Any], low: Any
) -> Any:
    """SciPy's results for matrices, of which the lower triangle is read, or not, or all where `low` is None.

    LAPACK may iterate for ever on matrices that are not finite. Their results are NaN and `info` is n, the
    lesser extent, as on a device.
    """
    if all(is_finite(matrix, low) for matrix in each):
        return _called(name, routine, each, options)
    *found, _ = _called(name, routine, tuple(map(np.zeros_like, each)), options)
    nan = (np.full_like(x, np.nan) if getattr(x, "dtype", np.dtype("i")).kind in "fc" else x for x in found)
    return (*nan, min(each[0].shape))


def _called(name: str, routine: Callable[..., Any], each: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """SciPy's results; ValueError where its wrapper refuses an option, with an error of its own class."""
    try:
        return routine(*each, **options)
    except Exception as error:
        if type(error).__name__ != "error":
            raise
        raise ValueError(f"{name}: {error}") from None


def _make(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    """The function of a row."""
    return made(stem, name, dtype, None)


def made(
    stem: str, name: str, dtype: Dtype | None, on_device: Callable[[Mapping[str, Any]], Any] | None
) -> Callable[..., Any]:
    """The function of a row; ``on_device(arguments)`` returns the results for device arrays."""
    on_host = _computed_by_scipy(stem, name, dtype)
    signature = _signature_of(_arguments_of(stem, dtype), "tuple[Array, ...]")

    def call(*passed: Any, **named: Any) -> tuple[Any, ...]:
        bound = signature.bind(*passed, **named)
        bound.apply_defaults()
        arguments = bound.arguments
        is_there = on_device is not None and not library_of(arguments["a"], name, "a").host
        results: tuple[Any, ...] = (on_device if on_device and is_there else on_host)(arguments)
        return results

    function = _finished(call, stem, name, dtype, signature, SPECTRA if on_device else HOST_SPECTRA)
    row = ROWS[stem]
    if row.arrays != "a":
        return function
    names = {letter: scipys_name(letter, stem) for letter in (dtype.letter if dtype else DTYPES)}
    square = ("a",) if row.of_complex != stem else ()
    return by_scipy_without_row(function, names, ("a",), _is_finite, square)


def _is_finite(arrays: list[np.ndarray]) -> bool:
    """Whether LAPACK ends on a matrix, which is of elements that it reads."""
    return values.is_finite(arrays[0])


def _finished(
    call: Callable[..., Any],
    stem: str,
    name: str,
    dtype: Dtype | None,
    signature: Signature,
    shared: Shared,
) -> Callable[..., Any]:
    """A function with its signature, docstring and SciPy's attributes."""
    row = ROWS[stem]
    first, *others = row.results.split()
    entries = "\n".join(f"{each} : {_NUMBERS.get(each, 'array')}" for each in (first, *others))
    matrices = ", ".join(
        {"a": "[[2, 0], [0, 1]]", "b": "[[1, 0], [0, 1]]"}[each] for each in row.arrays.split()
    )
    shown_result, printed = _EXAMPLES.get(first, _EXAMPLES["c"])
    about_a = _PARAMETERS if row.of_complex == stem else ""
    head = f"{row.summary}.\n\n{about_a}Returns\n-------\n{entries}\n\n"
    example = f"{', '.join((first, *others))} = lapack.{stem}({matrices})\n>>> {shown_result}\n{printed}\n"
    call.__doc__ = f"{head}Examples\n--------\n>>> from pyblasgpu import lapack\n>>> {example}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return dressed(call, stem, name, dtype, shared)


def _make_query(stem: str, dtype: Dtype) -> Callable[..., Any]:
    """The query of the workspace of a routine."""
    arguments, results, of_complex = QUERIES[stem]
    name = scipys_name(dtype.letter, stem) + "_lwork"
    signature = _signature_of(arguments.split(), "tuple[Any, ...]")

    def call(*passed: Any, **named: Any) -> tuple[Any, ...]:
        bound = signature.bind(*passed, **named)
        bound.apply_defaults()
        extents = {each: whole(bound.arguments[each], name, each) for each in "mn" if each in bound.arguments}
        for each, value in extents.items():
            if value < 0:
                raise ValueError(f"{name}: {each}={value} is negative")
        options = checked(name, {key: bound.arguments[key] for key in bound.arguments if key not in extents})
        routine = lapack(f"{ROWS[stem].of_complex if dtype.is_complex else stem}_lwork", dtype.name)
        *work, info = _called(name, routine, tuple(extents.values()), options)
        return (*work, int(info))

    named = of_complex if of_complex and dtype.is_complex else results
    entries = "\n".join(f"{each} : number" for each in named.split())
    extents = ", ".join("4" for each in arguments.split() if each in ("m", "n"))
    call.__doc__ = (
        f"The workspace with which SciPy's LAPACK computes `{stem}` fastest.\n\nReturns\n-------\n{entries}\n"
        f"info : int\n    Always 0.\n\nSee Also\n--------\n{stem} : Takes it, and does not need it.\n\n"
        f"Examples\n--------\n>>> from pyblasgpu import lapack\n>>> lapack.{stem}_lwork({extents})[-1]\n0\n"
    )
    call.__signature__ = signature  # type: ignore[attr-defined]
    return dressed(call, f"{stem}_lwork", name, dtype, HOST_SPECTRA)


def functions(make: Callable[[str, str, Dtype | None], Any], stem: str) -> dict[str, Callable[..., Any]]:
    """The functions that `make` makes of a row, by name."""
    return {stem: make(stem, stem, None)} | {
        scipys_name(letter, stem): make(stem, scipys_name(letter, stem), dtype)
        for letter, dtype in DTYPES.items()
    }


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: each for stem in ROWS for name, each in functions(_make, stem).items()},
    **{each.__name__: each for stem in QUERIES for each in (_make_query(stem, x) for x in DTYPES.values())},
}
