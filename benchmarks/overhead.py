"""What one call costs the host: products, triangles and factors of order 64 with CuPy and PyTorch, ours and
theirs.

New results, results in another array and in place, through keyword functions, ``blas``, ``linalg`` and
``lapack``; many matrices of order 4; and a plan called with the arrays that it was made with and with others.
Calls are queued without waiting, so that the time is the host's and not the kernel's; those that read what a
factorization found wait for it. ``python -m benchmarks.overhead [--out FILE] [--only inv trsm]`` prints
microseconds a call, the median and the least of several rounds, and the device's own pace where calls follow
each other for long: no host can pass it. NumPy arrays of order 8 and vectors of 1000 stay on the processor;
their calls are next to SciPy's and NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np

import pyblasgpu
from benchmarks.study import Namespace, Option, Row, Rows, Study, cupy, main
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.testing.clocks import host_clock

N, CALLS, ROUNDS, LONG = 64, 200, 9, 2_000
SMALL, LENGTH = 8, 1000  # of arrays in host memory
BATCH, ORDER = 20_000, 4  # of small matrices on a device

Call = Callable[[], object]


def microseconds(call: Call) -> tuple[float, float]:
    """Host microseconds of one `call`, median and least; the queue of the device holds them all."""
    taken = []
    for _ in range(1 + ROUNDS):
        cupy.cuda.Device().synchronize()
        taken.append(host_clock(lambda: _repeat(call, CALLS)) / CALLS * 1e6)
    return median(taken[1:]), min(taken[1:])


def pace(call: Call) -> float:
    """Microseconds of one of many calls, waiting for the last: the slower one's of host and device."""

    def run() -> None:
        _repeat(call, LONG)
        cupy.cuda.Device().synchronize()

    cupy.cuda.Device().synchronize()
    return host_clock(run) / LONG * 1e6


def _repeat(call: Call, times: int) -> None:
    for _ in range(times):
        call()


def calls(dtype: str) -> Iterator[tuple[str, Call]]:
    """Calls of one product through each library that is there."""
    matrices = [cupy.random.standard_normal((N, N)).astype(dtype) for _ in range(4)]
    triangle = cupy.tril(matrices[0]) + N * cupy.eye(N, dtype=dtype)
    yield from products("cupy", matrices, cupy.matmul)
    theirs = import_module("cupyx.scipy.linalg")
    yield from triangles("cupy", triangle, matrices[1], partial(theirs.solve_triangular, lower=True))
    small = cupy.random.standard_normal((BATCH, ORDER, ORDER)).astype(dtype)
    arrays = triangle, matrices[1], small @ small.swapaxes(1, 2) + cupy.eye(ORDER, dtype=dtype)
    yield from factors("cupy", *arrays, (cupy.linalg, theirs))
    letter = "sd"[dtype == "float64"]
    yield from vectors("cupy", letter, triangle, matrices[1][:, 0].copy(), (cupy,))
    try:
        import torch
    except ImportError:
        return
    tensors = [torch.as_tensor(x, device="cuda") for x in (*matrices, triangle, arrays[2])]
    yield from products("torch", tensors[:4], torch.mm)
    solve = partial(torch.linalg.solve_triangular, upper=False)
    yield from triangles("torch", tensors[4], tensors[1], solve)
    yield from factors("torch", tensors[4], tensors[1], tensors[5], (torch.linalg,))
    yield from vectors("torch", letter, tensors[4], tensors[1][:, 0].clone(), (torch,))


def products(library: str, matrices: list, theirs: Callable) -> Iterator[tuple[str, Call]]:
    """Ways to multiply two of `matrices` into a third, by us and by their library."""
    a, b, c, other = matrices
    plan = pyblasgpu.plan_gemm(a, b, c)
    yield f"pyblasgpu.gemm, {library}", lambda: pyblasgpu.gemm(a, b, out=c)
    yield f"pyblasgpu plan, {library}", lambda: plan(a, b, c)
    yield f"pyblasgpu plan, other arrays, {library}", lambda: plan(a, other, c)
    yield f"{library}.{theirs.__name__}", lambda: theirs(a, b, out=c)
    yield f"pyblasgpu.gemm, new, {library}", lambda: pyblasgpu.gemm(a, b)
    yield f"linalg.matmul, new, {library}", lambda: linalg.matmul(a, b)
    yield f"blas.dgemm, new, {library}", lambda: blas.gemm(1.0, a, b)
    yield f"linalg.einsum, new, {library}", lambda: linalg.einsum("ij,jk->ik", a, b)
    yield f"pyblasgpu.symm, new, {library}", lambda: pyblasgpu.symm(a, b)
    yield f"pyblasgpu.syrk, new, {library}", lambda: pyblasgpu.syrk(a)
    yield f"{library}.{theirs.__name__}, new", lambda: theirs(a, b)


def triangles(library: str, a: Any, b: Any, theirs: Callable) -> Iterator[tuple[str, Call]]:
    """Ways to solve by a triangle and to multiply by one, by us and by their library."""
    out = b.copy() if library == "cupy" else b.clone()
    for routine in ("trsm", "trmm"):
        function = getattr(pyblasgpu, routine)
        yield (
            f"pyblasgpu.{routine}, in place, {library}",
            partial(function, a, out, lower=True, alpha=0.5, out=out),
        )
        yield f"pyblasgpu.{routine}, out=, {library}", partial(function, a, b, lower=True, out=out)
        yield f"pyblasgpu.{routine}, new, {library}", partial(function, a, b, lower=True)
    yield f"blas.trsm, new, {library}", lambda: blas.trsm(1.0, a, b, lower=1)
    yield (
        f"linalg.solve_triangular, new, {library}",
        lambda: linalg.solve_triangular(a, b, lower=True, check_finite=None),
    )
    yield f"solve_triangular of {library}", lambda: theirs(a, b)


def factors(library: str, a: Any, b: Any, small: Any, modules: tuple[Any, ...]) -> Iterator[tuple[str, Call]]:
    """Factors, solutions, inverses and determinants by us and by `modules` of the library: of a matrix, and
    of many small ones.
    """
    definite, lu, right = a @ a.T, linalg.lu_factor(a), small[..., 0] + 0  # no memory of the matrices
    pair, theirs = linalg.cho_factor(definite), {name: _first(name, modules) for name in _FACTORS}
    arguments: dict[str, tuple[Any, ...]] = {"cholesky": (definite,), "solve": (a, b)}
    yield f"lapack.potrf, new, {library}", partial(lapack.potrf, definite, lower=1)
    over = definite.copy() if library == "cupy" else definite.clone()
    yield f"lapack.potrf, over, {library}", partial(lapack.potrf, over, lower=1, overwrite_a=1)
    for name in _FACTORS:
        given = arguments.get(name, (a,))
        yield f"linalg.{name}, {library}", partial(getattr(linalg, name), *given)
        if theirs[name] is not None:
            yield f"{name} of {library}", partial(theirs[name], *given)
    yield f"linalg.solve, pos, {library}", partial(linalg.solve, definite, b, assume_a="pos")
    triangular = partial(linalg.solve, a, b, assume_a="lower triangular")
    yield f"linalg.solve, triangular, {library}", triangular
    yield f"linalg.cho_factor, {library}", partial(linalg.cho_factor, definite)
    yield f"linalg.cho_solve, {library}", partial(linalg.cho_solve, pair, b)
    yield f"linalg.lu_solve, {library}", partial(linalg.lu_solve, lu, b)
    yield f"linalg.inv, pos, {library}", partial(linalg.inv, definite, assume_a="pos")
    yield f"linalg.lstsq, {library}", partial(linalg.lstsq, a, b)
    for name in ("cholesky", "inv", "solve", "det", "slogdet"):
        given = (small, right[..., None]) if name == "solve" else (small,)
        for whose, function in ((f"linalg.{name}", getattr(linalg, name)), (name, theirs[name])):
            yield f"{whose}, {BATCH} of order {ORDER}, {library}", partial(function, *given)


_FACTORS = ("cholesky", "solve", "inv", "det", "slogdet", "lu_factor", "qr")


def _first(name: str, modules: tuple[Any, ...]) -> Any:
    """The function of the first module that has it; None where none does."""
    return next((getattr(module, name) for module in modules if hasattr(module, name)), None)


def vectors(
    library: str, letter: str, a: Any, x: Any, modules: tuple[Any, ...]
) -> Iterator[tuple[str, Call]]:
    """Routines of a matrix and vectors by us, and products by their library."""
    out, gemv, trsv, ger = a @ x, *(getattr(blas, f"{letter}{stem}") for stem in ("gemv", "trsv", "ger"))
    yield f"pyblasgpu.gemv, out=, {library}", partial(pyblasgpu.gemv, a, x, out=out)
    yield f"pyblasgpu.dot, {library}", partial(pyblasgpu.dot, x, out)
    yield f"linalg.dot, {library}", partial(linalg.dot, x, out)
    yield f"dot of {library}", partial(_first("dot", modules), x, out)
    yield f"blas.gemv, new, {library}", partial(gemv, 1.0, a, x)
    yield f"blas.trsv, new, {library}", partial(trsv, a, x, lower=1)
    yield f"blas.ger, new, {library}", partial(ger, 1.0, x, out)
    yield f"matmul of a vector, {library}", partial(_first("matmul", modules), a, x)
    yield f"outer of {library}", partial(_first("outer", modules), x, out)


def host_calls(dtype: str) -> Iterator[tuple[str, Call]]:
    """Calls on small NumPy arrays, by us and by SciPy or NumPy."""
    draw = np.random.default_rng(0).standard_normal
    a, b = (np.asfortranarray(draw((SMALL, SMALL)).astype(dtype)) for _ in range(2))
    x, y = (draw(LENGTH).astype(dtype) for _ in range(2))
    positive, triangle = a @ a.T + np.eye(SMALL, dtype=dtype), np.tril(a) + SMALL * np.eye(SMALL, dtype=dtype)
    letter, theirs = "sd"[dtype == "float64"], import_module("scipy.linalg")
    by_blas = {"gemm": (1.0, a, b), "trsm": (1.0, triangle, b), "gemv": (1.0, a, x[:SMALL]), "dot": (x, y)}
    for stem, arguments in (by_blas | {"axpy": (x, y)}).items():
        for module in (blas, theirs.blas):
            yield f"{module.__name__}.{stem}", partial(getattr(module, letter + stem), *arguments)
    for module in (lapack, theirs.lapack):
        yield f"{module.__name__}.potrf", partial(getattr(module, f"{letter}potrf"), positive)
    out = np.empty_like(a)
    yield "pyblasgpu.gemm, out=, numpy", partial(pyblasgpu.gemm, a, b, out=out)
    products = {"matmul": (a, b), "dot": (x, y), "einsum": ("ij,jk->ik", a, b)}
    for name, arguments in products.items():
        for module in (linalg, np):
            yield f"{module.__name__}.{name}, numpy", partial(getattr(module, name), *arguments)
    for module in (linalg, np.linalg):
        yield f"{module.__name__}.slogdet, numpy", partial(module.slogdet, a)
    solved = {"cholesky": (positive,), "solve": (a, b), "inv": (a,), "solve_triangular": (triangle, b)}
    solved |= {"det": (a,), "qr": (a,), "lstsq": (a, b)}
    for name, arguments in solved.items():
        for module in (linalg, theirs):
            yield f"{module.__name__}.{name}, numpy", partial(getattr(module, name), *arguments)


def rows(options: Namespace) -> Rows:
    for dtype in options.dtypes:
        for name, call in (*calls(dtype), *host_calls(dtype)):
            if options.only and not any(text in name for text in options.only):
                continue
            host, least = microseconds(call)
            facts = {"host": host, "least": least, "pace": pace(call)}
            yield {"call": f"{name} {dtype}", **{key: round(value, 2) for key, value in facts.items()}}


def document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    times = {row["call"]: {key: row[key] for key in ("host", "least", "pace")} for row in lists["results"]}
    return {**facts, "microseconds": times}


DTYPES = ("float32", "float64")
STUDY = Study(
    "overhead",
    __doc__,
    rows,
    {
        "dtypes": Option(DTYPES, DTYPES),
        "only": Option((), kind=str, help="texts in the names of calls, one of which they have"),
    },
    document=document,
)

if __name__ == "__main__":
    main(STUDY)
