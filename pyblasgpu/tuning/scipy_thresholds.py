"""``pyblasgpu tune --scipy``: from which size on SciPy's calls are faster on the GPU, copies included."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf
from statistics import median
from typing import Any

import numpy as np
import scipy.linalg
import scipy.linalg.blas

from .. import terminal
from ..database import Document
from ..database.policy import MAX_VALUE, Policy
from ..dispatch import choose
from ..dispatch.tuned_files import policy_of
from ..gpu.device import present
from ..scipy_patch.switch import patch_scipy
from ..scipy_patch.thresholds import sizes_of
from .tuned_file_writer import merge

__all__ = ["TIMED", "Call", "Say", "calls", "gains_of", "keep", "main", "threshold", "thresholds"]

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
    "qr": (1, ("qr",), ("qr",)),
    "eigh": (1, ("eigh_matrix", "eigvalsh_matrix"), ()),
    "eigh of a stack": (1, ("eigh", "eigvalsh"), ()),
    "svd of a stack": (1, ("svd",), ()),
}
STACK = 512  # matrices of a stack, each of an eighth of the order: as much work as one of it

Call = Callable[[], Any]
#: Takes a call's name, the order, and the seconds without and with the patch.
Say = Callable[[str, int, float, float], None]


def calls(n: int) -> Iterator[tuple[str, Call]]:
    """The calls of `TIMED` with matrices of order n; SciPy's and NumPy's names are looked up when they
    run."""
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
    yield "qr", lambda: linalg.qr(general, mode="economic", **unchecked)
    yield "eigh", lambda: linalg.eigh(definite, **unchecked)
    order = n // 8
    stacks = [np.broadcast_to(each[:order, :order], (STACK, order, order)) for each in (definite, general)]
    yield "eigh of a stack", lambda: np.linalg.eigh(stacks[0])
    yield "svd of a stack", lambda: np.linalg.svd(stacks[1])


def seconds(call: Call) -> float:
    """The median of a call, after one that is not timed."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times[1:])


def threshold(gains: Mapping[float, float], speedup: float | None = None) -> float:
    """The least size from which on all gains are large enough; infinite where that of the largest is not.

    Parameters
    ----------
    gains : mapping of number to number
        How many times faster a call of a size is.
    speedup : number, optional
        The gain that is large enough; by default that of calls that copy.
    """
    least = inf
    for size in sorted(gains, reverse=True):
        if gains[size] < (MIN_SPEEDUP if speedup is None else speedup):
            break
        least = size
    return least


def gains_of(
    factors: Mapping[str, float],
    calls: Callable[[int], Iterable[tuple[str, Call]]],
    patched: Callable[[str], AbstractContextManager[Any]],
    sizes: Sequence[int],
    say: Say | None = None,
) -> dict[str, dict[float, float]]:
    """How many times faster calls are under a patch, by name and size.

    Parameters
    ----------
    factors : mapping of str to number
        The size of a call over the order of its matrices.
    calls : callable
        Returns the calls with matrices of an order.
    patched : callable
        Returns the block in which a call is patched.
    sizes : sequence of int
        Orders of matrices.
    say : callable, optional
        Called with a call's name, the order, and the seconds without and with the patch.
    """
    gains: dict[str, dict[float, float]] = {name: {} for name in factors}
    slow: set[str] = set()
    for n in sizes:
        for name, call in calls(n):
            if name in slow:
                continue
            plain = seconds(call)
            with patched(name):
                served = seconds(call)
            gains[name][n * factors[name]] = plain / served
            if say is not None:
                say(name, n, plain, served)
            if plain > SECONDS:
                slow.add(name)
    return gains


def thresholds(
    sizes: Sequence[int] = SIZES, backend: str | None = None, say: Say | None = None
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
    factors = {name: factor for name, (factor, *_) in TIMED.items()}
    gains = gains_of(
        factors, calls, lambda _: patch_scipy(thresholds=0, backend=backend, numpy=True), sizes, say
    )
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
    return keep(options, "scipy", lambda say: thresholds(backend="cuda", say=say), sizes_of)


def keep(
    options: Any,
    library: str,
    find: Callable[[Say | None], Mapping[str, Any]],
    shown: Callable[[Policy], dict[str, float]],
) -> int:
    """Keep the values of the policy that `find` measures on device 0; returns the exit code.

    Parameters
    ----------
    options : object
        The options of `main`.
    library : str
        The library that is patched, as the option names it.
    find : callable
        Returns the values; takes what is called with the times.
    shown : callable
        Returns the sizes of a policy, by function.
    """
    device, console = present(options.device), terminal.console()
    if device.ordinal != 0:
        raise ValueError(f"--{library} times calls on device 0, where those of patch_{library} go")

    def say(name: str, n: int, plain: float, patched: float) -> None:
        console.print(f"{name:14}{n:6}{1e3 * plain:10.2f} ms{1e3 * patched:10.2f} ms patched")

    path = merge(Document(device.name, policy=dict(find(None if options.json else say))))
    choose.reload()
    if options.json:
        sizes = shown(policy_of(device))
        print(json.dumps({name: size if size < inf else None for name, size in sizes.items()}, indent=1))
    else:
        console.print(f"written to {path}", soft_wrap=True)
    return 0
