"""Factorizations and cuSOLVER's, called directly, and batches: potrf potrs posv potri trtri lauum sytrf, and
of QR geqrf orgqr ormqr gels.

``python -m benchmarks.lapack [--out DIR] [--routines potrf ...] [--sizes 512 ...] [--batches]`` prints
microseconds of a call and the ratio cuSOLVER / ours, medians of CUDA events, in turn. Each call works on a
fresh copy of its matrices; before it the device is kept busy, so that the host's time to enqueue it does not
count. Of potrf and posv, whose matrix is whole, the ratio is to the faster one of cuSOLVER's two triangles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from benchmarks.study import Namespace, Option, Row, Rows, Study, attempt, cupy, main, means
from pyblasgpu import lapack
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.compile_ahead import compile_missing
from pyblasgpu.operands import Operand
from pyblasgpu.routines.lapack import gels, geqrf, lauum, orgqr, ormqr, potrf, potri, potrs, sytrf, trtri
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.testing import cusolver
from pyblasgpu.testing.clocks import device_clock, medians_in_turn
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo, dtype_of

#: A launch list, and the operands that it runs on.
Launches = tuple[LaunchList, tuple[Operand, ...]]
QR = ("geqrf", "orgqr", "ormqr", "gels")
ROUTINES = ("potrf", "potrs", "posv", "potri", "trtri", "lauum", "sytrf", *QR)
ROUNDS = 5
BUSY = 1 << 28  # bytes that are written before each call, eight times
NO_RIVAL = float("nan")
OURS, CUSOLVER, OTHER_TRIANGLE = "ours", "cusolver", "cusolver_other_triangle"
RIGHT_HAND_SIDES = (1, 32, 512, 0)  # 0: as many as rows
BATCHES = ((8, 20_000), (16, 10_000), (32, 5_000), (64, 2_000), (128, 1_000), (256, 300))


class Case(NamedTuple):
    """A routine on matrices of one size."""

    routine: str
    letter: str
    uplo: Uplo
    n: int
    columns: int = 0
    batch: int = 1

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of what it works on: pivots or factors of reflectors, A, right-hand sides."""
        first = [(self.n, 1)] if self.routine in ("sytrf", *QR) else []
        return [*first, (self.n, self.n), *([(self.n, self.columns)] if self.columns else [])]

    def arrays(self) -> list[Any]:
        """What it works on: A, definite or its factor; and right-hand sides. For QR see `shapes`."""
        rng = cupy.random.default_rng(self.n)
        made = rng.random((self.batch, self.n, self.n), cupy.float64) - 0.5
        if self.letter in "cz":
            made = made + 1j * (rng.random(made.shape, cupy.float64) - 0.5)
        made = made.astype(DTYPES[self.letter].name)
        if self.routine in QR:
            return self._reflectors(made.transpose(0, 2, 1))
        if self.routine == "sytrf":
            return [cupy.zeros((self.batch, self.n, 1), made.dtype), made.transpose(0, 2, 1)]
        diagonal = made.reshape(self.batch, -1)[:, :: self.n + 1]
        # the factors of these are far from singular, and so are the triangles themselves
        diagonal[...] = self.n if self.routine in ("potrf", "posv") else 4 + self.n**0.5 / 4
        if self.routine in ("potri", "potrs", "trtri", "lauum"):
            made *= 1 / self.n**0.5
        matrices = [made.transpose(0, 2, 1)]
        if self.columns:
            b = cupy.ones((self.batch, self.columns, self.n), made.dtype)
            matrices.append(b.transpose(0, 2, 1))
        return matrices

    def _reflectors(self, a: Any) -> list[Any]:
        """What QR works on, from a matrix or from its factors."""
        tau = cupy.zeros((self.batch, self.n, 1), a.dtype)
        if self.routine in ("orgqr", "ormqr"):
            a, factors, _, _ = lapack.geqrf(a)
            tau = factors[..., None]
        b = cupy.ones((self.batch, self.columns, self.n), a.dtype).transpose(0, 2, 1)
        return [tau, a, b] if self.columns else [tau, a]

    def launches(self, info: Operand, a: Operand, *b: Operand) -> list[Launches]:
        """Our launch lists, with the operands of each."""
        lists: list[tuple[LaunchList | None, tuple[Operand, ...]]] = []
        if self.routine in ("geqrf", "gels"):
            lists.append((geqrf.launch_list(a, b[0]), (a, b[0])))
        if self.routine == "gels":
            lists.append((gels.solution_launch_list(info, a, *b, trans=Trans.NO), (info, a, *b)))
        if self.routine == "orgqr":
            lists.append((orgqr.launch_list(a, *b), (a, *b)))
        if self.routine == "ormqr":
            lists.append((ormqr.launch_list(a, *b, side=Side.LEFT, trans=Trans.NO), (a, *b)))
        if self.routine == "sytrf":
            lists.append((sytrf.launch_list(a, info, b[0], uplo=self.uplo), (a, info, b[0])))
        if self.routine == "lauum":
            lists.append((lauum.launch_list(a, uplo=self.uplo), (a,)))
        if self.routine == "trtri":
            lists.append((trtri.launch_list(info, a, uplo=self.uplo, diag=Diag.NON_UNIT), (info, a)))
        if self.routine == "potri":
            lists.append((potri.launch_list(info, a, uplo=self.uplo), (info, a)))
        if self.routine in ("potrf", "posv"):
            lists.append((potrf.launch_list(info, a, uplo=self.uplo), (info, a)))
        if self.routine in ("potrs", "posv"):
            lists.append((potrs.launch_list(a, *b, uplo=self.uplo), (a, *b)))
        return [(launches, operands) for launches, operands in lists if launches is not None]

    def rival(self, solver: cusolver.Cusolver) -> Callable[..., None] | None:
        """cuSOLVER's call on the arrays of one set."""
        if self.routine == "lauum":
            return None
        if self.batch > 1:
            if self.routine == "potrf":
                return lambda a: solver.potrf_batched(a, self.uplo)
            if self.routine == "potrs" and self.columns == 1:
                return lambda a, b: solver.potrs_batched(a, b, self.uplo)
            return None
        if self.routine == "posv":

            def solve(a: Any, b: Any) -> None:
                solver.potrf(a[0], self.uplo)
                solver.potrs(a[0], b[0], self.uplo)

            return solve
        call = getattr(solver, self.routine)
        if self.routine == "sytrf":
            return lambda _, a: call(a[0], self.uplo)
        if self.routine in QR:
            return lambda tau, *arrays: call(tau[0, :, 0], *(array[0] for array in arrays))
        return lambda *arrays: call(*(array[0] for array in arrays), self.uplo)

    def rivals(self, solver: cusolver.Cusolver) -> dict[str, Callable[..., None]]:
        """cuSOLVER's calls by name: where A is whole, also that which reads the other triangle of it."""
        own = self.rival(solver)
        if own is None:
            return {}
        if self.batch > 1 or self.routine not in ("potrf", "posv"):
            return {CUSOLVER: own}
        turned = self._replace(uplo=Uplo.UPPER if self.uplo is Uplo.LOWER else Uplo.LOWER)
        return {CUSOLVER: own, OTHER_TRIANGLE: turned.rival(solver) or own}


def operand(array: Any) -> Operand:
    """A stack of matrices as the routines take it."""
    dtype, (batch, rows, cols) = dtype_of(array.dtype), array.shape
    step, row, col = (stride // array.itemsize for stride in array.strides)
    return Operand(array.data.ptr, rows, cols, row, col, dtype, False, batch, step, array.device.id)


def launch_lists(case: Case, arrays: list[Any], info: Any) -> list[Launches]:
    """Our launch lists of a case on these arrays."""
    info_operand = Operand(info.data.ptr, 1, 1, 1, 1, dtype_of(arrays[0].dtype), False, case.batch, 1)
    return case.launches(info_operand, *map(operand, arrays))


def run_lists(case: Case, info: Any, *arrays: Any) -> None:
    """Ours, on the null stream."""
    for launches, operands in launch_lists(case, list(arrays), info):
        launches.run([each.pointer for each in operands], 1, stream=0)


def microseconds(
    calls: dict[str, Callable[..., None]], originals: list[Any], rounds: int
) -> tuple[dict[str, float], dict[str, list[Any]]]:
    """Medians of `rounds` calls of each in turn, on fresh copies; and what each computes."""
    busy = cupy.empty(BUSY, cupy.uint8)
    arrays = [cupy.empty_like(x.transpose(0, 2, 1)).transpose(0, 2, 1) for x in originals]

    def prepare() -> None:
        for array, original in zip(arrays, originals, strict=True):
            array[...] = original
        for _ in range(8):
            busy.fill(0)

    runs = {name: partial(call, *arrays) for name, call in calls.items()}
    medians = medians_in_turn(runs, device_clock(), prepare, rounds)
    results = {}
    for name, run in runs.items():
        prepare()
        run()
        results[name] = [array.copy(order="K") for array in arrays]
    return {name: 1e6 * seconds for name, seconds in medians.items()}, results


def measured(case: Case, solver: cusolver.Cusolver) -> Row:
    """Times of a case, and how far the results are apart."""
    originals = case.arrays()
    info = cupy.zeros(case.batch, originals[0].dtype)
    rounds = ROUNDS if case.n < 8192 else 3
    rivals = case.rivals(solver)
    times, results = microseconds({OURS: partial(run_lists, case, info), **rivals}, originals, rounds)
    theirs = {f"{name}_us": round(times[name], 2) for name in rivals} or {f"{CUSOLVER}_us": NO_RIVAL}
    difference = apart(case, results[OURS], results[CUSOLVER]) if rivals else NO_RIVAL
    return {
        "ours_us": round(times[OURS], 2),
        **theirs,
        "ratio": round(min(theirs.values()) / times[OURS], 3),
        "difference": difference,
        "error_over_bound": over_bound(case, results[OURS][0], originals[0]),
        "info": int(info.view(cupy.int32)[:: info.itemsize // 4].max()),
        "launches": sum(len(launches.entries) for launches, _ in launch_lists(case, originals, info)),
    }


def apart(case: Case, results: list[Any], others: list[Any]) -> float:
    """The largest difference, of what is meant, relative to the largest entry."""
    x, y = results[-1], others[-1]
    if case.columns == 0 and case.routine not in QR:
        meant = cupy.tril if case.uplo is Uplo.LOWER else cupy.triu
        x, y = meant(x[0]), meant(y[0])
    return float(abs(x - y).max() / abs(y).max())


def over_bound(case: Case, result: Any, original: Any) -> float:
    """The backward error of a factor in single precision, in units of its bound; NaN of other cases."""
    if case.routine != "potrf" or case.letter not in "sc" or case.n > 2048:
        return NO_RIVAL
    wide = cupy.float64 if case.letter == "s" else cupy.complex128
    lower = case.uplo is Uplo.LOWER
    factor, a = ((x if lower else x.T.conj()).astype(wide) for x in (result[0], original[0]))
    factor = cupy.tril(factor)
    error = cupy.tril(abs(factor @ factor.T.conj() - a))
    scale = abs(factor) @ abs(factor).T
    bound = (case.n + 4) * DTYPES[case.letter].unit_roundoff * (8**0.5 if case.letter == "c" else 1)
    return round(float((error / scale).max() / bound), 4)


def cases(options: Namespace) -> Iterator[Case]:
    """Both triangles of factors, and of solutions several numbers of right-hand sides."""
    for routine in options.routines:
        for letter in options.letters:
            for n in options.sizes:
                takes_columns = routine in ("potrs", "posv", "ormqr", "gels")
                for columns in RIGHT_HAND_SIDES if takes_columns else (None,):
                    yield Case(routine, letter, Uplo.LOWER, n, 0 if columns is None else columns or n)
                if routine == "potrf":
                    yield Case(routine, letter, Uplo.UPPER, n)
            for n, batch in (
                BATCHES if options.batches and routine in ("potrf", "potrs", "trtri", "sytrf") else ()
            ):
                yield Case(routine, letter, Uplo.LOWER, n, int(routine == "potrs"), batch)


def compile_all(listed: list[Case]) -> None:
    """Compile what the cases need, on all cores."""
    sources = []
    for case in listed:
        name = DTYPES[case.letter].name
        room = [cupy.empty((case.batch, cols, rows), name).transpose(0, 2, 1) for rows, cols in case.shapes]
        lists = launch_lists(case, room, cupy.zeros(case.batch, name))
        sources += [entry.source for launches, _ in lists for entry in launches.entries]
    compile_missing(sources, current().cc)


def rows(options: Namespace) -> Rows:
    begun, listed = time.monotonic(), list(cases(options))
    compile_all(listed)
    print(f"compiled after {time.monotonic() - begun:.0f} s", flush=True)
    solver = cusolver.load()
    for case in listed:
        yield attempt({**case._asdict(), "uplo": case.uplo.name}, measured, case, solver)
        cupy.get_default_memory_pool().free_all_blocks()


def summary(rows: list[Row], options: Namespace) -> Iterator[str]:
    """Geometric means of the ratios, by dtype, routine and triangle, or batches."""
    kinds = [{**row, "kind": " batched" if row["batch"] > 1 else f" {row['uplo']}"} for row in rows]
    return means(kinds, by=("letter", "routine", "kind"))


STUDY = Study(
    "lapack",
    __doc__,
    rows,
    {
        "routines": Option(ROUTINES, ROUTINES),
        "letters": "sd",
        "sizes": (512, 1024, 2048, 4096, 8192, 16384),
        "batches": False,
    },
    summary=summary,
    seconds=300,
)

if __name__ == "__main__":
    main(STUDY)
