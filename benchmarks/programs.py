"""Programs written for SciPy, with and without `pyblasgpu.patch_scipy`: seconds of the same calls.

``python -m benchmarks.programs [--out DIR] [--backend cuda] [--quick]``. Gaussian process regression and
kernel ridge regression, by scikit-learn where it is installed, and as the same calls of SciPy's; generalised
least squares by statsmodels, with NumPy's names patched too; and single calls over n, which show from which
size on the GPU pays. All arrays lie in host memory, and times include the copies. Times are medians, with and
without the patch in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.linalg

import pyblasgpu
from pyblasgpu.bench import machine
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.scipy_thresholds import calls

SIZES = (1024, 2048, 512, 4096)
SECONDS = 0.4  # of one call with SciPy, after which larger ones are left out
POINTS = (4000, 8000)
TRAINING = 8  # numbers that describe a point
STATSMODELS = "statsmodels GLS"  # calls numpy.linalg

Call = Callable[[], object]


def definite(n: int) -> np.ndarray:
    """A positive definite matrix as kernels of points in space give it."""
    return kernel_matrix(points(n), points(n)) + 1e-2 * np.eye(n)


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, TRAINING))


def kernel_matrix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The squared exponential kernel."""
    distances = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T
    return np.exp(-0.5 / TRAINING * np.maximum(distances, 0))


def single_calls(n: int) -> Iterator[tuple[str, Call]]:
    """Calls of scipy.linalg with matrices of order n; names are looked up when they run."""
    yield from calls(n)
    a, linalg = definite(n), scipy.linalg
    factor, vector = np.asfortranarray(np.linalg.cholesky(a)), np.random.default_rng(n).standard_normal(n)
    yield "cho_solve 1", lambda: linalg.cho_solve((factor, True), vector, check_finite=False)
    yield "solve pos", lambda: linalg.solve(a, vector, assume_a="pos", check_finite=False)


def gaussian_process(n: int) -> Call:
    """Algorithm 2.1 of Rasmussen and Williams, *Gaussian Processes for Machine Learning*, by SciPy."""
    x, new = points(n), points(n // 4, 1)
    y = np.sin(x).sum(1)

    def run() -> Any:
        factor = scipy.linalg.cholesky(kernel_matrix(x, x) + 1e-2 * np.eye(n), lower=True, check_finite=False)
        alpha = scipy.linalg.cho_solve((factor, True), y, check_finite=False)
        likelihood = -0.5 * y @ alpha - np.log(np.diag(factor)).sum()
        cross = kernel_matrix(x, new)
        v = scipy.linalg.solve_triangular(factor, cross, lower=True, check_finite=False)
        return cross.T @ alpha, 1 - (v * v).sum(0), likelihood

    return run


def sklearns(n: int) -> Iterator[tuple[str, Call]]:
    """scikit-learn's estimators, their parameters fixed."""
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel
        from sklearn.kernel_ridge import KernelRidge
    except ImportError:
        return
    x, new = points(n), points(n // 4, 1)
    y = np.sin(x).sum(1)
    process = GaussianProcessRegressor(RBF(TRAINING**0.5) + WhiteKernel(1e-2), optimizer=None)
    ridge = KernelRidge(alpha=1e-2, kernel="rbf", gamma=0.5 / TRAINING)
    yield "sklearn GaussianProcessRegressor", lambda: process.fit(x, y).predict(new, return_std=True)
    yield "sklearn KernelRidge", lambda: ridge.fit(x, y).predict(new)


def statsmodels(n: int) -> Iterator[tuple[str, Call]]:
    """Generalised least squares with correlated errors."""
    try:
        from statsmodels.regression.linear_model import GLS
    except ImportError:
        return
    x, covariance = np.column_stack([np.ones(n), points(n)]), definite(n)
    y = np.sin(x).sum(1)

    def run() -> Any:
        fitted = GLS(y, x, sigma=covariance).fit()
        return fitted.params, fitted.bse

    yield STATSMODELS, run


def programs(n: int, measure: Callable[[str, int, Call, int], float]) -> None:
    """Time whole programs with n points."""
    measure("Gaussian process by SciPy's calls", n, gaussian_process(n), 1)
    for name, call in (*sklearns(n), *statsmodels(n)):
        measure(name, n, call, 1)


def compare(call: Call, backend: str | None, rounds: int, numpy: bool) -> dict[str, Any]:
    """Medians of seconds without and with the patch, how many calls it took, and how far results differ."""
    without, within = [], []
    expected = actual = None
    for turn in range(rounds + 1):
        start = time.perf_counter()
        expected = call()
        between = time.perf_counter()
        with pyblasgpu.patch_scipy(thresholds=0, backend=backend, numpy=numpy) as patch:
            begin = time.perf_counter()
            actual = call()
            end = time.perf_counter()
        if turn:  # the first compiles, and touches memory for the first time
            without.append(between - start)
            within.append(end - begin)
    difference = max(
        float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-300))
        for x, y in zip(*map(parts, (actual, expected)), strict=True)
    )
    return {
        "scipy": round(median(without), 6),
        "patched": round(median(within), 6),
        "calls": dict(patch.calls),
        "difference": difference,
    }


def parts(result: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def report(name: str, n: int, record: dict[str, Any]) -> None:
    ratio = record["scipy"] / record["patched"]
    print(
        f"{name:34}{n:6}{1e3 * record['scipy']:10.2f}{1e3 * record['patched']:10.2f}{ratio:7.2f}"
        f"{record['difference']:10.1e}  {record['calls']}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("--out", type=Path, help="a folder for programs.json")
    parser.add_argument("--backend", help="where the patch sends calls, by default the GPU")
    parser.add_argument("--quick", action="store_true", help="small sizes alone")
    parser.add_argument("--seconds", type=float, default=120, help="after which nothing more is begun")
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + options.seconds
    device = described(options.backend)
    print(f"{'milliseconds':34}{'n':>6}{'SciPy':>10}{'patched':>10}{'ratio':>7}{'differs':>10}")

    def measure(name: str, n: int, call: Call, rounds: int) -> float:
        if time.monotonic() > end:
            return float("inf")
        record = results.setdefault(name, {})[str(n)] = compare(
            call, options.backend, rounds, numpy=name == STATSMODELS
        )
        report(name, n, record)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            text = json.dumps({**device, "seconds": results}, indent=1)
            (options.out / "programs.json").write_text(text + "\n")
        return record["scipy"]

    slow: set[str] = set()
    for n in POINTS[:1]:
        programs(n, measure)
    for n in SIZES[:1] if options.quick else SIZES:
        for name, call in single_calls(n):
            if name not in slow and measure(name, n, call, 2) > SECONDS:
                slow.add(name)
    for n in () if options.quick else POINTS[1:]:
        programs(n, measure)
    return 0


def described(backend: str | None) -> dict[str, Any]:
    if pyblasgpu.backend_status(backend).backend == "cpu":
        return {"device": "none"}
    from pyblasgpu.gpu.device import current

    return machine.describe(current(), None)


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.programs"], main))
