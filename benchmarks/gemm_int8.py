"""DGEMM and ZGEMM on INT8 tensor cores beside cuBLAS's and our own by FMAs: times with packing, and errors.

    python -m benchmarks.gemm_int8 --out DIR [--seconds 55] [--kinds dgemm,zgemm,parts,int8_errors,...]

Medians by CUDA events over copies of the operands that exceed L2, in one process. The file is written after
each case. `parts` times each launch of a call by itself, `configs` other Configs in turn, `mode` routines of
products in `set_math_mode` and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from statistics import median
from typing import Any

import cupy
import numpy as np

import pyblasgpu
from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.tensor import gains
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.testing.cublas import load
from pyblasgpu.types import DTYPES

from .gemm_tensor import (
    PASSES,
    Operands,
    by_fma,
    forget,
    in_turn,
    launches_of,
    seconds_of,
    tensor,
    write_kinds,
)

ORDERS = (8192, 4096, 2048, 16384, 3072, 1024, 2560)
COMPLEX_ORDERS = (4096, 2048, 1536, 1024, 8192, 3072, 16384)
PART_ORDERS, COMPLEX_PART_ORDERS, CONFIG_ORDERS = (8192, 4096, 2048), (8192, 4096), (2048, 4096, 8192)
ERROR_ORDERS, MODE_ORDERS = (2048, 8192), (8192, 16384)  # the second of the mode in float64 alone
SHAPES = (
    (8192, 8192, 1024),
    (8192, 8192, 2048),
    (8192, 1024, 8192),
    (1024, 8192, 8192),
    (4096, 4096, 32768),
    (16384, 2048, 2048),
    (5000, 3001, 4003),
    (2048, 2048, 16384),
)
MODULI = {13: 2, 14: 8, 15: 8}  # that are compared, with the sample of digits that leaves room
#: Fields of Configs, and rows of tiles of a column, that are timed in turn.
CONFIGS: tuple[dict[str, int], ...] = (
    {"raster": 4},
    {"raster": 2},
    {"raster": 16},
    {"cluster": 1},
    {"stages": 3},
    {"moduli": 13, "sample": 2},
)
#: Routines that are timed in the mode and without, by the type of their arrays.
ROUTINES = {np.float64: ("gemm", "symm", "trsm", "getrf", "potrf", "trmm"), np.complex128: ("symm", "trsm")}
SAMPLED = 4, 1024  # rows and columns whose exact values are computed


def normal(rows: int, cols: int, seed: int) -> cupy.ndarray:
    made = cupy.random.RandomState(seed).standard_normal((cols, rows), dtype=np.float64)
    return made.T  # column-major


def complex_normal(rows: int, cols: int, seed: int) -> cupy.ndarray:
    return normal(2 * rows, cols, seed).T.view(np.complex128).T


def compared(m: int, n: int, k: int, letter: str = "d") -> dict[str, Any]:
    """Seconds of all three, TFLOP/s and ratios, and whether the choice takes residues."""
    make, flops = (normal, 2) if letter == "d" else (complex_normal, 8)
    operands, vendor, work = Operands(m, n, k, make), load(), flops * m * n * k / 1e12
    vendor.set_stream(cupy.cuda.get_current_stream().ptr)
    theirs = operands.seconds(lambda a, b, c: vendor.gemm(1.0, a, b, 0.0, c))
    fma = operands.seconds(by_fma)
    with configured(dtype=letter):
        ours = operands.seconds(tensor)
    chosen = gains(DTYPES[letter], m, n, k, GemmInt8().moduli, current())
    return {
        "m": m,
        "n": n,
        "k": k,
        "gains": chosen,
        "seconds": ours,
        "cublas": theirs,
        "fma": fma,
        "tflops": work / ours,
        "cublas_tflops": work / theirs,
        "fma_tflops": work / fma,
        "ratio": theirs / ours,
        "ratio_to_fma": fma / ours,
    }


def dgemm() -> Iterator[dict[str, Any]]:
    return (compared(n, n, n) for n in ORDERS)


def zgemm() -> Iterator[dict[str, Any]]:
    """Of complex128: times, and the error beside cuBLAS's."""
    vendor = load()
    for n in COMPLEX_ORDERS:
        case = compared(n, n, n, "z")
        a, b, c = (complex_normal(n, n, seed) for seed in (1, 2, 3))
        with configured(dtype="z"):
            tensor(a, b, c)
        exact, sizes = sampled(a, b)
        case["units"] = units(c, exact, sizes)
        vendor.gemm(1.0, a, b, 0.0, c)
        yield {**case, "cublas_units": units(c, exact, sizes)}


def complex_parts() -> Iterator[dict[str, Any]]:
    for n in COMPLEX_PART_ORDERS:
        yield {"n": n, "parts": launches(Operands(n, n, n, complex_normal))}


def shapes() -> Iterator[dict[str, Any]]:
    return (compared(*extents) for extents in SHAPES)


def parts() -> Iterator[dict[str, Any]]:
    """Seconds of each launch of a call, in their order, with events between them."""
    for n in PART_ORDERS:
        yield {"n": n, "parts": launches(Operands(n, n, n, normal))}


def launches(operands: Operands) -> list[tuple[str, float]]:
    calls = launches_of([operands.sets[0]] * PASSES)
    return [(same[0][0], median(seconds for _, seconds in same)) for same in zip(*calls, strict=True)]


def configs() -> Iterator[dict[str, Any]]:
    """Seconds of a call with other Configs, a pass of each in turn."""
    for n in CONFIG_ORDERS:
        yield from in_turn(Operands(n, n, n, normal), CONFIGS, configured)


@contextmanager
def configured(raster: int = 0, dtype: str = "d", **fields: int) -> Iterator[None]:
    """With this Config, also below the crossover, and this order of tiles."""
    forget()
    try:
        with override("gemm_int8", GemmInt8(dtype, **fields)), override("raster", raster):
            yield
    finally:
        forget()


def hard(n: int) -> Iterator[tuple[str, cupy.ndarray, cupy.ndarray]]:
    """Kinds of data, with their operands."""
    a, b, rng = normal(n, n, 1), normal(n, n, 2), cupy.random.RandomState(3)
    yield "normal", a, b
    yield "uniform", rng.random_sample((n, n)), rng.random_sample((n, n))
    for spread in (0.5, 1, 2, 4):
        yield f"lognormal_{spread}", (rng.random_sample((n, n)) - 0.5) * cupy.exp(spread * a), b
    grade = cupy.float64(2) ** rng.randint(-12, 13, n)
    yield "graded_12", a * grade, b / grade[:, None]
    yield "rows_of_any_size", a * (grade**8)[:, None], b
    one = a.copy()
    one[n // 3, n // 2] = 1e15
    yield "one_large", one, b
    yield "triangular", cupy.tril(a), cupy.triu(b)


def errors() -> Iterator[dict[str, Any]]:
    """Errors on kinds of data beside cuBLAS's, and seconds, which tell how much FMAs had to do."""
    vendor = load()
    vendor.set_stream(cupy.cuda.get_current_stream().ptr)
    for n in ERROR_ORDERS:
        for kind, a, b in hard(n):
            a, b = cupy.asfortranarray(a), cupy.asfortranarray(b)
            c = cupy.empty((n, n), np.float64, order="F")
            vendor.gemm(1.0, a, b, 0.0, c)
            exact, sizes = sampled(a, b)
            case: dict[str, Any] = {"n": n, "data": kind, "cublas_units": units(c, exact, sizes)}
            for moduli, sample in MODULI.items():
                with configured(moduli=moduli, sample=sample):
                    tensor(a, b, c)
                    case[f"units_{moduli}"] = units(c, exact, sizes)
            with configured():
                case["seconds"] = median([seconds_of(tensor, a, b, c) for _ in range(3)])
            case["units"] = case[f"units_{GemmInt8().moduli}"]
            case["over_bound"] = case["units"] / (n + 2)
            yield case


def mode() -> Iterator[dict[str, Any]]:
    """Seconds of routines in the mode and without, in turn."""
    for n in MODE_ORDERS:
        for dtype, routines in ROUTINES.items():
            for routine in routines if n == MODE_ORDERS[0] or dtype is np.float64 else ():
                start, c, run = problem(routine, n, dtype)
                times: dict[str, list[float]] = {"mode": [], "plain": []}
                for _ in range(4):
                    for name, spent in times.items():
                        c[...] = start
                        with pyblasgpu.set_math_mode("tensor") if name == "mode" else nullcontext():
                            spent.append(seconds_of(run))
                medians = {name: median(spent[1:]) for name, spent in times.items()}
                yield {
                    "routine": routine,
                    "dtype": np.dtype(dtype).name,
                    "n": n,
                    **medians,
                    "ratio": medians["plain"] / medians["mode"],
                }


def problem(routine: str, n: int, dtype: type) -> tuple[cupy.ndarray, cupy.ndarray, Callable[[], Any]]:
    """What `c` begins with, `c`, and a call that overwrites it."""
    make = normal if dtype is np.float64 else complex_normal
    a = make(n, n, 1) / n**0.5
    if routine in ("trmm", "trsm"):
        a += 2 * cupy.eye(n)
    elif routine == "potrf":
        a = a + a.T.conj() + 6 * cupy.eye(n)
    a = cupy.asfortranarray(a)
    b = cupy.asfortranarray(a[:, ::-1])
    c = cupy.empty_like(a)
    run = {
        "gemm": lambda: pyblasgpu.gemm(a, b, out=c),
        "symm": lambda: pyblasgpu.symm(a, b, out=c, lower=True),
        "trmm": lambda: pyblasgpu.trmm(a, c, out=c, lower=True),
        "trsm": lambda: pyblasgpu.trsm(a, c, out=c, lower=True),
        "potrf": lambda: lapack.potrf(c, lower=1, clean=0, overwrite_a=1),
        "getrf": lambda: lapack.getrf(c, overwrite_a=1),
    }[routine]
    return a if routine in ("potrf", "getrf") else b, c, run


def picked(n: int) -> tuple[Any, Any]:
    rows, cols = SAMPLED
    return np.linspace(0, n - 1, rows).astype(int), np.arange(0, n, max(n // cols, 1))


def sampled(a: cupy.ndarray, b: cupy.ndarray) -> tuple[Any, Any]:
    """Elements of A B and of |A| |B| in extended precision."""
    rows, cols = picked(a.shape[0])
    wide: Any = np.clongdouble if a.dtype.kind == "c" else np.longdouble
    left, right = a[rows].get().astype(wide), b[:, cols].get().astype(wide)
    return left @ right, abs(left) @ abs(right)


def units(c: cupy.ndarray, exact: Any, sizes: Any) -> float:
    """The largest error over u |A| |B|."""
    rows, cols = picked(c.shape[0])
    return float((abs(c[rows][:, cols].get() - exact) / sizes).max() * 2.0**53)


KINDS = {
    "dgemm": dgemm,
    "zgemm": zgemm,
    "zgemm_parts": complex_parts,
    "shapes": shapes,
    "parts": parts,
    "int8_errors": errors,
    "configs": configs,
    "mode": mode,
}


def main() -> None:
    write_kinds("gemm_int8", KINDS, __doc__)


if __name__ == "__main__":
    main()
