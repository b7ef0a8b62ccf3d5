"""KBLAS's Figure 9 and its application by one blocked code, with our TRMM and TRSM and with cuBLAS's.

``python tuning/papers/kblas_figure9.py [--dtype s,d] [--sizes 1024,2048] [--seconds 2m] [--out FOLDER]``

Charara, Ltaief and Keyes (*Redesigning triangular dense matrix computations on GPUs*, Euro-Par 2016) put
their recursive TRMM and TRSM under MAGMA's algorithms, and changed nothing else. So does this script: the
blocked algorithms are LAPACK's, diagonal blocks and rank-k updates are ours in both columns, and the
triangular routines alone differ. It prints rates and their ratio over n, with n right-hand sides. They are of
POTRI, POTRS and POSV, and of the inverse of a covariance, as the paper's tomographic reconstructor needs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

import pyblasgpu
from pyblasgpu.options import parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.testing import cublas
from pyblasgpu.tuning.worker_bench import Job
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo
from tuning.papers.device_time import device_seconds
from tuning.papers.experiment import Experiment, Rows
from tuning.papers.study import Figure, Study, add_options, names_in, run_study

__all__ = ["Parts", "ROUTINES", "STUDY", "inverse", "main", "posv", "potri", "potrs", "rows"]

BLK = 256  # rows of the diagonal blocks


class Parts(NamedTuple):
    """What the algorithms are made of; all work in place, on lower triangles.

    Attributes
    ----------
    trmm, trsm : callable
        ``trmm(alpha, t, b, side, trans)``: b := alpha op(t) b, or from the right; TRSM likewise.
    factor, invert, square : callable
        Cholesky factor, inverse, and L^H L of a diagonal block.
    update : callable
        ``update(alpha, x, y, c, triangle)``: c += alpha x y, of a triangle of C if it is one.
    """

    trmm: Callable[..., None]
    trsm: Callable[..., None]
    factor: Callable[[Any], object]
    invert: Callable[[Any], object]
    square: Callable[[Any], object]
    update: Callable[..., None]


def adjoint(x: Any) -> Any:
    """The conjugate transpose, of a real matrix a view."""
    return x.conj().T if x.dtype.kind == "c" else x.T


def potrf(parts: Parts, a: Any) -> None:
    """The factor in place, right-looking."""
    n = a.shape[0]
    for first in range(0, n, BLK):
        last = min(first + BLK, n)
        block, below = a[first:last, first:last], a[last:, first:last]
        parts.factor(block)
        if last < n:
            parts.trsm(1, block, below, Side.RIGHT, Trans.CONJ)
            parts.update(-1, below, adjoint(below), a[last:, last:], True)


def potrs(parts: Parts, a: Any, b: Any) -> None:
    """The solution in place of B."""
    parts.trsm(1, a, b, Side.LEFT, Trans.NO)
    parts.trsm(1, a, b, Side.LEFT, Trans.CONJ)


def posv(parts: Parts, a: Any, b: Any) -> None:
    """Factor and solve."""
    potrf(parts, a)
    potrs(parts, a, b)


def trtri(parts: Parts, a: Any) -> None:
    """The inverse of a triangle in place, from the last block on."""
    n = a.shape[0]
    for first in reversed(range(0, n, BLK)):
        last = min(first + BLK, n)
        block, below = a[first:last, first:last], a[last:, first:last]
        if last < n:
            parts.trmm(1, a[last:, last:], below, Side.LEFT, Trans.NO)
            parts.trsm(-1, block, below, Side.RIGHT, Trans.NO)
        parts.invert(block)


def lauum(parts: Parts, a: Any) -> None:
    """L^H L in place."""
    n = a.shape[0]
    for first in range(0, n, BLK):
        last = min(first + BLK, n)
        block, left = a[first:last, first:last], a[first:last, :first]
        below = a[last:, first:last]
        if first:
            parts.trmm(1, block, left, Side.LEFT, Trans.CONJ)
        parts.square(block)
        if last < n:
            if first:
                parts.update(1, adjoint(below), a[last:, :first], left, False)
            parts.update(1, adjoint(below), below, block, True)


def potri(parts: Parts, a: Any) -> None:
    """The inverse from the factor, in place."""
    trtri(parts, a)
    lauum(parts, a)


def inverse(parts: Parts, a: Any) -> None:
    """The inverse of a definite matrix in place: of a covariance, the paper's application."""
    potrf(parts, a)
    potri(parts, a)


#: Each with its operations, in thirds of n^3.
ROUTINES: dict[str, tuple[Callable[..., None], int]] = {
    "potri": (potri, 2),
    "potrs": (potrs, 6),
    "posv": (posv, 7),
    "inverse": (inverse, 3),
}
ALONE = ("potri", "inverse")  # have no right-hand sides


def parts_on_device(triangular: Callable[[str], Callable[..., None]]) -> Parts:
    """The parts on CuPy arrays; ``triangular(name)`` gives TRMM and TRSM."""
    from pyblasgpu import lapack
    from pyblasgpu.api.keyword.level3 import gemm
    from pyblasgpu.api.keyword.rank_k import herk

    def update(alpha: float, x: Any, y: Any, c: Any, triangle: bool) -> None:
        if triangle:
            herk(x, alpha=alpha, beta=1, lower=True, out=c)
        else:
            gemm(x, y, alpha=alpha, beta=1, out=c)

    return Parts(
        trmm=triangular("trmm"),
        trsm=triangular("trsm"),
        factor=lambda a: lapack.potrf(a, lower=1, clean=0, overwrite_a=1),
        invert=lambda a: lapack.trtri(a, lower=1, overwrite_c=1),
        square=lambda a: lapack.lauum(a, lower=1, overwrite_c=1),
        update=update,
    )


def ours(name: str) -> Callable[..., None]:
    """Our TRMM or TRSM."""
    routine = getattr(pyblasgpu, name)

    def call(alpha: float, t: Any, b: Any, side: Side, trans: Trans) -> None:
        routine(t, b, alpha=alpha, side=side, lower=True, trans=trans, out=b)

    return call


def theirs(name: str) -> Callable[..., None]:
    """cuBLAS's."""
    routine = getattr(cublas.load(), name)

    def call(alpha: float, t: Any, b: Any, side: Side, trans: Trans) -> None:
        routine(alpha, t, b, side, Uplo.LOWER, trans, Diag.NON_UNIT)

    return call


def problem(routine: str, letter: str, n: int) -> list[Any]:
    """A definite matrix, or a factor; and right-hand sides."""
    import cupy

    a = cupy.random.default_rng(n).random((n, n), cupy.float64) - 0.5
    a.ravel()[:: n + 1] = n
    matrices = [cupy.asfortranarray((a / n).astype(DTYPES[letter].name))]
    return matrices if routine in ALONE else [*matrices, cupy.ones((n, n), matrices[0].dtype, order="F")]


def rate(routine: str, letter: str, n: int, triangular: Callable[[str], Callable[..., None]]) -> float:
    """TFLOP/s of a routine with these triangular parts."""
    algorithm, thirds = ROUTINES[routine]
    call = partial(algorithm, parts_on_device(triangular))
    work = DTYPES[letter].flops_per_fma // 2 * thirds * n**3 / 3
    return round(work / device_seconds(call, problem(routine, letter, n)) / 1e12, 3)


def rows(run: Experiment, letter: str, sizes: Sequence[int], routines: Sequence[str]) -> Rows:
    """Rates and ratios of the routines, as far as time goes."""
    found: Rows = []
    for n in sizes:
        for routine in routines:
            row: dict[str, Any] = {"dtype": letter, "routine": routine, "n": n}
            for name, triangular in (("ours", ours), ("cublas", theirs)):
                job = Job(routine, letter, "any", vendor=name == "cublas")
                row[name] = run.remembered(job, (n, n), partial(rate, routine, letter, n, triangular))
            if None not in row.values():
                found.append({**row, "ratio": round(row["ours"] / row["cublas"], 3)})
    return found


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    letters = run.in_turn(options.dtype)
    return {
        "results": [row for letter in letters for row in rows(run, letter, options.sizes, options.routine)]
    }


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    columns = ("routine", "n", "TFLOP/s with our TRMM, TRSM", "with cuBLAS's", "ratio")
    table = Table(*columns, title=f"Figure 9 on {made['device']}")
    for row in made["results"]:
        rates = [f"{row[key]:.2f}" for key in ("ours", "cublas", "ratio")]
        table.add_row(row["dtype"] + row["routine"], str(row["n"]), *rates)
    return [table]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    figures = []
    for routine in ROUTINES:
        curves: dict[str, list[tuple[float, float]]] = {}
        for row in made["results"]:
            if row["routine"] == routine:
                curves.setdefault(row["dtype"] + routine, []).append((row["n"], row["ratio"]))
        title = f"{routine.upper()} on {made['device']}"
        figures.append(
            Figure(f"kblas_figure9_{routine}", title, dict(curves), ("n", "ratio to cuBLAS's parts"))
        )
    return figures


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument("--routine", default=list(ROUTINES), type=names_in(ROUTINES), help="(all)")
    parser.add_argument("--sizes", default="1024,2048,4096,8192", type=parse_sizes, help="(%(default)s)")
    add_options(parser, "5m")
    return parser.parse_args(arguments)


STUDY = Study("kblas_figure9", _parse, lambda options, device: (), _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/kblas_figure9.py"], main))
