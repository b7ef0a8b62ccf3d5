"""Factors of the public contests' batches compared with torch.linalg's, with the contests' checks.

``python -m benchmarks.contest --out DIR [--letters sd] [--routines qr eigh svd ...] [--seconds 120]``
prints milliseconds of a call, medians of CUDA events, on PyTorch tensors of normal numbers. `geqrf` gives
LAPACK's factors, `qr` reduced Q and R, `svd` reduced U and V; `large_eigh` and `large_svd` are of one matrix.
Residuals and departures from orthogonality are in units of n u.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.batched import Call
from benchmarks.study import Namespace, Option, Row, Rows, Study, main, means
from pyblasgpu import lapack, linalg
from pyblasgpu.gpu.device import current
from pyblasgpu.routines.lapack import eigh_batched, svd_batched
from pyblasgpu.testing.clocks import device_clock, median_seconds
from pyblasgpu.types import DTYPES

try:
    import torch
except ImportError:  # `rows` says so
    torch = None

#: Matrices of a batch, and their orders.
SQUARES = (
    (4096, 32),
    (1024, 64),
    (640, 128),
    (640, 256),
    (640, 512),
    (60, 1024),
    (8, 2048),
    (2, 4096),
    (1, 8192),
)
TALL = ((100_000, 32), (1_000_000, 32), (1_000_000, 128))  # rows and columns
SPECTRA = ((512, 3), (4096, 16), (4096, 32), (1024, 64), (500, 100), (128, 128), (64, 256))
ORDERS = (512, 1024, 2048, 4096, 8192)  # of one matrix
LARGE = {"large_eigh": "eigh", "large_svd": "svd"}
ROUTINES = ("geqrf", "qr", "cholesky", "eigh", "svd", *LARGE)
FAULTY = 10.0  # residuals and departures beyond are wrong


def shapes(routine: str, letter: str) -> list[tuple[int, int, int]]:
    """Batch, rows and columns of a routine's problems, of those of spectra that there are kernels for."""
    if routine in LARGE:
        return [(1, n, n) for n in ORDERS]
    if routine in ("eigh", "svd"):
        return [(count, n, n) for count, n in SPECTRA if _has_kernel(routine, letter, n)]
    tall = [] if routine == "cholesky" else [(1, m, n) for m, n in TALL]
    return [(count, n, n) for count, n in SQUARES] + tall


def _has_kernel(routine: str, letter: str, n: int) -> bool:
    device, dtype = current(0), DTYPES[letter]
    if routine == "eigh":
        return n <= eigh_batched.max_order(dtype, device)
    return svd_batched.serves(n, n, dtype, device, vectors=True)


def problem(letter: str, routine: str, shape: tuple[int, int, int]) -> Any:
    """A batch of normal numbers, made symmetric for eigenvalues, and positive definite for Cholesky; each
    matrix column-major.
    """
    count, m, n = shape
    torch.manual_seed(n)
    a = torch.randn((count, n, m), dtype=getattr(torch, DTYPES[letter].name), device="cuda").mT
    if routine == "eigh":
        a = (a + a.mH) / 2
    if routine == "cholesky":
        a = a @ a.mH / n + torch.eye(n, dtype=a.dtype, device="cuda")
    return a


def calls(routine: str, a: Any) -> tuple[Call, Call]:
    """Ours and PyTorch's."""
    if routine == "geqrf":
        return lambda: lapack.geqrf(a)[:2], lambda: torch.geqrf(a)
    if routine == "qr":
        return lambda: linalg.qr(a, mode="economic"), lambda: torch.linalg.qr(a)
    if routine == "eigh":
        return lambda: linalg.eigh(a), lambda: torch.linalg.eigh(a)
    if routine == "svd":
        reduced = partial(torch.linalg.svd, full_matrices=False)
        return lambda: linalg.svd(a, full_matrices=False), lambda: reduced(a)
    return lambda: lapack.potrf(a, lower=1, clean=1)[0], lambda: torch.linalg.cholesky(a)


def errors(routine: str, a: Any, result: Any) -> Row:
    """The largest residual of a batch, and its departure from orthogonality, in units of n u."""
    n, k = max(a.shape[-2:]), min(a.shape[-2:])
    unit = n * torch.finfo(a.dtype).eps / 2
    if routine == "cholesky":
        return {"residual": _largest(a - result @ result.mH, a) / unit}
    eye = torch.eye(k, dtype=a.dtype, device=a.device)
    if routine == "eigh":
        w, v = result
        departure = _largest(v.mH @ v - eye, eye)
        return {"residual": _largest(a @ v - v * w[..., None, :], a) / unit, "departure": departure / unit}
    if routine == "svd":
        u, sigma, vh = result
        departure = max(_largest(u.mH @ u - eye, eye), _largest(vh @ vh.mH - eye, eye))
        return {
            "residual": _largest(a - u * sigma[..., None, :] @ vh, a) / unit,
            "departure": departure / unit,
        }
    q, r = result if routine == "qr" else (lapack.orgqr(*result)[0], result[0][..., :k, :].triu())
    return {"residual": _largest(a - q @ r, a) / unit, "departure": _largest(q.mH @ q - eye, eye) / unit}


def _largest(difference: Any, size: Any) -> float:
    """Frobenius' norm of a difference relative to that of what it is of, the largest of a batch."""
    norm = torch.linalg.matrix_norm
    return float((norm(difference) / norm(size)).max())


def rows(options: Namespace) -> Rows:
    if torch is None:
        raise SystemExit("needs PyTorch")
    for routine in options.routines:
        for letter in options.letters:
            for shape in shapes(routine, letter):
                kind = LARGE.get(routine, routine)
                a = problem(letter, kind, shape)
                ours, theirs = calls(kind, a)
                row: Row = {
                    "routine": routine,
                    "dtype": letter,
                    "count": shape[0],
                    "m": shape[1],
                    "n": shape[2],
                }
                row.update(errors(kind, a, ours()))
                for name, call in (("ours_ms", ours), ("torch_ms", theirs)):
                    row[name] = 1e3 * median_seconds(call, device_clock(), repeats=options.repeats)
                if not max(row["residual"], row.get("departure", 0.0)) <= FAULTY:
                    row["problem"] = "inaccurate"
                yield {**row, "ratio": row["torch_ms"] / row["ours_ms"]}


STUDY = Study(
    "contest",
    __doc__,
    rows,
    {"letters": "sd", "routines": Option(ROUTINES, ROUTINES), "repeats": 3},
    summary=lambda rows, options: means(rows),
    seconds=120,
)

if __name__ == "__main__":
    main(STUDY)
