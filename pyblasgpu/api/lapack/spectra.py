"""Routines of `lapack` of eigenvalues and singular values: a table of them, and functions made of its rows.

SciPy's LAPACK computes them of host arrays, a matrix of a stack at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from ...arguments import enabled, shown
from ...cpu.scipy.cholesky import lapack
from ...types import DTYPES, Dtype, Uplo
from ..blas.vectors import whole
from .call import dressed, order_of
from .docs import SPECTRA
from .host_stacks import HostStacks

__all__ = ["FUNCTIONS", "checked", "scipys_name", "signature_of"]

_RANGE = "range lower vl vu il iu abstol"
#: SciPy's routines by the names of those of real matrices: arrays, options in their order and, where they are
#: others, those of complex matrices, results, and the first line of the docstring.
ROWS = {
    "syev": (
        "a",
        "compute_v lower lwork overwrite_a",
        "",
        "w v info",
        "Eigenvalues and eigenvectors of Hermitian matrices by QR iteration",
    ),
    "syevd": (
        "a",
        "compute_v lower lwork liwork overwrite_a",
        "compute_v lower lwork liwork lrwork overwrite_a",
        "w v info",
        "Eigenvalues and eigenvectors of Hermitian matrices by divide and conquer",
    ),
    "syevr": (
        "a",
        f"compute_v {_RANGE} lwork liwork overwrite_a",
        f"compute_v {_RANGE} lwork lrwork liwork overwrite_a",
        "w z m isuppz info",
        "Some eigenvalues of Hermitian matrices by relatively robust representations",
    ),
    "syevx": (
        "a",
        f"compute_v {_RANGE} lwork overwrite_a",
        "",
        "w z m ifail info",
        "Some eigenvalues of Hermitian matrices by bisection and inverse iteration",
    ),
    "sygv": (
        "a b",
        "itype jobz uplo lwork overwrite_a overwrite_b",
        "",
        "w v info",
        "Generalized Hermitian eigenproblems by QR iteration",
    ),
    "sygvd": (
        "a b",
        "itype jobz uplo lwork liwork overwrite_a overwrite_b",
        "itype jobz uplo lwork lrwork liwork overwrite_a overwrite_b",
        "w v info",
        "Generalized Hermitian eigenproblems by divide and conquer",
    ),
    "sygvx": (
        "a b",
        "itype jobz range uplo vl vu il iu abstol lwork overwrite_a overwrite_b",
        "",
        "w z m ifail info",
        "Some eigenvalues of generalized Hermitian eigenproblems",
    ),
    "sygst": (
        "a b",
        "itype lower overwrite_a",
        "",
        "c info",
        "Generalized Hermitian eigenproblems as standard ones, from the Cholesky factor of b",
    ),
    "sytrd": (
        "a",
        "lower lwork overwrite_a",
        "",
        "c d e tau info",
        "Tridiagonal matrices that are similar to Hermitian ones, by reflectors",
    ),
    "gesdd": (
        "a",
        "compute_uv full_matrices lwork overwrite_a",
        "",
        "u s vt info",
        "Singular values and vectors by divide and conquer",
    ),
    "gesvd": (
        "a",
        "compute_uv full_matrices lwork overwrite_a",
        "",
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
    """SciPy's name of a routine for a dtype: 'he' is in the place of 'sy' for complex ones."""
    return letter + (f"he{stem[2:]}" if letter in "cz" and stem.startswith("sy") else stem)


def signature_of(names: list[str], result: str) -> Signature:
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
        if values and letter not in values[0]:
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


class _Routine(NamedTuple):
    """A routine of the table in a dtype, or in that of the arrays."""

    stem: str
    name: str
    dtype: Dtype | None

    def computed(self, passed: Mapping[str, Any]) -> tuple[Any, ...]:
        """Results for arguments by name, of host arrays."""
        arrays, *_ = ROWS[self.stem]
        stacks = HostStacks(self.name, {each: passed[each] for each in arrays.split()}, self.dtype)
        options = checked(self.name, {each: passed[each] for each in passed if each not in arrays.split()})
        if self.stem.startswith("sy"):
            orders = {order_of(self.name, *each) for each in zip(arrays.split(), stacks.arrays, strict=True)}
            if len(orders) > 1:
                shapes = " and b ".join(str(each.shape) for each in stacks.arrays)
                raise ValueError(f"{self.name}: a has shape {shapes}, of another order")
        if 0 in stacks.arrays[0].shape[-2:]:
            raise ValueError(
                f"{self.name}: a has shape {stacks.arrays[0].shape}; LAPACK needs rows and columns"
            )
        routine = lapack(scipys_name(stacks.dtype.letter, self.stem)[1:], stacks.dtype.name)
        return tuple(stacks.computed(lambda *each: _called(self.name, routine, each, options)))


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
    arrays, options, of_complex, *_ = ROWS[stem]
    named = of_complex if of_complex and dtype is not None and dtype.is_complex else options
    signature = signature_of([*arrays.split(), *named.split()], "tuple[Array, ...]")
    routine = _Routine(stem, name, dtype)

    def call(*passed: Any, **named: Any) -> tuple[Any, ...]:
        bound = signature.bind(*passed, **named)
        bound.apply_defaults()
        return routine.computed(bound.arguments)

    return _dressed(call, stem, name, dtype, signature)


def _dressed(
    call: Callable[..., Any], stem: str, name: str, dtype: Dtype | None, signature: Signature
) -> Callable[..., Any]:
    """A function with its signature, docstring and SciPy's attributes."""
    arrays, *_, results, summary = ROWS[stem]
    first, *others = results.split()
    entries = "\n".join(f"{each} : {_NUMBERS.get(each, 'array')}" for each in (first, *others))
    matrices = ", ".join({"a": "[[2, 0], [0, 1]]", "b": "[[1, 0], [0, 1]]"}[each] for each in arrays.split())
    shown_result, printed = _EXAMPLES.get(first, _EXAMPLES["c"])
    head = f"{summary}.\n\n{_PARAMETERS if stem.startswith('ge') else ''}Returns\n-------\n{entries}\n\n"
    example = f"{', '.join((first, *others))} = lapack.{stem}({matrices})\n>>> {shown_result}\n{printed}\n"
    call.__doc__ = f"{head}Examples\n--------\n>>> from pyblasgpu import lapack\n>>> {example}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return dressed(call, stem, name, dtype, SPECTRA)


def _make_query(stem: str, dtype: Dtype) -> Callable[..., Any]:
    """The query of the workspace of a routine."""
    arguments, results, of_complex = QUERIES[stem]
    name = scipys_name(dtype.letter, stem) + "_lwork"
    signature = signature_of(arguments.split(), "tuple[Any, ...]")

    def call(*passed: Any, **named: Any) -> tuple[Any, ...]:
        bound = signature.bind(*passed, **named)
        bound.apply_defaults()
        extents = {each: whole(bound.arguments[each], name, each) for each in "mn" if each in bound.arguments}
        for each, value in extents.items():
            if value < 0:
                raise ValueError(f"{name}: {each}={value} is negative")
        options = checked(name, {key: bound.arguments[key] for key in bound.arguments if key not in extents})
        routine = lapack(scipys_name(dtype.letter, stem)[1:] + "_lwork", dtype.name)
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
    return dressed(call, f"{stem}_lwork", name, dtype, SPECTRA)


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
