"""Routines made of products on tensor cores, by FMAs, and by cuBLAS and cuSOLVER: times, errors in float32.

`gesv` and `posv` are `linalg.solve` of float64 and one right-hand side. It is refined, by float64's factors,
and by cuSOLVER, with the copies that leave A as it is. Their error is the residual in units of what dsgesv
allows.

    python -m benchmarks.tensor_level3 --out DIR [--seconds 55] [--routines trmm ...] [--sizes 4096 ...]

Medians by CUDA events, of all ways in turn. Of TRMM `vendor` is the faster one of in place and out of place.
What is overwritten is copied anew before each run, and the L2 cache is emptied; neither is timed. The mode
is timed with the algorithms of `VARIANTS` too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal

import cupy
import numpy as np

from benchmarks import level3
from benchmarks.arrays import cold_medians
from benchmarks.lu import Getrf
from benchmarks.study import Namespace, Option, Row, Rows, Study, attempt, cubes, main
from pyblasgpu import linalg
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.testing import cublas, cusolver
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import Diag, Side, Trans, Uplo

SAMPLE = 256  # rows or columns of which errors are found
#: Overrides besides the choice of the library.
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "trmm": ({"trmm_algorithm": "trmm_fused_1024"},),
    "trsm": ({"trsm_algorithm": "trsm_fused_512"},),
}
VENDOR = "vendor"
ROUTINES = "trmm", "trsm", "potrf", "getrf", "gesv", "posv", "syrk", "symm"
#: Routines of other dtypes than float32 begin with a letter.
OTHERS = {
    f"{letter}{name}": (letter, name)
    for letter in "dcz"
    for name in ("trmm", "trsm", "potrf", "getrf", "syrk", "symm")
}


class Problem(level3.Problem):
    """A routine against the vendor's."""

    def vendors(self) -> dict[str, Callable[[], None]]:
        """Ways of the vendor: of TRMM also out of place."""
        if self.routine != "trmm":
            return {VENDOR: self.vendor()}
        other, flags = cupy.empty_like(self.c), (Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT)
        out_of_place = partial(cublas.load().trmm, 1.0, self.a, self.c, *flags, other)
        return {"vendor_in_place": self.vendor(), "vendor_out_of_place": out_of_place}

    def vendor(self) -> Callable[[], None]:
        """The call of cuBLAS or cuSOLVER."""
        a, b, c, blas = self.a, self.start, self.c, cublas.load()
        flags = Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT
        if self.routine == "potrf":
            solver = cusolver.load()
            return lambda: solver.potrf(c, Uplo.LOWER)
        if self.routine == "getrf":
            return Getrf(c)
        return {
            "syrk": lambda: blas.syrk(1.0, a, 0.0, c, Uplo.LOWER, Trans.NO),
            "symm": lambda: blas.symm(1.0, a, b, 0.0, c, Side.LEFT, Uplo.LOWER),
            "trmm": lambda: blas.trmm(1.0, a, c, *flags),
            "trsm": lambda: blas.trsm(1.0, a, c, *flags),
        }[self.routine]

    def error(self) -> float | None:
        """Componentwise, in units of u |A||B| or, backwards, of u |T||X| or u |L||U|, of some columns; of
        double precision None.
        """
        n = self.a.shape[0]
        if self.a.dtype.char in "dD":
            return None
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
        if self.routine == "potrf" and c.dtype.kind == "f":
            factor, below = cupy.tril(c.astype(np.float64)), take[None, :] <= cupy.arange(n)[:, None]
            some = factor[take].T
            return worst(below * (factor @ some - a[:, take]), abs(factor) @ abs(some))
        return None


class Solution:
    """A system of float64 with one right-hand side, by LU or Cholesky factors; refined at any order."""

    def __init__(self, routine: str, n: int):
        self.routine = routine
        self.x: Any = None  # the last solution
        self.a = level3.Problem.of(routine, "s", n, 1).a.astype(np.float64)
        self.b = cupy.random.RandomState(2).standard_normal((n, 1))

    def restore(self) -> None:
        """A is as it was."""

    def ours(self, method: Literal["tensor"] | None = None) -> None:
        structure: Literal["gen", "pos"] = "gen" if self.routine == "gesv" else "pos"
        self.x = linalg.solve(self.a, self.b, assume_a=structure, lower=True, method=method)

    def vendors(self) -> dict[str, Callable[[], None]]:
        """The vendor's one way."""
        return {VENDOR: self.vendor()}

    def vendor(self) -> Callable[[], None]:
        a, solver = cupy.empty_like(self.a), cusolver.load()
        general = Getrf(a) if self.routine == "gesv" else None

        def run() -> None:
            a[...], self.x = self.a, self.b.copy()
            if general:
                general()
                general.solve(self.x)
            else:
                solver.potrf(a, Uplo.LOWER)
                solver.potrs(a, self.x, Uplo.LOWER)

        return run

    def error(self) -> float:
        residual = abs(self.b - self.a @ self.x).max() / (abs(self.a).sum(axis=1).max() * abs(self.x).max())
        return round(float(residual) * 2**53 / len(self.a) ** 0.5, 4)


def worst(error: cupy.ndarray, scale: cupy.ndarray) -> float:
    return round(float((abs(error) / scale).max()) * 2**24, 2)


def measured(routine: str, n: int, columns: int) -> Row:
    """Seconds and errors of all ways of one case."""
    letter, name = OTHERS.get(routine, ("s", routine))
    problem = Solution(routine, n) if routine in ("gesv", "posv") else Problem.of(name, letter, n, columns)
    in_mode = partial(problem.ours, "tensor") if isinstance(problem, Solution) else problem.ours
    work = cubes(name) * n**2 * columns * (4 if letter in "cz" else 1) / 1e12

    def timed(runs: dict[str, Callable[[], Any]]) -> dict[str, Row]:
        spent = cold_medians(runs, problem.restore, 3 if n >= 8192 else 7)
        made: dict[str, Row] = {
            way: {"seconds": seconds, "tflops": work / seconds} for way, seconds in spent.items()
        }
        for way, row in made.items():
            problem.restore()
            runs[way]()
            row["units"] = None if way == "vendor_out_of_place" else problem.error()
        return made

    theirs = {way: in_state(run, None) for way, run in problem.vendors().items()}
    ours = {"fma": in_state(problem.ours, None), "mode": in_state(in_mode, "tensor")}
    timings = timed({**theirs, **ours})
    timings[VENDOR] = min((timings[way] for way in theirs), key=lambda row: row["seconds"])
    for options in VARIANTS.get(routine, ()):
        variant = ",".join(f"{key}={value}" for key, value in options.items())
        run = in_state(problem.ours, "tensor", options)
        timings[variant] = attempt({}, lambda: timed({variant: run})[variant])  # noqa: B023 - called at once
    best = timings["mode"]["seconds"]
    ratios = {"ratio": timings[VENDOR]["seconds"] / best, "ratio_to_fma": timings["fma"]["seconds"] / best}
    return {**ratios, **timings}


def in_state(run: Callable[[], Any], mode: str | None, overrides: Row | None = None) -> Callable[[], None]:
    """`run` in a math mode and with overrides."""

    def call() -> None:
        with ExitStack() as stack:
            stack.enter_context(set_math_mode(mode))
            for name, value in (overrides or {}).items():
                stack.enter_context(override(name, value))
            run()

    return call


#: What bounds the ranges of `database.policy` from below.
SIZES_OF_RANGE = ("order", "rhs", "elements")


def rows(options: Namespace) -> Rows:
    """Columns of TRMM and TRSM alone are not the order where they are given."""
    everywhere = {"s": 1, "c": 1}
    names = [f"tensor_{routine}_min_{size}" for routine in ("trmm", "trsm") for size in SIZES_OF_RANGE]
    ranges = dict.fromkeys(names if options.columns else (), everywhere)
    cublas.load().set_stream(cupy.cuda.get_current_stream().ptr)
    with deciding_by(**ranges, getrf_refined_min_order=1, potrf_refined_min_order=1):
        for n in options.sizes:
            for routine in options.routines:
                has_columns = OTHERS.get(routine, ("s", routine))[1] in ("trmm", "trsm")
                for columns in (options.columns if has_columns else ()) or (n,):
                    case = {"routine": routine, "n": n, "columns": columns}
                    yield attempt(case, measured, routine, n, columns)
                    cupy.get_default_memory_pool().free_all_blocks()


STUDY = Study(
    "tensor_level3",
    __doc__,
    rows,
    {
        "routines": Option(ROUTINES, (*ROUTINES, *OTHERS)),
        "sizes": (8192, 4096, 2048, 16384),
        "columns": Option((), kind=int, help="of trmm and trsm, which take their recursion in the mode then"),
    },
    key="cases",
    seconds=55,
)

if __name__ == "__main__":
    main(STUDY)
