"""What stands on SGEMM, with products on tensor cores, by FMAs, and by cuBLAS and cuSOLVER: times and errors.

`gesv` and `posv` are `linalg.solve` of float64 and one right-hand side: refined, by float64's factors, and by
cuSOLVER, with the copies that leave A as it is. Their error is the residual in units of what dsgesv allows.

    python -m benchmarks.tensor_level3 --out DIR [--seconds 55] [--routines trmm ...] [--sizes 4096 ...]

Medians by CUDA events. What is overwritten is brought anew before each run, and the L2 cache is emptied;
neither is timed. The mode is timed with the algorithms of `VARIANTS` too. Each case updates the file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np

import pyblasgpu
from pyblasgpu import lapack, linalg
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.testing import cublas, cusolver
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import Diag, Side, Trans, Uplo, dtype_of

from .lu import Vendor, seconds

SIZES = (8192, 4096, 2048, 16384)
SAMPLE = 256  # rows or columns of which errors are found
#: Overrides beside the choice of the library.
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "trmm": ({"trmm_algorithm": "trmm_fused_1024"},),
    "trsm": ({"trsm_algorithm": "trsm_fused_512"},),
}
#: Multiplications and additions of one n, or for each column of n.
FLOPS: dict[str, Callable[[int], float]] = {
    "trmm": lambda n: n**3,
    "trsm": lambda n: n**3,
    "potrf": lambda n: n**3 / 3,
    "getrf": lambda n: 2 * n**3 / 3,
    "gesv": lambda n: 2 * n**3 / 3,
    "posv": lambda n: n**3 / 3,
    "syrk": lambda n: n**3,
    "symm": lambda n: 2 * n**3,
}
#: Routines of complex64 begin with a c.
COMPLEX = tuple(f"c{name}" for name in ("trmm", "trsm", "getrf", "syrk", "symm"))


class Problem(NamedTuple):
    """A routine of one size: `a` as it is read, `c` as it comes, and the arrays that calls work on."""

    routine: str  # without a letter
    a: cupy.ndarray
    start: cupy.ndarray
    c: cupy.ndarray

    @classmethod
    def of(cls, routine: str, n: int, columns: int) -> Problem:
        a, b = normal(n, n, 1), normal(n, columns, 2)
        if routine in COMPLEX:
            pairs = (a, normal(n, n, 3)), (b, normal(n, columns, 4))
            a, b = (cupy.asfortranarray(real + 1j * imaginary) for real, imaginary in pairs)
        routine = routine.removeprefix("c")
        if routine in ("trmm", "trsm"):
            a *= 1 / n**0.5
            a.T.ravel()[:: n + 1] += 2
        if routine == "potrf":
            a *= 1 / n**0.5
            a += a.T.copy()
            a.T.ravel()[:: n + 1] += 4
        start = a if routine in ("potrf", "getrf") else b
        return cls(routine, a, start, cupy.empty_like(start))

    def prepare(self) -> None:
        self.c[...] = self.start

    def ours(self) -> Any:
        a, c = self.a, self.c
        if self.routine == "syrk":
            return pyblasgpu.syrk(a, out=c, lower=True)
        if self.routine == "symm":
            return pyblasgpu.symm(a, self.start, out=c, lower=True)
        if self.routine in ("trmm", "trsm"):
            return getattr(pyblasgpu, self.routine)(a, c, out=c, lower=True)
        if self.routine == "potrf":
            return lapack.potrf(c, lower=1, clean=0, overwrite_a=1)
        return lapack.getrf(c, overwrite_a=1)

    def vendor(self) -> Callable[[], None]:
        """The call of cuBLAS or cuSOLVER."""
        a, b, c, blas = self.a, self.start, self.c, cublas.load()
        flags = Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT
        if self.routine == "potrf":
            solver = cusolver.load()
            return lambda: solver.potrf(c, Uplo.LOWER)
        if self.routine == "getrf":
            return cusolver_getrf(c)[0]
        return {
            "syrk": lambda: blas.syrk(1.0, a, 0.0, c, Uplo.LOWER, Trans.NO),
            "symm": lambda: blas.symm(1.0, a, b, 0.0, c, Side.LEFT, Uplo.LOWER),
            "trmm": lambda: blas.trmm(1.0, a, c, *flags),
            "trsm": lambda: blas.trsm(1.0, a, c, *flags),
        }[self.routine]

    def error(self) -> float | None:
        """Componentwise, in units of u |A||B| or, backwards, of u |T||X| or u |L||U|, of some columns."""
        n = self.a.shape[0]
        take = cupy.arange(0, self.c.shape[1], max(self.c.shape[1] // SAMPLE, 1))
        wide = np.result_type(self.a.dtype, np.float64)
        c, a = self.c, self.a.astype(wide)
        if self.routine in ("trmm", "trsm"):
            a = cupy.tril(a)
        elif self.routine == "symm":
            a = cupy.tril(a) + cupy.tril(a, -1).T
        b = self.start[:, take].astype(wide)
        if self.routine in ("symm", "trmm"):
            return worst(c[:, take] - a @ b, abs(a) @ abs(b))
        if self.routine == "syrk":
            below = take[None, :] <= cupy.arange(n)[:, None]
            return worst(below * (c[:, take] - a @ a[take].T), abs(a) @ abs(a[take]).T)
        if self.routine == "trsm":
            x = c[:, take].astype(wide)
            return worst(a @ x - b, abs(a) @ abs(x))
        if self.routine == "potrf":
            factor, below = cupy.tril(c.astype(np.float64)), take[None, :] <= cupy.arange(n)[:, None]
            some = factor[take].T
            return worst(below * (factor @ some - a[:, take]), abs(factor) @ abs(some))
        return None


class Solution:
    """A system of float64 with one right-hand side, by LU or Cholesky factors; refined at any order."""

    def __init__(self, routine: str, n: int):
        self.routine = routine
        self.x: Any = None  # the last solution
        a = normal(n, n, 1).astype(np.float64)
        if routine == "posv":
            a *= 1 / n**0.5
            a += a.T.copy()
            a.T.ravel()[:: n + 1] += 4
        self.a, self.b = a, cupy.random.RandomState(2).standard_normal((n, 1))

    def prepare(self) -> None:
        """A is as it was."""

    def ours(self, method: str | None = None) -> None:
        structure = "gen" if self.routine == "gesv" else "pos"
        with deciding_by(getrf_refined_min_order=1, potrf_refined_min_order=1):
            self.x = linalg.solve(self.a, self.b, assume_a=structure, lower=True, method=method)

    def vendor(self) -> Callable[[], None]:
        a, solver = cupy.empty_like(self.a), cusolver.load()
        if self.routine == "gesv":
            factor, substitute = cusolver_getrf(a)
        else:
            factor, substitute = (
                partial(solver.potrf, a, Uplo.LOWER),
                lambda x: solver.potrs(a, x, Uplo.LOWER),
            )

        def run() -> None:
            a[...], self.x = self.a, self.b.copy()
            factor()
            substitute(self.x)

        return run

    def error(self) -> float:
        residual = abs(self.b - self.a @ self.x).max() / (abs(self.a).sum(axis=1).max() * abs(self.x).max())
        return round(float(residual) * 2**53 / len(self.a) ** 0.5, 4)


def cusolver_getrf(c: cupy.ndarray) -> tuple[Callable[[], None], Callable[[cupy.ndarray], None]]:
    """Factors of `c` in place, and solutions from them."""
    from cupy_backends.cuda.libs import cusolver as bindings

    letter, n = dtype_of(c.dtype).letter, c.shape[0]
    factor, solve = Vendor(letter, c), getattr(bindings, f"{letter}getrs")
    matrix, info = (c.data.ptr, n, factor.piv.data.ptr), factor.info.data.ptr
    return factor, lambda x: solve(factor.handle, 0, n, x.shape[1], *matrix, x.data.ptr, n, info)


def worst(error: cupy.ndarray, scale: cupy.ndarray) -> float:
    return round(float((abs(error) / scale).max()) * 2**24, 2)


def normal(rows: int, columns: int, seed: int) -> cupy.ndarray:
    made = cupy.random.RandomState(seed).standard_normal((columns, rows), dtype=np.float32)
    return made.T  # column-major


def measured(routine: str, n: int, columns: int, flush: cupy.ndarray) -> dict[str, Any]:
    """Seconds and errors of all ways of one case."""
    problem = Solution(routine, n) if routine in ("gesv", "posv") else Problem.of(routine, n, columns)
    in_mode = partial(problem.ours, "tensor") if isinstance(problem, Solution) else problem.ours
    repeats = 3 if n >= 8192 else 7

    def prepare() -> None:
        problem.prepare()
        flush.fill(0)

    work = FLOPS[routine.removeprefix("c")](n) * (4 if routine in COMPLEX else 1)

    def timed(run: Callable[[], Any], mode: str | None, overrides: dict[str, Any]) -> dict[str, Any]:
        with ExitStack() as stack:
            stack.enter_context(set_math_mode(mode))
            for name, value in overrides.items():
                stack.enter_context(override(name, value))
            spent = seconds(run, prepare, repeats)
        return {
            "seconds": spent,
            "tflops": work * columns / n / spent / 1e12,
            "units": problem.error(),
        }

    vendor = timed(problem.vendor(), None, {})
    timings = {
        "vendor": vendor,
        "fma": timed(problem.ours, None, {}),
        "mode": timed(in_mode, "tensor", {}),
    }
    for options in VARIANTS.get(routine.removeprefix("c"), ()):
        name = ",".join(f"{key}={value}" for key, value in options.items())
        try:
            timings[name] = timed(problem.ours, "tensor", options)
        except Exception as problem_met:  # the others are wanted all the same
            timings[name] = {"problem": repr(problem_met)[:200]}
    best = timings["mode"]["seconds"]
    ratios = {"ratio": vendor["seconds"] / best, "ratio_to_fma": timings["fma"]["seconds"] / best}
    return {"routine": routine, "n": n, "columns": columns, **ratios, **timings}


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Routine, order and columns; those of TRMM and TRSM alone are not the order where they are asked for."""
    for n in options.sizes:
        for routine in options.routines:
            for columns in (options.columns if routine[-4:] in ("trmm", "trsm") else ()) or (n,):
                yield routine, n, columns


#: What bounds the ranges of `database.policy` from below.
SIZES_OF_RANGE = ("order", "rhs", "elements")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=55)
    parser.add_argument("--routines", nargs="+", default=list(FLOPS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    help_columns = "right-hand sides of trmm and trsm, which take their recursion in the mode then"
    parser.add_argument("--columns", nargs="+", type=int, default=[], help=help_columns)
    options = parser.parse_args()
    everywhere = {"s": 1, "c": 1}
    names = [f"tensor_{routine}_min_{size}" for routine in ("trmm", "trsm") for size in SIZES_OF_RANGE]
    with deciding_by(**dict.fromkeys(names, everywhere)) if options.columns else nullcontext():
        write_cases(options)


def write_cases(options: argparse.Namespace) -> None:
    """Measure all cases, and write the file after each."""
    options.out.mkdir(parents=True, exist_ok=True)
    cublas.load().set_stream(cupy.cuda.get_current_stream().ptr)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    document: dict[str, Any] = {"device": name, "cases": []}
    flush = cupy.empty(2 * cupy.cuda.Device().attributes["L2CacheSize"] // 4, cupy.float32)
    begin = time.monotonic()
    for routine, n, columns in cases(options):
        try:
            case = measured(routine, n, columns, flush)
        except Exception as problem:  # the others are wanted all the same
            case = {"routine": routine, "n": n, "columns": columns, "problem": repr(problem)[:200]}
        document["cases"].append(case)
        (options.out / "tensor_level3.json").write_text(json.dumps(document, indent=1) + "\n")
        print(json.dumps(case), flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
        if time.monotonic() - begin > options.seconds:
            return


if __name__ == "__main__":
    main()
