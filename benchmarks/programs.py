"""Programs written for SciPy, with and without `pyblasgpu.patch_scipy`: seconds of the same calls.

``python -m benchmarks.programs [--out DIR] [--backend cuda] [--quick]``. Gaussian process regression and
kernel ridge regression, by scikit-learn where it is installed, and as the same calls of SciPy's; generalised
least squares by statsmodels, with NumPy's names patched too; and single calls over n, which show from which
size on the GPU pays. All arrays are in host memory, and times include the copies. Times are medians, with and
without the patch in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import scipy.linalg

import pyblasgpu
from benchmarks.study import Namespace, Option, Row, Rows, Study, device_facts, main, table
from pyblasgpu.testing.clocks import host_clock
from pyblasgpu.tuning.scipy_thresholds import calls
from pyblasgpu.typing import Backend

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


def compare(call: Call, backend: Backend | None, rounds: int, numpy: bool) -> Row:
    """Medians of seconds without and with the patch, how many calls it took, and how far results differ."""
    without, within = [], []
    results: list[Any] = [None, None]

    def run(place: int) -> None:
        results[place] = call()

    for _ in range(rounds + 1):
        without.append(host_clock(lambda: run(0)))
        with pyblasgpu.patch_scipy(thresholds=0, backend=backend, numpy=numpy) as patch:
            within.append(host_clock(lambda: run(1)))
    difference = max(
        float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-300))
        for y, x in zip(*map(parts, results), strict=True)
    )
    # the first compiles, and touches memory for the first time
    times = {"scipy": round(median(without[1:]), 6), "patched": round(median(within[1:]), 6)}
    return {**times, "calls": dict(patch.calls), "difference": difference}


def parts(result: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def rows(options: Namespace) -> Rows:
    def row(name: str, n: int, call: Call, rounds: int) -> Row:
        return {"name": name, "n": n, **compare(call, options.backend, rounds, numpy=name == STATSMODELS)}

    def programs(n: int) -> Rows:
        yield row("Gaussian process by SciPy's calls", n, gaussian_process(n), 1)
        yield from (row(name, n, call, 1) for name, call in (*sklearns(n), *statsmodels(n)))

    slow: set[str] = set()
    yield from programs(POINTS[0])
    for n in SIZES[:1] if options.quick else SIZES:
        for name, call in single_calls(n):
            if name not in slow:
                made = row(name, n, call, 2)
                if made["scipy"] > SECONDS:
                    slow.add(name)
                yield made
    for n in () if options.quick else POINTS[1:]:
        yield from programs(n)


def facts(options: Namespace) -> Row:
    is_cpu = pyblasgpu.backend_status(options.backend).backend == "cpu"
    return {"device": "none"} if is_cpu else device_facts(options)


def document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    seconds: dict[str, Row] = {}
    for row in lists["results"]:
        record = {key: value for key, value in row.items() if key not in ("name", "n")}
        seconds.setdefault(row["name"], {})[str(row["n"])] = record
    return {**facts, "seconds": seconds}


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    lines = (
        (r["name"], r["n"], 1e3 * r["scipy"], 1e3 * r["patched"], r["scipy"] / r["patched"]) for r in rows
    )
    yield table("milliseconds", "program or call | n | SciPy | patched | ratio", lines)


STUDY = Study(
    "programs",
    __doc__,
    rows,
    {
        "backend": Option(None, help="where the patch sends calls, by default the GPU"),
        "quick": Option(False, help="small sizes alone"),
    },
    facts,
    document=document,
    summary=summary,
    seconds=120,
)

if __name__ == "__main__":
    main(STUDY)
