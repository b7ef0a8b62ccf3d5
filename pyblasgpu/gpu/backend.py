"""The one door to Numba: ``cuda``, device helpers, and the intrinsics of the target.

Kernel files import ``cuda``, ``ptx`` and the makers of device functions from here and nothing else of
Numba. On a machine without numba-cuda the first two are None, so that Configs, rules and resource formulas
still load; only building a kernel fails then, with `BackendUnavailable`.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

from ..errors import BackendUnavailable

#: Whether kernels run in Numba's simulator (decided, as Numba does, when it is first imported).
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")

cuda: Any = None
ptx: Any = None
UNAVAILABLE: str | None = None

try:
    if SIMULATED:
        from . import simulator as ptx
    else:
        from . import ptx
    cuda = ptx.cuda
except ImportError as missing:
    UNAVAILABLE = f"kernels cannot be built here: {missing}"


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
