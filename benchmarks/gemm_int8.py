"""DGEMM and ZGEMM on INT8 tensor cores against cuBLAS's and our own by FMAs: times with packing, and errors.

    python -m benchmarks.gemm_int8 --out DIR [--seconds 55] [--kinds dgemm,zgemm,parts,int8_errors,...]

Medians by CUDA events over copies of the operands that exceed L2, in one process. `parts` times each launch
of a call by itself, `configs` other Configs in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import cupy
import numpy as np

from benchmarks import gemm_tensor
from benchmarks.arrays import normal
from benchmarks.gemm_tensor import PASSES, Operands, forget, launches_of, seconds_of, study, tensor, vendor
from benchmarks.study import Row, Rows, main
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.tensor import TensorProblem, gains
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.types import DTYPES

ORDERS = (8192, 4096, 2048, 16384, 3072, 1024, 2560, 32768)
COMPLEX_ORDERS = (4096, 2048, 1536, 1024, 8192, 3072, 16384)
PART_ORDERS, COMPLEX_PART_ORDERS, CONFIG_ORDERS = (8192, 4096, 2048), (8192, 4096), (2048, 4096, 8192)
ERROR_ORDERS = (2048, 8192)
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
CONFIGS: tuple[Row, ...] = (
    {"raster": 4},
    {"raster": 2},
    {"raster": 16},
    {"cluster": 1},
    {"stages": 3},
    {"moduli": 13, "sample": 2},
)
SAMPLED = 4, 1024  # rows and columns whose exact values are computed


def compared(letter: str, m: int, n: int, k: int) -> Row:
    """Times as of SGEMM, with our product below the crossover too, and whether the choice takes residues."""
    chosen = gains(TensorProblem(DTYPES[letter], "nn", (m, n, k, 1), current()), GemmInt8().moduli)
    return {**gemm_tensor.compared(letter, m, n, k, configured(dtype=letter)), "gains": chosen}


def dgemm() -> Rows:
    return (compared("d", n, n, n) for n in ORDERS)


def zgemm() -> Rows:
    """Rows of complex128: times, and the error compared with cuBLAS's."""
    theirs = vendor()
    for n in COMPLEX_ORDERS:
        case = compared("z", n, n, n)
        a, b, c = (normal("z", n, n, seed) for seed in (1, 2, 3))
        with configured(dtype="z"):
            tensor(a, b, c)
        exact, sizes = sampled(a, b)
        case["units"] = units(c, exact, sizes)
        theirs(a, b, c)
        yield {**case, "cublas_units": units(c, exact, sizes)}


def zgemm_parts() -> Rows:
    return ({"n": n, "parts": launches("z", n)} for n in COMPLEX_PART_ORDERS)


def shapes() -> Rows:
    return (compared("d", *extents) for extents in SHAPES)


def parts() -> Rows:
    """Seconds of each launch of a call, in their order, with events between them."""
    return ({"n": n, "parts": launches("d", n)} for n in PART_ORDERS)


def launches(letter: str, n: int) -> list[tuple[str, float]]:
    calls = launches_of([Operands(letter, n, n, n).sets[0]] * PASSES)
    return [(same[0][0], median(seconds for _, seconds in same)) for same in zip(*calls, strict=True)]


def configs() -> Rows:
    """Seconds of a call with other Configs, a pass of each in turn."""
    for n in CONFIG_ORDERS:
        operands, times = Operands("d", n, n, n), [list[float]() for _ in CONFIGS]
        for _ in range(PASSES):
            for fields, mine in zip(CONFIGS, times, strict=True):
                with configured(**fields):
                    tensor(*operands.sets[0])
                    mine.append(operands.seconds(tensor, passes=1, untimed=0))
        for fields, mine in zip(CONFIGS, times, strict=True):
            yield {"n": n, **fields, "seconds": median(mine), "tflops": 2 * n**3 / 1e12 / median(mine)}


@contextmanager
def configured(raster: int = 0, dtype: str = "d", **fields: Any) -> Iterator[None]:
    """With this Config, also below the crossover, and this order of tiles."""
    forget()
    try:
        with override("gemm_int8", GemmInt8(dtype, **fields)), override("raster", raster):
            yield
    finally:
        forget()


def hard(n: int) -> Iterator[tuple[str, cupy.ndarray, cupy.ndarray]]:
    """Kinds of data, with their operands."""
    a, b, rng = normal("d", n, n, 1), normal("d", n, n, 2), cupy.random.RandomState(3)
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


def int8_errors() -> Rows:
    """Errors on kinds of data against cuBLAS's, and seconds, which show how much FMAs had to do."""
    theirs = vendor()
    for n in ERROR_ORDERS:
        for kind, a, b in hard(n):
            a, b = cupy.asfortranarray(a), cupy.asfortranarray(b)
            c = cupy.empty((n, n), np.float64, order="F")
            theirs(a, b, c)
            exact, sizes = sampled(a, b)
            case: Row = {"n": n, "data": kind, "cublas_units": units(c, exact, sizes)}
            for moduli, sample in MODULI.items():
                with configured(moduli=moduli, sample=sample):
                    tensor(a, b, c)
                    case[f"units_{moduli}"] = units(c, exact, sizes)
            with configured():
                case["seconds"] = median([seconds_of(tensor, a, b, c) for _ in range(3)])
            case["units"] = case[f"units_{GemmInt8().moduli}"]
            yield {**case, "over_bound": case["units"] / (n + 2)}


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


STUDY = study("gemm_int8", __doc__, dgemm, zgemm, zgemm_parts, shapes, parts, int8_errors, configs)

if __name__ == "__main__":
    main(STUDY)
