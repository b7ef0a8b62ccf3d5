"""The one door to Numba: ``cuda``, device helpers, and the intrinsics of the target.

Kernel files import ``cuda``, ``ptx`` and the makers of device functions from here and nothing else of
Numba. Where numba-cuda cannot be imported the first two are None, so that Configs, rules and resource
formulas still load; only building a kernel fails then, with `BackendUnavailable`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import BackendUnavailable

#: Whether kernels run in Numba's simulator: what Numba read in ``NUMBA_ENABLE_CUDASIM`` when it was first
#: imported. It reads a number; what is none, as "False", is off.
SIMULATED = False

cuda: Any = None
ptx: Any = None
UNAVAILABLE: str | None = None


@contextmanager
def _older_numpy() -> Iterator[None]:
    """NumPy as numba-cuda 0.30 expects it during its import: with `row_stack`, which 2.5 lacks, and with
    deprecations that nobody can mend here kept from a caller who makes them errors.
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
    """Why kernels cannot be built, and the extra to install where a package is what lacks."""
    if not isinstance(problem, ImportError):
        return f"kernels cannot be built here: {type(problem).__name__}: {problem}"
    extra = "[sim]" if problem.name == "greenlet" else "[cu13], or [cu12] with a driver of CUDA 12"
    return f"kernels cannot be built here: {problem}; install pyblasgpu{extra}"


try:
    with _older_numpy():
        from numba import config

        SIMULATED = bool(vars(config)["ENABLE_CUDASIM"])
        if SIMULATED:
            from .simulator import intrinsics as ptx
        else:
            from .intrinsics import ptx
    cuda = ptx.cuda
except Exception as problem:  # whatever an import raises: the CPU backend needs none of it
    UNAVAILABLE = _reason(problem)


def require() -> None:
    """Raise `BackendUnavailable` when kernels cannot be built."""
    if UNAVAILABLE:
        raise BackendUnavailable(UNAVAILABLE)


def device_function(function):
    """A helper that becomes a part of the kernels that call it."""
    return function if ptx is None else ptx.inlined(function)


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


def _parameters(function) -> list[str]:
    return list(inspect.signature(getattr(function, "py_func", function)).parameters)


def _inlined(parameters: str, calls: list[str], scope: dict):
    exec("\n    ".join([f"def sequence({parameters}):", *(calls or ["pass"])]), scope)  # noqa: S102 - made of names alone
    return device_function(scope["sequence"])
