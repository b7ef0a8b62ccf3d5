"""``pyblasgpu tune --scipy``: from which size on SciPy's calls are faster on the GPU, copies included."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from statistics import median
from typing import Any

import numpy as np
import scipy.linalg
import scipy.linalg.blas

from .. import terminal
from ..database import Document
from ..database.policy import MAX_VALUE
from ..dispatch import choose
from ..dispatch.tuned_files import policy_of
from ..gpu.device import present
from ..scipy_patch.switch import patch_scipy
from ..scipy_patch.thresholds import sizes_of
from .tuned_file_writer import merge

__all__ = ["TIMED", "calls", "main", "threshold", "thresholds"]

SIZES = (128, 192, 256, 320, 384, 512, 768, 1024, 2048)
ROUNDS = 3
SECONDS = 0.25  # of a call of SciPy's, after which larger ones are left out
MIN_SPEEDUP = 4 / 3  # how many times faster a call is to be

#: Call that is timed -> its size over n, and what has its threshold: functions, and routines of these kinds.
TIMED: dict[str, tuple[float, tuple[str, ...], tuple[str, ...]]] = {
    "dgemm": (1, (), ("product",)),
    "dtrsm": (1, ("solve_triangular",), ("triangle",)),
    "cholesky": (1, ("cholesky", "cho_factor"), ("cholesky",)),
    "cho_solve n/8": (0.5, ("cho_solve", "lu_solve"), ("solve",)),
    "solve gen": (1, ("solve",), ("system",)),
    "inv": (1, ("inv",), ("inverse",)),
    "lu_factor": (1, ("lu_factor", "lu", "det", "slogdet"), ("lu",)),
}

Call = Callable[[], Any]


def calls(n: int) -> Iterator[tuple[str, Call]]:
    """The calls of `TIMED` with matrices of order n; SciPy's names are looked up when they run."""
    rng, linalg, blas = np.random.default_rng(n), scipy.linalg, scipy.linalg.blas
    general, right = rng.standard_normal((n, n)), rng.standard_normal((n, n))
    definite = general @ general.T / n + np.eye(n)
    factor, columns = np.asfortranarray(np.linalg.cholesky(definite)), np.asfortranarray(right)
    vector, few = right[:, 0].copy(), np.asfortranarray(right[:, : max(n // 8, 1)])
    unchecked = {"check_finite": False}
    yield "dgemm", lambda: blas.dgemm(1.0, factor, columns)
    yield "dtrsm", lambda: blas.dtrsm(1.0, factor, columns, lower=1)
    yield "cholesky", lambda: linalg.cholesky(definite, lower=True, **unchecked)
    yield "cho_solve n/8", lambda: linalg.cho_solve((factor, True), few, **unchecked)
    yield "solve gen", lambda: linalg.solve(general, vector, assume_a="gen", **unchecked)
    yield "inv", lambda: linalg.inv(general, **unchecked)
    yield "lu_factor", lambda: linalg.lu_factor(general, **unchecked)


def seconds(call: Call) -> float:
    """The median of a call, after one that is not timed."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times[1:])


def threshold(gains: Mapping[float, float]) -> float:
    """The least size from which on all gains are large enough; infinite where that of the largest is not."""
    least = inf
    for size in sorted(gains, reverse=True):
        if gains[size] < MIN_SPEEDUP:
            break
        least = size
    return least


def thresholds(
    sizes: Sequence[int] = SIZES,
    backend: str | None = None,
    say: Callable[[str, int, float, float], None] | None = None,
) -> dict[str, dict[str, float]]:
    """The sizes from which on calls are faster by a third or more, as values of the policy.

    Parameters
    ----------
    sizes : sequence of int
        Orders of matrices.
    backend : str, optional
        Backend, as `patch_scipy` takes it.
    say : callable, optional
        Called with a call's name, the order, and the seconds by SciPy and with the patch.
    """
    gains: dict[str, dict[float, float]] = {name: {} for name in TIMED}
    slow: set[str] = set()
    for n in sizes:
        for name, call in calls(n):
            if name in slow:
                continue
            plain = seconds(call)
            with patch_scipy(thresholds=0, backend=backend):
                patched = seconds(call)
            gains[name][n * TIMED[name][0]] = plain / patched
            if say is not None:
                say(name, n, plain, patched)
            if plain > SECONDS:
                slow.add(name)
    found: dict[str, dict[str, float]] = {"routed_min_size": {}, "routed_function_min_size": {}}
    for name, (_, functions, kinds) in TIMED.items():
        size = min(threshold(gains[name]), MAX_VALUE)
        found["routed_min_size"] |= dict.fromkeys(kinds, size)
        found["routed_function_min_size"] |= dict.fromkeys(functions, size)
    return found


def main(options: Any) -> int:
    """Time the calls on a device and keep the sizes; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``device`` (a number or name, or None) and ``json``.

    Raises
    ------
    BackendUnavailable
        Where there is no device.
    """
    device, console = present(options.device), terminal.console()
    if device.ordinal != 0:
        raise ValueError("--scipy times calls on device 0, where those of patch_scipy go")

    def say(name: str, n: int, plain: float, patched: float) -> None:
        console.print(f"{name:14}{n:6}{1e3 * plain:10.2f} ms{1e3 * patched:10.2f} ms on the device")

    path = merge(Document(device.name, policy=thresholds(backend="cuda", say=None if options.json else say)))
    choose.reload()
    if options.json:
        sizes = sizes_of(policy_of(device))
        print(json.dumps({name: size if size < inf else None for name, size in sizes.items()}, indent=1))
    else:
        console.print(f"written to {path}", soft_wrap=True)
    return 0
