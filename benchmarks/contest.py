"""Factors of the public contests' batches compared with torch.linalg's, with the contests' checks.

``python -m benchmarks.contest --out DIR [--letters sd] [--routines qr eigh svd ...] [--seconds 90]``
prints milliseconds of a call, medians of CUDA events, on PyTorch tensors of normal numbers. `geqrf` gives
LAPACK's factors, `qr` reduced Q and R, `svd` reduced U and V, `lstsq` a solution with one right-hand side.
`large_` routines are of one matrix, and PyTorch calls cuSOLVER for them; `tensor_geqrf` multiplies on tensor
cores. Neither PyTorch nor cuSOLVER has `geqp3`, QR with pivots: its rival is SciPy's on all cores, in host
memory. Residuals and departures from orthogonality are in units of n u. Means are of batches and of tall
matrices apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

from scipy.linalg import get_lapack_funcs

from benchmarks.batched import Call
from benchmarks.study import Namespace, Option, Row, Rows, Study, main, means
from pyblasgpu import lapack, linalg, set_math_mode
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
TALL = ((100_000, 32), (1_000_000, 32), (1_000_000, 128), (1_000_000, 512))  # rows and columns
SPECTRA = ((512, 3), (4096, 16), (4096, 32), (1024, 64), (500, 100), (128, 128), (64, 256))
ORDERS = (512, 1024, 2048, 4096, 8192)  # of one matrix
QR_ORDERS = (1024, 2048, 4096, 8192, 16384)
PIVOTED = ((132, 256), (1, 512), (1, 1024), (1, 2048), (1, 4096))
LARGE = {"large_eigh": "eigh", "large_svd": "svd"}
LARGE_QR = {"large_geqrf": "geqrf", "large_orgqr": "orgqr", "large_ormqr": "ormqr"}
KINDS = LARGE | LARGE_QR | {"tensor_geqrf": "geqrf"}
ROUTINES = ("geqrf", "qr", "lstsq", "geqp3", *LARGE_QR, "tensor_geqrf", "cholesky", "eigh", "svd", *LARGE)
LONG = 50.0  # milliseconds of a call of which one is timed
FAULTY = 10.0  # residuals and departures beyond are wrong


def shapes(routine: str, letter: str) -> list[tuple[int, int, int]]:
    """Batch, rows and columns of a routine's problems, of those of spectra that there are kernels for."""
    squares = [(count, n, n) for count, n in SQUARES]
    tall = [(1, m, n) for m, n in TALL]
    if routine in LARGE or routine in LARGE_QR:
        return [(1, n, n) for n in (ORDERS if routine in LARGE else QR_ORDERS)]
    if routine == "geqp3":
        return [(count, n, n) for count, n in PIVOTED]
    if routine in ("eigh", "svd"):
        return [(count, n, n) for count, n in SPECTRA if _has_kernel(routine, letter, n)]
    if routine == "tensor_geqrf":
        return squares if letter == "s" else []  # as without tensor cores in double precision
    return tall if routine == "lstsq" else squares if routine == "cholesky" else squares + tall


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
    """Ours and PyTorch's, or of `geqp3` SciPy's."""
    if routine == "geqp3":
        (host,) = get_lapack_funcs(("geqp3",), (matrices := a.cpu().numpy(),))
        return lambda: lapack.geqp3(a)[:3], lambda: [host(each) for each in matrices]
    if routine in ("orgqr", "ormqr"):
        qr, tau = torch.geqrf(a)
        if routine == "orgqr":
            return lambda: lapack.orgqr(qr, tau)[0], lambda: torch.linalg.householder_product(qr, tau)
        return lambda: lapack.ormqr("L", "T", qr, tau, a)[0], lambda: torch.ormqr(qr, tau, a, True, True)
    if routine == "lstsq":
        b = _right_side(a)
        return lambda: linalg.lstsq(a, b)[0], lambda: torch.linalg.lstsq(a, b, driver="gels")[0]
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


def _right_side(a: Any) -> Any:
    """Numbers of the same size, which no solution gives."""
    return torch.sin(torch.arange(a.shape[-2], dtype=a.dtype, device=a.device))[:, None]


def errors(routine: str, a: Any, result: Any) -> Row:
    """The largest residual of a batch, and its departure from orthogonality, in units of n u."""
    n, k = max(a.shape[-2:]), min(a.shape[-2:])
    unit = n * torch.finfo(a.dtype).eps / 2
    if routine == "cholesky":
        return {"residual": _largest(a - result @ result.mH, a) / unit}
    if routine == "lstsq":
        left, norm = _right_side(a) - a @ result, torch.linalg.vector_norm
        return {"residual": float(norm(a.mH @ left) / (norm(a) * norm(left))) / unit}
    if routine == "ormqr":
        return {"residual": _largest(result - torch.geqrf(a)[0].triu(), a) / unit}
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
    if routine == "orgqr":
        result = result, torch.geqrf(a)[0].triu()
    elif routine == "geqrf":
        result = lapack.orgqr(*result)[0], result[0][..., :k, :].triu()
    elif routine == "geqp3":
        qr, pivots, tau = result
        a = a.gather(-1, (pivots.long() - 1)[..., None, :].expand(a.shape))
        result = lapack.orgqr(qr, tau)[0], qr.triu()
    q, r = result
    return {"residual": _largest(a - q @ r, a) / unit, "departure": _largest(q.mH @ q - eye, eye) / unit}


def _largest(difference: Any, size: Any) -> float:
    """Frobenius' norm of a difference relative to that of what it is of, the largest of a batch."""
    norm = torch.linalg.matrix_norm
    return float((norm(difference) / norm(size)).max())


def _measured(routine: str, letter: str, shape: tuple[int, int, int], repeats: int) -> Row:
    """A row of a shape."""
    kind, in_mode = KINDS.get(routine, routine), routine.startswith("tensor")
    a = problem(letter, kind, shape)
    a = a[0] if kind == "lstsq" else a  # PyTorch broadcasts no right-hand sides
    ours, theirs = calls(kind, a)
    count, m, n = shape
    row: Row = {"routine": routine, "dtype": letter, "count": count, "m": m, "n": n}
    with set_math_mode("tensor") if in_mode else nullcontext():
        row.update(errors(kind, a, ours()))
        row["ours_ms"] = _milliseconds(ours, repeats)
    rival = "scipy_ms" if kind == "geqp3" else "torch_ms"
    row[rival] = _milliseconds(theirs, repeats)
    if not max(row["residual"], row.get("departure", 0.0)) <= FAULTY:
        row["problem"] = "inaccurate"
    return {**row, "ratio": row[rival] / row["ours_ms"]}


def _milliseconds(call: Call, repeats: int) -> float:
    """The median of some calls after one, or the time of one alone where that is long."""
    once = 1e3 * median_seconds(call, device_clock(), repeats=1)
    return once if once > LONG else 1e3 * median_seconds(call, device_clock(), repeats=repeats, untimed=0)


def rows(options: Namespace) -> Rows:
    if torch is None:
        raise SystemExit("needs PyTorch")
    for routine in options.routines:
        for letter in options.letters:
            for shape in shapes(routine, letter):
                yield _measured(routine, letter, shape, options.repeats)


def _summary(rows: Iterable[Row], options: Namespace) -> Iterator[str]:
    """Means by dtype and routine, of tall matrices apart."""
    apart = ({**row, "kind": " tall" if row["m"] > row["n"] else ""} for row in rows)
    return means(apart, by=("dtype", "routine", "kind"))


STUDY = Study(
    "contest",
    __doc__,
    rows,
    {"letters": "sd", "routines": Option(ROUTINES, ROUTINES), "repeats": 3},
    summary=_summary,
    seconds=90,
)

if __name__ == "__main__":
    main(STUDY)
