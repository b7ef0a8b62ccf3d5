"""Patches by name: applied as the libraries are imported, and a report of what ran where."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

from .after_import import after_import
from .frontend.backend_status import backend_status
from .patches.patch import Patch

__all__ = ["NAMES", "parsed", "patch_by_environment", "patch_named", "patch_report", "rows", "unpatch_named"]

_log = logging.getLogger("pyblasgpu")

#: Patches by name: the module whose import is awaited, and the module and name of the function.
NAMES = {
    "scipy": ("scipy.linalg", "scipy_patch.switch", "patch_scipy"),
    "numpy": ("numpy.linalg", "scipy_patch.switch", "patch_scipy"),
    "torch": ("torch", "torch_patch.switch", "patch_torch"),
    "cupy": ("cupy", "cupy_patch.switch", "patch_cupy"),
}
_DEFAULT = tuple(name for name in NAMES if name != "numpy")
#: Names that are requested now, and their patches that are on.
_requested: set[str] = set()
_applied: list[Patch] = []


def parsed(names: str | None) -> tuple[str, ...]:
    """Return the names of a list with commas; None is all but "numpy".

    Raises
    ------
    ValueError
        For other names.
    """
    if names is None:
        return _DEFAULT
    found = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = ", ".join(name for name in found if name not in NAMES)
    if unknown or not found:
        raise ValueError(f"patches {unknown or names!r} are none of {', '.join(NAMES)}")
    return found


def patch_named(names: str | None = None, backend: str | None = None) -> None:
    """Patch libraries: those that are imported at once, the others as soon as they are.

    Parameters
    ----------
    names : str, optional
        Names with commas between; see `NAMES`. None is all but "numpy".
    backend : str, optional
        The backend, as the functions take it.
    """
    for name in parsed(names):
        if name not in _requested:
            _requested.add(name)
            after_import(NAMES[name][0], partial(_apply, name, backend))


def _apply(name: str, backend: str | None) -> None:
    """Apply a patch that is still requested; one that cannot be leaves the library as it is."""
    if name not in _requested:
        return
    _, home, function = NAMES[name]
    try:
        # SciPy's patch takes NumPy in
        options: dict[str, Any] = {"numpy": True} if name == "numpy" else {}
        patch = getattr(import_module(f".{home}", __package__), function)
        _applied.append(patch(backend=backend, **options))
    except Exception as error:
        _requested.discard(name)
        _log.warning("%s is not patched: %s", name, error)


def unpatch_named() -> None:
    """End the patches of `patch_named`, and those that are awaited."""
    _requested.clear()
    while _applied:
        _applied.pop().undo()


def patch_by_environment() -> None:
    """Patch what ``PYBLASGPU_PATCH`` names; a wrong name is a warning, as the program is not ours."""
    try:
        patch_named(os.environ["PYBLASGPU_PATCH"])
    except ValueError as wrong:
        warnings.warn(f"PYBLASGPU_PATCH: {wrong}; nothing is patched", RuntimeWarning, stacklevel=2)


def rows() -> Iterator[dict[str, Any]]:
    """The functions that patches that are on have met: library, function, calls served, calls that stayed."""
    for kind in Patch.__subclasses__():
        for patch in kind.active:
            for name in sorted({*patch.calls, *[name for name, _ in patch.kept]}):
                kept = {reason: count for (each, reason), count in patch.kept.items() if each == name}
                yield {"library": kind.library, "function": name, "served": patch.calls[name], "kept": kept}


def patch_report() -> str:
    """Return what ran where under the patches that are on: a table of functions.

    Returns
    -------
    str
        A line for each function that was called. It has the library, the calls that this package served,
        those that stayed with the library, and why. Then the origins of the sizes from which on calls are
        served.

    See Also
    --------
    patch_scipy : Patches SciPy and NumPy.
    patch_torch : Patches PyTorch.

    Examples
    --------
    >>> import numpy as np, scipy.linalg, pyblasgpu
    >>> with pyblasgpu.patch_scipy(backend="cpu", thresholds=100):
    ...     factor = scipy.linalg.cholesky(np.eye(200))
    ...     inverse = scipy.linalg.inv(np.eye(20))
    ...     print(pyblasgpu.patch_report())
    library  function  served  stayed  why
    SciPy    cholesky       1       0
    SciPy    inv            0       1  1 small
    sizes of SciPy: the call
    """
    titles = "library", "function", "served", "stayed", "why"
    lines = [
        (
            row["library"],
            row["function"],
            str(row["served"]),
            str(sum(row["kept"].values())),
            ", ".join(f"{count} {reason}" for reason, count in sorted(row["kept"].items())),
        )
        for row in rows()
    ]
    if not lines:
        if not any(kind.active for kind in Patch.__subclasses__()):
            return f"nothing is patched ({backend_status().reason})"
        return "no function of a patched library was called"
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    texts = []
    for library, function, served, stayed, why in (titles, *lines):
        cells = [library.ljust(widths[0]), function.ljust(widths[1])]
        cells += [served.rjust(widths[2]), stayed.rjust(widths[3]), why]
        texts.append("  ".join(cells).rstrip())
    origins = {kind.library: patch.origin for kind in Patch.__subclasses__() for patch in kind.active}
    met = {line[0] for line in lines}
    texts += [f"sizes of {library}: {origin}" for library, origin in origins.items() if library in met]
    return "\n".join(texts)
