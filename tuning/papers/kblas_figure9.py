"""KBLAS's Figure 9: POTRI, POTRS and POSV by one blocked code, with our TRMM and TRSM and with cuBLAS's.

``python tuning/papers/kblas_figure9.py [--dtype s,d] [--sizes 1024,2048] [--out FOLDER]``

Charara, Ltaief and Keyes (*Redesigning triangular dense matrix computations on GPUs*, Euro-Par 2016) put
their recursive TRMM and TRSM under MAGMA's algorithms, and changed nothing else. So does this script: the
blocked algorithms are LAPACK's, diagonal blocks and rank-k updates are ours in both columns, and the
triangular routines alone differ. It prints milliseconds and the ratio over n, with n right-hand sides.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from pyblasgpu.testing import cublas
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

__all__ = ["Parts", "ROUTINES", "main", "posv", "potri", "potrs"]

BLK = 256  # rows of the diagonal blocks
ROUNDS = 3
BUSY = 1 << 28  # bytes that are written before each call, so that the host is ahead


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
    factor: Callable[[Any], None]
    invert: Callable[[Any], None]
    square: Callable[[Any], None]
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


ROUTINES = {"potri": potri, "potrs": potrs, "posv": posv}


def on_device(triangular: Callable[[str], Callable[..., None]]) -> Parts:
    """The parts on CuPy arrays; ``triangular(name)`` gives TRMM and TRSM."""
    from pyblasgpu import lapack
    from pyblasgpu.api.level3 import gemm
    from pyblasgpu.api.rank_k import herk

    def update(alpha: float, x: Any, y: Any, c: Any, triangle: bool) -> None:
        if triangle:
            herk(x, alpha=alpha, beta=1, lower=True, out=c)
        else:
            gemm(x, y, alpha=alpha, beta=1, out=c)

    return Parts(
        trmm=triangular("trmm"),
        trsm=triangular("trsm"),
        factor=lambda a: lapack.potrf(a, lower=1, clean=0, overwrite_a=1) and None,
        invert=lambda a: lapack.trtri(a, lower=1, overwrite_c=1) and None,
        square=lambda a: lapack.lauum(a, lower=1, overwrite_c=1) and None,
        update=update,
    )


def ours(name: str) -> Callable[..., None]:
    """Our TRMM or TRSM."""
    from pyblasgpu.api import level3

    routine = getattr(level3, name)

    def call(alpha: float, t: Any, b: Any, side: Side, trans: Trans) -> None:
        routine(t, b, alpha=alpha, side=side, lower=True, trans=trans, out=b)

    return call


def theirs(name: str) -> Callable[..., None]:
    """cuBLAS's."""
    routine = getattr(cublas.load(), name)

    def call(alpha: float, t: Any, b: Any, side: Side, trans: Trans) -> None:
        routine(alpha, t, b, side, Uplo.LOWER, trans, Diag.NON_UNIT)

    return call


def milliseconds(call: Callable[..., None], originals: list[Any]) -> float:
    """The median of some calls on fresh copies, by events."""
    import cupy

    busy, times = cupy.empty(BUSY, cupy.uint8), []
    for number in range(ROUNDS + 1):
        arrays = [original.copy(order="F") for original in originals]
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(16):
            busy.fill(number)
        start.record()
        call(*arrays)
        stop.record()
        stop.synchronize()
        if number:
            times.append(cupy.cuda.get_elapsed_time(start, stop))
    return median(times)


def problem(routine: str, letter: str, n: int) -> list[Any]:
    """A definite matrix, or a factor; and right-hand sides."""
    import cupy

    a = cupy.random.default_rng(n).random((n, n), cupy.float64) - 0.5
    a.ravel()[:: n + 1] = n
    matrices = [cupy.asfortranarray((a / n).astype(DTYPES[letter].name))]
    return matrices if routine == "potri" else [*matrices, cupy.ones((n, n), matrices[0].dtype, order="F")]


def rows(letters: list[str], sizes: list[int]) -> list[dict[str, Any]]:
    """Times and ratios of all routines."""
    kinds, found = {"ours": on_device(ours), "cublas": on_device(theirs)}, []
    for routine, algorithm in ROUTINES.items():
        for letter in letters:
            for n in sizes:
                matrices = problem(routine, letter, n)
                times = {
                    name: milliseconds(partial(algorithm, parts), matrices) for name, parts in kinds.items()
                }
                row = {"routine": letter + routine, "n": n, **times, "ratio": times["cublas"] / times["ours"]}
                found.append(row)
                print(json.dumps(row), flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dtype", default="s,d")
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = rows(options.dtype.split(","), [int(n) for n in options.sizes.split(",")])
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "kblas_figure9.json").write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
