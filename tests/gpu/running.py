"""One list of runs, exact to the bit, and how a run is made: CuPy arrays amid memory that must not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.testing.cases import SIZES, GemmCase, TriangularCase, gemm_cases, triangular_cases
from pyblasgpu.testing.reference import exact_gemm, exact_triangular, fenced, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Dtype, Side, Trans, Uplo

cupy = pytest.importorskip("cupy")

NAN = float("nan")


class Placed:
    """`values` in device memory, fenced as `oracle.fenced` has it.

    An `aligned` one has columns (rows, of order 'C') that begin at multiples of four elements.
    """

    def __init__(self, values: np.ndarray, order: str = "F", aligned: bool = True):
        gap = 4 - values.shape[-1 if order == "C" else -2] % 4 if aligned else 3
        self.host, self.unharmed = fenced(values, order, gap, 16 if aligned else 13)
        self._room: Any = self.host.base
        self._device = cupy.asarray(self._room)
        distance = self.host.ctypes.data - self._room.ctypes.data
        self.array = cupy.ndarray(
            self.host.shape, self.host.dtype, self._device.data + distance, self.host.strides
        )

    def fetch(self) -> np.ndarray:
        """What is there now; after it `unharmed` tells about the fences."""
        self._room[...] = self._device.get()
        return self.host


@dataclass(frozen=True)
class Run:
    """A case of a routine: order of the output, alignment, and the stop size of the recursion, if forced."""

    routine: str
    case: Any
    order: str = "F"
    aligned: bool = True
    stop: int | None = None

    def __str__(self):
        kind = f"{self.order}{'' if self.aligned else ', odd'}{f', stop {self.stop}' if self.stop else ''}"
        return f"{self.routine} {self.case} ({kind})"

    @property
    def letter(self) -> str:
        return self.case.dtype.letter

    def start(self) -> tuple[Placed, np.ndarray]:
        """Call the routine; the output, not yet fetched, and what it should be."""
        return self._gemm() if self.routine == "gemm" else self._triangular()

    def _gemm(self):
        case: GemmCase = self.case
        rng = np.random.default_rng(case.m + 3 * case.n + 7 * case.k)
        a, b, start = (integers(rng, shape, case.dtype) for shape in case.shapes)
        expected = exact_gemm(case, a, b, start)
        if case.alpha == 0:
            a[...] = b[...] = NAN
        if case.beta == 0:
            start[...] = NAN
        left, right = (Placed(x, "F", self.aligned).array for x in (a, b))
        out = Placed(start, self.order, self.aligned)
        result = pyblasgpu.gemm(
            left,
            right,
            alpha=case.alpha,
            beta=case.beta,
            trans_a=case.trans_a,
            trans_b=case.trans_b,
            out=out.array,
        )
        assert result is out.array
        return out, expected

    def _triangular(self):
        case: TriangularCase = self.case
        rng = np.random.default_rng(case.m + 3 * case.n)
        a, x = triangle(rng, case), integers(rng, (case.m, case.n), case.dtype)
        b, expected = x, exact_triangular(case, a, x)
        if self.routine == "trsm":
            b, expected = exact_triangular(case, a, x, alpha=1), (case.alpha * x).astype(x.dtype)
        if case.alpha == 0:
            a[...] = b[...] = NAN
        left = Placed(a, "F", self.aligned).array
        out = Placed(b, self.order, self.aligned)
        with override(self.routine, self.stop) if self.stop else nullcontext():
            routine = getattr(pyblasgpu, self.routine)
            assert routine(left, out.array, out=out.array, alpha=case.alpha, **flags(case)) is out.array
        return out, expected

    def check(self) -> None:
        """Run it; raise unless every bit is right and no other was touched."""
        out, expected = self.start()
        same(out.fetch(), expected, self)
        assert out.unharmed(), f"{self}: memory outside the result was written"


def flags(case: TriangularCase) -> dict[str, Any]:
    return {"side": case.side, "lower": case.uplo, "trans": case.trans, "unit_diag": case.diag}


def same(actual: np.ndarray, expected: np.ndarray, what) -> None:
    """Raise, in a line, unless the two are equal."""
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    wrong = np.argwhere(~((actual == expected) | (np.isnan(actual) & np.isnan(expected))))
    if len(wrong):
        at = tuple(map(int, wrong[0]))
        pytest.fail(
            f"{what}: {len(wrong)} of {expected.size} wrong, first {at}: {actual[at]}, not {expected[at]}",
            pytrace=False,
        )


def reals(dtype: Dtype, *shape: int, seed: int = 7) -> np.ndarray:
    """Standard normal numbers, column-major."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((*shape[::-1], dtype.reals_per_element)).astype(dtype.real)
    return parts.view(dtype.name)[..., 0].T


def exact_by(stem: str, dtype: Dtype, configs: Iterable) -> None:
    """Products by these Configs, one of a layout, on integers."""
    with ExitStack() as held:
        for config in configs:
            held.enter_context(override(stem, config))
        for (m, n, k), trans_a, trans_b in product(((130, 67, 45), (64, 128, 32)), Trans, Trans):
            for alpha, beta in ((2, -1), (1, 0)):
                case = GemmCase(dtype, m, n, k, trans_a, trans_b, alpha, beta)
                a, b, c = (integers(np.random.default_rng(m + k), shape, dtype) for shape in case.shapes)
                out = cupy.asarray(c if beta else np.full_like(c, NAN), order="F")
                left, right = (cupy.asarray(x, order="F") for x in (a, b))
                pyblasgpu.gemm(left, right, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b, out=out)
                same(out.get(), exact_gemm(case, a, b, c), f"{stem} {case}")


class CuPy:
    put = staticmethod(cupy.asarray)
    get = staticmethod(cupy.asnumpy)


class Numba:
    @staticmethod
    def put(array):
        return pytest.importorskip("numba.cuda").to_device(array)

    @staticmethod
    def get(array):
        return array.copy_to_host()


class Torch:
    @staticmethod
    def put(array):
        torch = pytest.importorskip("torch")
        moved = torch.as_tensor(np.ascontiguousarray(array.T), device="cuda")
        tensor = moved.permute(*reversed(range(array.ndim)))
        return tensor if array.flags.f_contiguous else tensor.contiguous()

    @staticmethod
    def get(tensor):
        return tensor.resolve_conj().cpu().numpy()


def occupy(stream) -> list:
    """Keep `stream` busy for a tenth of a second; what is returned must live as long."""
    x = cupy.zeros((8192, 8192), np.float32)
    cupy.cuda.Device().synchronize()
    return [x, *(pyblasgpu.gemm(x, x, stream=stream) for _ in range(4))]


def gemm_runs() -> Iterator[Run]:
    """All cases, aligned and not; a row-major result for every layout; results of the large class."""
    for case in gemm_cases(SIZES):
        yield Run("gemm", case)
        if case.m != 1000:
            yield Run("gemm", case, aligned=False)
        if (case.m, case.n, case.k) == (65, 33, 31):
            yield Run("gemm", case, order="C", aligned=False)
    for dtype in DTYPES.values():
        for order in "CF":
            yield Run("gemm", GemmCase(dtype, 1030, 1031, 9, beta=-1), order)


def triangular_runs() -> Iterator[Run]:
    """All cases; all flags in both orders and, for two dtypes, through three levels of recursion."""
    for routine in ("trmm", "trsm"):
        for case in triangular_cases(SIZES):
            yield Run(routine, case)
            if (case.m, case.n) == (65, 33):
                yield Run(routine, case, order="C", aligned=False)
        for letter, side, uplo, trans, diag in product("dz", Side, Uplo, Trans, Diag):
            case = TriangularCase(DTYPES[letter], 65, 33, side, uplo, trans, diag, alpha=2)
            yield Run(routine, case, stop=16)


RUNS = [*gemm_runs(), *triangular_runs()]


def check_same_bits(routine: str, t, b) -> None:
    """A triangular routine does the same again and again, on either side, and on several streams."""
    run = getattr(pyblasgpu, routine)
    for side, lower in product("LR", (False, True)):
        options = {"side": side, "lower": lower}
        results = [run(t, b, **options) for _ in range(20)]
        assert all((result == results[0]).all() for result in results)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    for stream in streams:
        with stream:
            results += [run(t, b, **options) for _ in range(5)]
    cupy.cuda.Device().synchronize()
    assert all((result == results[0]).all() for result in results)


def check_plan(plan_of, columns: int, expected: float) -> None:
    """A plan of a triangular routine, for twice the identity and ones, gives `expected` each time."""
    n = 700
    t, b = cupy.eye(n, order="F") * 2, cupy.ones((n, columns), order="F")
    out = cupy.empty_like(b)
    plan = plan_of(t, b, out, lower=True)
    for _ in range(20):
        out[...] = NAN
        plan(t, b, out)
        assert (out == expected).all()


def whole_runs(routine: str, letter: str) -> Iterator[Run]:
    """Every variant of TRMM or TRSM, in both orders, aligned and not, at odd extents; a few sizes more."""
    for number, variant in enumerate(product(Side, Uplo, Trans, Diag)):
        extents = 257 + 97 * (number % 5), 40 + 51 * (number % 4)
        m, n = extents if variant[0] is Side.LEFT else extents[::-1]
        case = TriangularCase(DTYPES[letter], m, n, *variant, alpha=2)
        yield Run(routine, case, "CF"[number % 2], number % 3 > 0)
    for extents in ((1, 1), (8, 3), (64, 64), (1, 70), (1500, 300)):
        yield Run(routine, TriangularCase(DTYPES[letter], *extents))
