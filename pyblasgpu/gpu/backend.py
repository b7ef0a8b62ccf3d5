"""The one door to Numba: ``cuda``, device helpers, and the intrinsics of the target.

Kernel files import ``cuda``, ``ptx`` and the makers of device functions from here and nothing else of
Numba. The first two are modules that import Numba when a kernel is built, so that Configs, rules, resource
formulas and launches do without it. Where it cannot be imported, only building a kernel fails, with
`BackendUnavailable`.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import BackendUnavailable


def _simulated() -> bool:
    """Return Numba's reading of ``NUMBA_ENABLE_CUDASIM``, past or future. A value that is no number, as
    "False", is off.
    """
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return bool(vars(config)["ENABLE_CUDASIM"])
    try:
        return bool(int(os.environ.get("NUMBA_ENABLE_CUDASIM", 0)))
    except ValueError:
        return False


#: Whether kernels run in Numba's simulator.
SIMULATED = _simulated()


@contextmanager
def _older_numpy() -> Iterator[None]:
    """NumPy as numba-cuda 0.30 expects it during its import: with `row_stack`, which 2.5 lacks. Deprecations
    that nobody can mend here are kept from a caller who makes them errors.
    """
    lacking = not hasattr(np, "row_stack")
    if lacking:
        vars(np)["row_stack"] = np.vstack
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        if lacking:
            del vars(np)["row_stack"]


def _reason(problem: Exception) -> str:
    """Return why kernels cannot be built, and the extra to install where a package is missing."""
    if not isinstance(problem, ImportError):
        return f"kernels cannot be built here: {type(problem).__name__}: {problem}"
    extra = "[sim]" if problem.name == "greenlet" else "[cu13], or [cu12] with a driver of CUDA 12"
    return f"kernels cannot be built here: {problem}; install pyblasgpu{extra}"


@cache
def _imported() -> tuple[Any, str | None]:
    """The intrinsics of the target; or None, and why kernels cannot be built."""
    try:
        with _older_numpy():
            if SIMULATED:
                return import_module(".simulator.intrinsics", __package__), None
            intrinsics = import_module(".intrinsics.ptx", __package__)
            _have_numba_know_modules()
            return intrinsics, None
    except Exception as problem:  # whatever an import raises: the CPU backend needs none of it
        return None, _reason(problem)


def _have_numba_know_modules() -> None:
    """Let Numba resolve a `_Lazy` in a kernel to its module."""
    from numba.cuda import types
    from numba.cuda.typing.typeof import typeof_impl

    module_type: Any = vars(types)["Module"]
    typeof_impl.register(_Lazy)(lambda module, _: module_type(module.target()))


class _Lazy:
    """A module that is imported at its first use.

    Parameters
    ----------
    part : str
        The name by which the intrinsics have it, '' of themselves.
    """

    def __init__(self, part: str):
        self._part = part

    def target(self) -> Any:
        """The module.

        Raises
        ------
        BackendUnavailable
            Where it cannot be imported.
        """
        require()
        intrinsics = _imported()[0]
        return getattr(intrinsics, self._part) if self._part else intrinsics

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python looks up on any object
            raise AttributeError(name)
        return getattr(self.target(), name)


def why_unavailable() -> str | None:
    """Return why kernels cannot be built here; None where they can. It imports Numba."""
    return _imported()[1]


def require() -> None:
    """Raise `BackendUnavailable` when kernels cannot be built."""
    reason = why_unavailable()
    if reason:
        raise BackendUnavailable(reason)


cuda: Any = _Lazy("cuda")
ptx: Any = _Lazy("")
if SIMULATED and _imported()[0] is not None:  # whose kernels look names up while they run
    cuda, ptx = cuda.target(), ptx.target()


def device_function(function):
    """A helper that becomes a part of the kernels that call it; made while a kernel is built."""
    return ptx.inlined(function)


def unrolled(count: int, body):
    """``body(0, ...); body(1, ...); ... body(count - 1, ...)`` as one device function.

    A loop is unrolled only by the compiler's leave; what indexes registers must be unrolled for certain.
    """
    step, *rest = _parameters(body)
    arguments = ", ".join(rest)
    calls = [f"body({step} + {i}, {arguments})" for i in range(count)]
    return _inlined(f"{step}, {arguments}", calls, {"body": body})


def in_order(steps: list):
    """``steps[0](...); steps[1](...); ...``, all of the same parameters, as one device function."""
    arguments = ", ".join(_parameters(steps[0]))
    names = {f"step_{i}": step for i, step in enumerate(steps)}
    return _inlined(arguments, [f"{name}({arguments})" for name in names], names)


def by_constant(body, one_way: bool = False):
    """``body(flag, ...)`` at two places, with a constant `flag`; with True alone where there is `one_way`.

    What the compiler knows in advance takes no registers, and neither way spoils the order of the other.
    """
    flag, *rest = _parameters(body)
    arguments = ", ".join(rest)
    calls = [f"body(True, {arguments})"]
    if not one_way:
        calls = [f"if {flag}:", f"    {calls[0]}", "else:", f"    body(False, {arguments})"]
    return _inlined(f"{flag}, {arguments}", calls, {"body": body})


def _parameters(function) -> list[str]:
    return list(inspect.signature(getattr(function, "py_func", function)).parameters)


def _inlined(parameters: str, calls: list[str], scope: dict):
    exec("\n    ".join([f"def sequence({parameters}):", *(calls or ["pass"])]), scope)  # noqa: S102 - made of names alone
    return device_function(scope["sequence"])
