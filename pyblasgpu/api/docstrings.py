"""Completion of docstrings: entries that functions share are written once, and whole in every ``help()``.

A docstring describes what is its function's own. A `Shared` text of the same sections holds the rest. That is
parameters that the docstring leaves out, descriptions of entries without one, Returns, errors, See Also,
paragraphs of introduction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc, signature
from typing import NamedTuple, TypeVar

__all__ = [
    "ARGUMENTS",
    "HERMITIAN",
    "KEYWORD",
    "PRODUCT",
    "TRIANGLE",
    "UPDATE",
    "VECTOR",
    "Shared",
    "completed",
    "documented",
    "documenting",
    "result_names",
]

_Function = TypeVar("_Function", bound=Callable[..., object])
_SECTION = re.compile(r"^([A-Z][\w ]+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"\n(?=\S)")
#: Sections of entries that are completed, and the order of all.
_LISTS = ("Parameters", "Returns", "Raises", "See Also")
_ORDER = ("Parameters", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "Examples")


class _Entry(NamedTuple):
    """An entry of a section: ``x, y : array`` and its description; an unnamed result has no names."""

    names: tuple[str, ...]
    heading: str
    description: str

    @property
    def text(self) -> str:
        return self.heading + self.description


class Shared:
    """Entries and paragraphs that docstrings share: those of `text`, then those of `others`."""

    def __init__(self, text: str, *others: Shared) -> None:
        sections = _split(cleandoc(text))
        texts = [sections[""], *(paragraph for other in others for paragraph in other.paragraphs)]
        self.paragraphs: list[str] = [paragraph for paragraph in texts if paragraph]
        self.entries: dict[str, list[_Entry]] = {
            name: _entries(name, sections) + [entry for other in others for entry in other.entries[name]]
            for name in _LISTS
        }


def documenting(*shared: Shared) -> Callable[[_Function], _Function]:
    """Return a decorator that completes a docstring; of several shared texts the first that fits is taken."""
    whole = Shared("", *shared)

    def decorate(function: _Function) -> _Function:
        if function.__doc__:  # none with python -OO
            function.__doc__ = completed(function.__doc__, whole, signature(function).parameters)
        return function

    return decorate


def completed(doc: str, shared: Shared, parameters: Iterable[str]) -> str:
    """Return a docstring with what it lacks of `shared`; `parameters` are those of the signature."""
    sections = _split(cleandoc(doc))
    own = {name: _entries(name, sections) for name in _LISTS}
    listed = {
        "Parameters": _all_parameters(own["Parameters"], shared.entries["Parameters"], list(parameters)),
        "Returns": own["Returns"] or shared.entries["Returns"][:1],
        "Raises": [*(_by_names(shared.entries["Raises"]) | _by_names(own["Raises"])).values()],
        "See Also": [*_by_names(own["See Also"] + shared.entries["See Also"]).values()],
    }
    for name in ("Parameters", "Returns"):
        listed[name] = [_described(entry, shared.entries[name]) for entry in listed[name]]
    sections |= {name: "\n".join(entry.text for entry in entries) for name, entries in listed.items()}
    texts = [sections[""], *shared.paragraphs]
    texts += [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in _ORDER if sections.get(name)]
    return "\n\n".join(texts) + "\n"


def result_names(doc: str) -> list[str]:
    """Return the names in the section Returns of a docstring without indentation."""
    return [name for entry in _entries("Returns", _split(doc)) for name in entry.names]


def _split(doc: str) -> dict[str, str]:
    """Return the sections of a docstring by name, that before the first one by ''."""
    introduction, *parts = _SECTION.split(doc)
    return {"": introduction.strip()} | {
        name: text.strip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _entries(section: str, sections: dict[str, str]) -> list[_Entry]:
    return [_entry(section, text) for text in _ENTRY.split(sections.get(section, "")) if text]


def _entry(section: str, text: str) -> _Entry:
    heading, newline, description = text.partition("\n")
    names, colon, _ = heading.partition(" : ")
    is_named = colon or section == "Raises"
    return _Entry(tuple(names.split(", ")) if is_named else (), heading, newline + description)


def _all_parameters(own: list[_Entry], shared: list[_Entry], parameters: list[str]) -> list[_Entry]:
    """Return the entries of all parameters, in the signature's order.

    A shared entry of several parameters fits where they follow one another.
    """
    found = {name: entry for entry in own for name in entry.names}
    for index, name in enumerate(parameters):
        rest = tuple(parameters[index:])
        fitting = (each for each in shared if each.names == rest[: len(each.names)])
        if name not in found and (entry := next(fitting, None)) is not None:
            found |= dict.fromkeys(entry.names, entry)
    return list(dict.fromkeys(found[name] for name in parameters if name in found))


def _by_names(entries: list[_Entry]) -> dict[tuple[str, ...], _Entry]:
    """Return the first entry of each name, in order."""
    found: dict[tuple[str, ...], _Entry] = {}
    for entry in entries:
        found.setdefault(entry.names, entry)
    return found


def _described(entry: _Entry, shared: list[_Entry]) -> _Entry:
    """Return an entry, with the description of the shared one of its names where it has none."""
    if entry.description:
        return entry
    descriptions = (each.description for each in shared if each.names == entry.names)
    return entry._replace(description=next(descriptions, ""))


#: Flags and options of functions in keyword style, and of plans.
ARGUMENTS = Shared("""
    Parameters
    ----------
    alpha, beta : number, optional
        By default 1 and 0. With ``alpha=0`` no input is read, with ``beta=0`` `out` is not read.
    trans_a, trans_b : {'N', 'T', 'C'}, default 'N'
        Each op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2
        serve too.
    trans : {'N', 'T', 'C'}, default 'N'
        The op: the matrix itself, its transpose, its conjugate transpose. 'H' means 'C'; 0, 1, 2
        serve too.
    side : {'L', 'R'}, default 'L'
        Whether `a` is the left factor or the right one; 0 and 1 serve too.
    lower : bool, default False
        Whether the lower triangle of `a` is read, else the upper one.
    out : array, optional
        Written in place, whatever its strides. It may not share memory with an input.
    stream : int or stream object, optional
        The stream of the call, on the device of the arrays; by default the library's current one. Host arrays
        are computed on the stream's device, by default on the current one, after the stream's earlier work.
    backend : {'auto', 'cuda', 'cpu', 'sim', 'numba'}, optional
        For host arrays; `pyblasgpu.backend_status` says what each does.
    method : {'tensor'}, optional
        Products on Hopper's tensor cores, within the same bound of the error, see `gemm`. It changes nothing
        where tensor cores do not serve, as for triangles of float64; `explain` shows it. `set_math_mode` sets
        it for a block.
    device : int, optional
        The device that computes host arrays; by default that of the stream.
    devices : sequence of int or 'all', optional
        Several devices, by number, that compute matrices together, tile by tile. Device arrays are on one of
        them, and the call waits for the result.
    max_device_memory : int, optional
        Bytes that tiles of host arrays may take on each device; by default most of what is free. Matrices
        that need more are streamed through it. The workspace of kernels is not counted.
    blocking : bool, default True
        With False the call returns a `Handle`, whose ``wait()`` returns the result.
    progress : callable or bool, optional
        ``progress(done, total)`` is called as tasks end. True shows a bar, False none; by default long
        calls on a terminal show one.

    Raises
    ------
    ValueError
        When shapes, flags, devices, strides or the stream do not fit. Nothing is written then.
    TypeError
        When dtypes or libraries do not fit, or a number is complex and the arrays are real.
    OverlapError
        When `out` shares memory with an input.
""")

KEYWORD = Shared(
    """
    Arrays are of float32, float64, complex64 or complex128. Integers and booleans count as float64, float16
    as float32; mixed dtypes are cast as by `numpy.result_type`. Strides are any; inputs may be read-only.

    Returns
    -------
    array, shape (..., m, n)
        `out`, or a new array of the inputs' library: column-major if all inputs are, else row-major.

    See Also
    --------
    pyblasgpu.blas : SciPy's names and signatures.
    """,
    ARGUMENTS,
)

#: General products.
PRODUCT = Shared("""
    Parameters
    ----------
    method : {'3m', 'tensor'}, optional
        '3m': complex products may be made of three real ones instead of four, as by the BLAS's
        ``zgemm3m``: fewer operations, and a weaker bound of the error, see `gemm`. complex128 on tensor
        cores is computed so; complex64, and what runs on the CPU, as without. Real dtypes raise ValueError.
        'tensor': products of float32 and complex64 are made of FP16 ones on Hopper's tensor cores, those of
        float64 and complex128 of INT8 ones, within the same bound of the error, see `gemm`. Small products,
        other devices and the CPU compute as without; `explain` shows the kernels.
""")

#: Products and solutions with a triangle.
TRIANGLE = Shared("""
    Parameters
    ----------
    a : array
        A triangle. The other one, and a unit diagonal, are never read.
    alpha : number, default 1
        With 0 the result is 0 and neither `a` nor `b` is read.
    side : {'L', 'R'}, default 'L'
        Whether op(a) is the left factor or the right one; 0 and 1 serve too.
    lower : bool, default False
        Whether `a`, as it is stored, is lower triangular.
    unit_diag : bool, default False
        Take the diagonal of `a` to be 1.
""")

#: Results that are vectors.
VECTOR = Shared("""
    Parameters
    ----------
    x, y : array, shape (..., n)
        The vectors.
    x : array, shape (..., n)
        The vector.

    Returns
    -------
    array, shape (..., n)
        `out`, or a new array of the inputs' library.
""")

#: Updates of one triangle.
UPDATE = Shared("""
    Parameters
    ----------
    lower : bool, default False
        Whether the lower triangle is computed, else the upper one. The other one is neither read nor
        written.

    Returns
    -------
    array, shape (..., n, n)
        `out`, or a new array of the inputs' library with zeros in the other triangle: column-major if all
        inputs are, else row-major.
""")

#: Updates of a Hermitian matrix.
HERMITIAN = Shared("""
    The imaginary parts of the diagonal of `out` are not read, and become zero, unless there is nothing to do:
    alpha or the number of columns is 0 and beta 1.

    Parameters
    ----------
    trans : {'N', 'C'}, default 'N'
        The op: the matrix itself, its conjugate transpose. 'T' is 'C' for real arrays, and refused
        for complex ones.

    Raises
    ------
    TypeError
        When dtypes or libraries do not fit, or a number is complex that has to be real.
""")

documented = documenting(KEYWORD)
