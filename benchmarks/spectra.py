"""Eigenvalues and singular values compared with cuSOLVER's best routine, and with PyTorch's.

``python -m benchmarks.spectra --out DIR [--kinds batches,matrices] [--letters sd] [--routines eigh ...]
[--seconds 120]`` prints milliseconds of a call on the device, which is kept busy until the host has enqueued
it. Matrices are normal numbers. `cusolver_ms` is of the routine that `cusolver` names, the fastest of those
that there are; `ratio` is that time over ours. Of a stack `torch_ratio` is PyTorch's time over ours, of one
call, as PyTorch waits and loops. Ways of cuSOLVER that took longer than `LONGEST` for half the order are not
timed.

`residual` and `departure` are errors of results: of the product from A, in units of n u times its norm, and
of vectors from orthogonality, in units of n u. Of singular values of a stack there are cuSOLVER's errors too,
and as `graded_...` those of matrices whose singular values fall from 1 to ``u**LEAST`` by a constant factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import cupy
import numpy as np

from benchmarks.study import Namespace, Option, Row, Rows, Study, main, means
from pyblasgpu import linalg
from pyblasgpu.testing import cusolver
from pyblasgpu.testing.clocks import device_clock, host_clock, median_seconds
from pyblasgpu.testing.cusolver_spectra import CusolverSpectra
from pyblasgpu.types import DTYPES

try:
    import torch
except ImportError:  # its columns are left out
    torch = None

#: Matrices of a batch, and their orders.
BATCHES = ((512, 3), (4096, 16), (4096, 32), (1024, 64), (500, 100), (128, 128), (64, 256), (16, 512))
ORDERS = {"eigvalsh": (2048, 4096, 8192, 16384), "eigh": (2048, 4096, 8192, 16384),
          "svd": (1024, 2048, 4096, 8192)}  # fmt: skip
LETTERS_OF_MATRICES = "d"
ROUTINES = ("eigh", "eigvalsh", "svd")
LONGEST = 1.0  # seconds
REPEATED = 0.1  # seconds of a call up to which the median of some counts
BUSY_BYTES, BUSY = 1 << 30, 6  # written before a call, and how many times
LEAST = 0.75  # power of the roundoff that is the least singular value of graded matrices

Call = Callable[[], Any]


def stack(routine: str, letter: str, count: int, n: int) -> Any:
    """Matrices, shape (count, n, n), each of normal numbers, for eigenvalues symmetric or Hermitian."""
    dtype = DTYPES[letter]
    real = np.dtype(dtype.real).type
    shape = count, n, n * dtype.reals_per_element
    a = cupy.random.RandomState(n).standard_normal(shape, dtype=real).view(dtype.name)
    return a if routine == "svd" else (a + a.conj().swapaxes(1, 2)) / 2


@cache
def vendor() -> CusolverSpectra:
    return CusolverSpectra(cusolver.library())


def graded(letter: str, count: int, n: int) -> Any:
    """Matrices whose singular values fall from 1 to ``u**LEAST``."""
    a = stack("svd", letter, count, n)
    values = cupy.asarray(np.geomspace(1, (np.finfo(a.dtype).eps / 2) ** LEAST, n, dtype=a.real.dtype))
    left, right = (linalg.qr(each)[0] for each in (a, a.swapaxes(1, 2)))
    return cupy.ascontiguousarray((left * values) @ right)


class Way(NamedTuple):
    """A routine of cuSOLVER for matrices.

    Attributes
    ----------
    run, restore : callable
        The call, and what restores its input.
    result : tuple of arrays
        Singular values and vectors, as our function returns them; none of eigenvalues.
    """

    run: Call
    restore: Call
    result: tuple[Any, ...]


def ways(routine: str, a: Any) -> Mapping[str, Way]:
    """cuSOLVER's routines for matrices."""
    solver, (count, n, _) = vendor(), a.shape
    columns = [cupy.empty_like(a).transpose(2, 1, 0) for _ in range(1 if routine != "svd" else 3)]
    work = columns[0] if count > 1 else columns[0][..., 0]
    values = cupy.empty((n, count), a.real.dtype, order="F")

    def restore() -> None:
        columns[0][...] = a.transpose(1, 2, 0)

    names: tuple[str, ...]
    result: tuple[Any, ...] = ()
    if routine != "svd":
        names = ("syevj_batched", "syev_batched") if count > 1 else ("syevd",)
        arguments: tuple[Any, ...] = work, values, routine == "eigh"
    else:
        names = ("gesvda_batched", *["gesvdj_batched"] * (n <= 32)) if count > 1 else ("gesvd", "gesvdp")
        vectors = columns[1:] if count > 1 else [each[..., 0] for each in columns[1:]]
        arguments = work, values, *vectors
        result = columns[1].transpose(2, 0, 1), values.T, columns[2].transpose(2, 1, 0).conj()
    return {name: Way(partial(getattr(solver, name), *arguments), restore, result) for name in names}


def in_torch(routine: str, a: Any) -> Call | None:
    """PyTorch's call, where PyTorch is there."""
    if torch is None:
        return None
    tensor = torch.as_tensor(a, device="cuda")
    if routine == "svd":
        return lambda: torch.linalg.svd(tensor, full_matrices=False)
    return lambda: getattr(torch.linalg, routine)(tensor)


def ours(routine: str, a: Any) -> Call:
    a = a if len(a) > 1 else a[0]
    if routine == "svd":
        return lambda: linalg.svd(a, full_matrices=False)
    return lambda: getattr(linalg, routine)(a)


def milliseconds(call: Call, restore: Call = lambda: None) -> float:
    """Milliseconds of a call on the device, the median of some where that is short."""
    busy = cupy.empty(BUSY_BYTES, cupy.uint8)

    def prepare() -> None:
        restore()
        for _ in range(BUSY):
            busy.fill(0)

    seconds = median_seconds(call, device_clock(), prepare, repeats=1, untimed=0)
    if seconds < LONGEST:
        seconds = median_seconds(
            call, device_clock(), prepare, repeats=1 if seconds > REPEATED else 5, untimed=0
        )
    return 1e3 * seconds


def errors(routine: str, a: Any, result: Any, prefix: str = "") -> Row:
    """The largest residual of matrices, in units of n u times their norm, and departure of vectors from
    orthogonality, in units of n u.
    """
    u, values, vh = result if routine == "svd" else (result[1], result[0], result[1].swapaxes(-1, -2).conj())
    unit, a = a.shape[-1] * np.finfo(a.dtype).eps / 2, a.reshape(u.shape)
    norm = partial(cupy.linalg.norm, axis=(-2, -1))
    residual = norm(u * values[..., None, :] @ vh - a) / norm(a)
    products = u.swapaxes(-1, -2).conj() @ u, vh @ vh.swapaxes(-1, -2).conj()
    departures = [norm(each - cupy.eye(each.shape[-1], dtype=a.dtype)) for each in products]
    found = {"residual": residual, "departure": cupy.maximum(*departures)}
    return {prefix + key: float(each.max() / unit) for key, each in found.items()}


def theirs_and_ours(letter: str, a: Any, name: str) -> Row:
    """Errors of singular values of a stack by a routine of cuSOLVER, and those of graded matrices by both."""
    row: Row = {}
    for prefix, matrices in (("", a), ("graded_", graded(letter, *a.shape[:2]))):
        way = ways("svd", matrices)[name]
        way.restore()
        way.run()
        row |= errors("svd", matrices, way.result, prefix + "cusolver_")
        if prefix:
            row |= errors("svd", matrices, ours("svd", matrices)(), prefix)
    return row


def measured(routine: str, letter: str, count: int, n: int, skipped: set[tuple[str, ...]]) -> Row:
    """The row of a case; ways that are too slow for the next order are put into `skipped`."""
    a = stack(routine, letter, count, n)
    call = ours(routine, a)
    row: Row = {"routine": routine, "dtype": letter, "m": n, "n": n}
    if count > 1:
        row["count"] = count
    if routine != "eigvalsh":
        row |= errors(routine, a, call())
    row["ours_ms"] = milliseconds(call)
    times: dict[str, float] = {}
    for name, way in ways(routine, a).items():
        key = routine, letter, name
        if count > 1 or key not in skipped:
            try:
                times[name] = milliseconds(way.run, way.restore)
            except (AttributeError, RuntimeError) as problem:  # this version lacks it, or not for the size
                row[name] = str(problem)
            if times.get(name, 0.0) > 1e3 * LONGEST:
                skipped.add(key)
    if times:
        row["cusolver"] = min(times, key=times.__getitem__)
        row["cusolver_ms"] = times[row["cusolver"]]
        row["ratio"] = row["cusolver_ms"] / row["ours_ms"]
        if routine == "svd" and count > 1:
            row |= theirs_and_ours(letter, a, row["cusolver"])
    theirs = in_torch(routine, a) if count > 1 else None
    if theirs is not None:
        theirs()
        wait = cupy.cuda.runtime.deviceSynchronize
        row["pytorch_ms"] = 1e3 * host_clock(lambda: (theirs(), wait()))
        row["torch_ratio"] = row["pytorch_ms"] / row["ours_ms"]
    return row


def batches(options: Namespace) -> Rows:
    yield from _rows(options, options.letters, lambda routine: BATCHES)


def matrices(options: Namespace) -> Rows:
    yield from _rows(options, LETTERS_OF_MATRICES, lambda routine: [(1, n) for n in ORDERS[routine]])


def _rows(options: Namespace, letters: str, cases: Callable[[str], Any]) -> Iterator[Row]:
    skipped: set[tuple[str, ...]] = set()
    for routine in options.routines:
        for letter in letters:
            for count, n in cases(routine):
                if count == 1 or routine != "eigvalsh":
                    yield measured(routine, letter, count, n, skipped)
                    cupy.get_default_memory_pool().free_all_blocks()


STUDY = Study(
    "spectra",
    __doc__,
    {"batches": batches, "matrices": matrices},
    {"letters": "sd", "routines": Option(ROUTINES, ROUTINES)},
    document=lambda facts, lists: {**facts, "results": [row for rows in lists.values() for row in rows]},
    summary=lambda rows, options: means(rows),
    seconds=120,
)

if __name__ == "__main__":
    main(STUDY)
