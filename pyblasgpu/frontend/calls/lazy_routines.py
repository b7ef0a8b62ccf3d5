"""The routines, imported at their first use, and what enqueues them: host arrays do without."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from sys import modules
from typing import Any

from ...operands import Operand
from ...routine_table import ROUTINES
from ...types import DTYPES, Region

__all__ = [
    "after_copy",
    "copy_launches",
    "enqueue",
    "keeps_residues",
    "largest_order",
    "launch_list_of",
    "policy_at",
    "routine",
    "routine_module",
    "tuned_files",
]


@cache
def routine_module(name: str) -> Any:
    """The module of `pyblasgpu.routines` with this name, imported at its first use."""
    return import_module(f"...routines.{name}", __package__)


@cache
def launch_list_of(name: str) -> Callable[..., Any]:
    """The function that gives the launch list of a routine, or of a module of `routines`, imported late."""
    row = ROUTINES.get(name)
    function: Callable[..., Any] = row.launch_list if row else routine_module(name).launch_list
    return function


@cache
def routine(name: str) -> Callable[..., None]:
    """Return ``run(*arguments, stream, **flags)``, which enqueues a routine; see its launch list. Where there
    is no number among the arguments, alpha is 1.
    """
    prepare = launch_list_of(name)

    def run(*arguments: Any, **flags: Any) -> None:
        *inputs, stream = arguments
        launches = prepare(*inputs, **flags)
        if launches is not None:
            operands = [x for x in inputs if isinstance(x, Operand)]
            scalars = [x for x in inputs if not isinstance(x, Operand)] or [1]
            launches.run([operand.pointer for operand in operands], *scalars, stream=stream)

    run.__name__ = name
    return run


#: Names in `sys.modules`, where a small call finds them sooner than by `import_module`.
_TUNED_FILES, _DEVICE = (
    f"{__name__.split('.')[0]}.{name}" for name in ("dispatch.tuned_files", "gpu.device")
)


def tuned_files() -> Any:
    """The module `dispatch.tuned_files`."""
    return modules.get(_TUNED_FILES) or import_module("...dispatch.tuned_files", __package__)


def policy_at(device: int | None) -> Any:
    """Return the numbers by which dispatch decides on a device, by default on the reference (`Policy`)."""
    if device is None:
        return tuned_files().reference_policy()
    here = modules.get(_DEVICE) or import_module("...gpu.device", __package__)
    return tuned_files().policy_of(here.current(device))


def largest_order(stem: str, letter: str, device: int, vectors: bool = True) -> int:
    """Return the largest order of which a device has kernels of eigenvalues, for `syevd`, or for `gesdd` the
    largest lesser extent of singular values.
    """
    generation = import_module("...dispatch.choose", __package__).generation()
    return _largest_order(stem, letter, device, vectors, generation)


@cache
def _largest_order(stem: str, letter: str, device: int, vectors: bool, generation: Any) -> int:
    """Return the same for what is tuned so far."""
    kernels, dtype = routine_module(f"lapack.{stem}"), DTYPES[letter]
    if stem == "syevd":
        return int(kernels.max_order(dtype, device))
    return int(kernels.max_extent(dtype, device, vectors=vectors))


def keeps_residues(letter: str, order: int, device: int) -> bool:
    """Return whether a Cholesky factor in the mode for tensor cores is one by residues that are kept."""
    here = import_module("...gpu.device", __package__).current(device)
    plan = routine_module("lapack.potrf_residues").plan_of_order
    return plan(DTYPES[letter], order, here) is not None


def copy_launches(scalars: tuple[Any, ...], operands: Any) -> Any:
    """The launch list of a copy, for `enqueue` and what keeps calls."""
    return launch_list_of("copies")(scalars[0], *operands)


def after_copy(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``prepare(scalars, operands)`` of a call whose output, the last operand, is first a copy of the
    operand before it.
    """

    def both(scalars: tuple[Any, ...], operands: Any) -> Any:
        *inputs, source, out = operands
        rest = prepare(scalars, (*inputs, out))
        is_whole = rest is None or rest.source_region is Region.ALL
        copy = launch_list_of("copies")(1, source, out, *(() if is_whole else (rest.source_region,)))
        return routine_module("joined_lists").joined(copy, rest, operands)

    return both


def enqueue(prepare: Callable[..., Any], scalars: tuple[Any, ...], operands: Any, stream: int) -> None:
    """Enqueue what ``prepare(scalars, operands)`` lists."""
    launches = prepare(scalars, operands)
    if launches is not None:
        launches.run([operand.pointer for operand in operands], *scalars, stream=stream)
