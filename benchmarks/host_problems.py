"""Square problems of Level 3 in host memory, for the benchmarks of streaming and of several cards."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Any

import cupy
import cupyx
import numpy as np

import pyblasgpu
from benchmarks.study import Namespace, Row
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.testing import cublas
from pyblasgpu.testing.clocks import device_clock, host_clock, median_seconds
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

__all__ = [
    "KINDS",
    "ROUTINES",
    "HostProblem",
    "Pinned",
    "Xt",
    "copy_matrix",
    "nested_document",
    "page_locked",
    "pinned_for",
    "rates",
    "seconds",
    "streaming",
]

#: How memory is mapped and which pages are requested; "allocated" is the driver's own.
KINDS = {
    "shared": (mmap.MAP_SHARED, mmap.MADV_HUGEPAGE),
    "huge": (mmap.MAP_PRIVATE, mmap.MADV_HUGEPAGE),
    "small": (mmap.MAP_PRIVATE, mmap.MADV_NOHUGEPAGE),
    "allocated": (0, 0),
}
ROUTINES = ("gemm", "trsm", "syrk", "trmm", "symm")
NO, LOWER = Trans.NO, Uplo.LOWER


@contextmanager
def streaming() -> Iterator[None]:
    """Make calls on host matrices of tiles though they may fit.

    Kernels are chosen anew where it begins, which takes long: what is timed is inside as a whole. Inside
    another one it does nothing.
    """
    if any(change.get("streamed_min_bytes") == 0 for change in tuned_files.policy_changes):
        yield
        return
    with deciding_by(streamed_min_bytes=0, streamed_factor_min_bytes={"potrf": 0, "getrf": 0}):
        yield


def nested_document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    """The facts in a mapping of their own."""
    return {"about": facts, **lists}


def seconds(run: Callable[[], Any], repeats: int = 3, prepare: Callable[[], Any] = lambda: None) -> float:
    """The median of the wall-clock time of a run that waits, after one that is not counted.

    What takes over 4 s is run twice, over 15 s once.
    """
    times: list[float] = []
    most = repeats + 1
    while len(times) < most:
        prepare()
        times.append(host_clock(run))
        most = 1 if times[0] > 15 else 2 if times[0] > 4 else most
    return median(times[1:] or times)


def page_locked(nbytes: int, kind: str = "shared") -> np.ndarray:
    """Page-locked memory of one of `KINDS`. Many threads touch its pages first: one takes a second a GB."""
    if kind == "allocated":
        return cupyx.empty_pinned(nbytes, np.uint8)
    memory = mmap.mmap(-1, nbytes, mmap.MAP_ANONYMOUS | KINDS[kind][0])
    memory.madvise(KINDS[kind][1])
    pages = np.frombuffer(memory, np.uint8)
    step = -(-nbytes // 64)
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda first: pages[first : first + step].fill(0), range(0, nbytes, step)))
    portable = 1
    cupy.cuda.runtime.hostRegister(pages.ctypes.data, nbytes, portable)
    return pages


def copy_matrix(target: np.ndarray, source: np.ndarray) -> None:
    """Copy a column-major matrix by many threads."""
    step = -(-target.shape[1] // 64)
    parts = [slice(first, first + step) for first in range(0, target.shape[1], step)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda part: np.copyto(target[:, part], source[:, part]), parts))


class Pinned:
    """Page-locked memory that is taken once and cut into matrices again and again."""

    def __init__(self, count: int, nbytes: int, kind: str = "shared"):
        self._memories = [page_locked(nbytes, kind) for _ in range(count)]

    def matrices(self, letter: str, n: int) -> list[np.ndarray]:
        dtype = DTYPES[letter].name
        return [np.frombuffer(each, dtype, n * n).reshape(n, n, order="F") for each in self._memories]


def pinned_for(options: Namespace) -> Pinned:
    """Room for three matrices of the largest size and dtype of a script's options."""
    largest = max(options.sizes) ** 2 * max(DTYPES[letter].itemsize for letter in options.letters)
    return Pinned(3, largest)


class HostProblem:
    """A routine on column-major matrices of order n in host memory.

    Attributes
    ----------
    a, b, c : numpy.ndarray
        Inputs, and the output. `ours` takes arrays of a card too.
    """

    def __init__(self, routine: str, letter: str, arrays: Sequence[Any]):
        self.routine, self.letter = routine, letter
        self.a, self.b, self.c = arrays
        self.n = len(self.a)

    @property
    def arrays(self) -> list[Any]:
        return [self.a, self.b, self.c]

    def fill(self) -> None:
        """Random inputs; those of a triangle are well conditioned."""
        rng = cupy.random.RandomState(1)
        is_triangular = self.routine in ("trsm", "trmm")
        for array in (self.a, self.b):
            scale = 1 / self.n if is_triangular and array is self.a else 1
            step = max(1, (1 << 26) // self.n)
            for first in range(0, self.n, step):
                part = rng.uniform(-scale, scale, (min(step, self.n - first), self.n), self.a.dtype)
                part.get(out=array.T[first : first + step])
        if is_triangular:
            np.fill_diagonal(self.a, 2)

    def pageable(self) -> HostProblem:
        """Return the problem in memory whose pages are not locked."""
        arrays = [np.empty_like(x, order="F") for x in self.arrays]
        for array, source in zip(arrays, self.arrays, strict=True):
            copy_matrix(array, source)
        return HostProblem(self.routine, self.letter, arrays)

    def ours(self, **options: Any) -> Any:
        """Our call, which writes c."""
        options = {"out": self.c, "backend": "cuda", **options}
        inputs = (self.a,) if self.routine == "syrk" else (self.a, self.b)
        if self.routine != "gemm":
            options["lower"] = True
        return getattr(pyblasgpu, self.routine)(*inputs, **options)

    def streamed(self, **options: Any) -> Any:
        """Our call by tiles, though it may fit."""
        with streaming():
            return self.ours(**options)

    def vendor(self) -> Callable[[], None]:
        """Upload, cuBLAS, download; c holds the result."""
        library, out = cublas.load(), self.c
        device = [cupy.empty((self.n, self.n), self.a.dtype, order="F") for _ in range(3)]

        def run() -> None:
            a, b, c = device
            a.set(self.a)
            if self.routine != "syrk":
                b.set(self.b)
            self.compute(library, a, b, c)
            (b if self.routine in ("trsm", "trmm") else c).get(out=out)
            cupy.cuda.runtime.deviceSynchronize()

        return run

    def compute(self, library: Any, a: Any, b: Any, c: Any) -> None:
        """What cuBLAS does on the device."""
        if self.routine == "gemm":
            library.gemm(1, a, b, 0, c)
        elif self.routine == "symm":
            library.symm(1, a, b, 0, c, Side.LEFT, LOWER)
        elif self.routine == "syrk":
            library.syrk(1, a, 0, c, LOWER, NO)
        else:
            getattr(library, self.routine)(1, a, b, Side.LEFT, LOWER, NO, Diag.NON_UNIT)

    def vendor_compute_seconds(self) -> float:
        """What cuBLAS takes on the device."""
        library = cublas.load()
        matrices = [cupy.asarray(x, order="F") for x in self.arrays]
        return median_seconds(lambda: self.compute(library, *matrices), device_clock(), repeats=3)

    def sample(self) -> np.ndarray:
        """Some entries of c, in its lower triangle."""
        rng = np.random.default_rng(0)
        rows, cols = rng.integers(0, self.n, (2, 1000))
        return self.c[np.maximum(rows, cols), np.minimum(rows, cols)].copy()


class Xt:
    """cublasXt on devices, called directly.

    Parameters
    ----------
    devices : list of int
    block : int
        Rows and columns of its tiles.
    """

    def __init__(self, devices: list[int], block: int = 4096):
        self._library = cublas.library()
        self._handle = ctypes.c_void_p()
        self._call("Create", ctypes.byref(self._handle))
        self._call("DeviceSelect", self._handle, len(devices), (ctypes.c_int * len(devices))(*devices))
        self._call("SetBlockDim", self._handle, block)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"cublasXt{name}")(*arguments)
        if status:
            raise RuntimeError(f"cublasXt{name} returned status {status}")

    def run(self, problem: HostProblem) -> None:
        """Compute what `HostProblem.ours` does, but TRSM works on c in place."""
        kind = ctypes.c_float if problem.letter == "s" else ctypes.c_double
        one, zero = ctypes.byref(kind(1)), ctypes.byref(kind(0))
        size = ctypes.c_size_t(problem.n)
        a, b, c = ((ctypes.c_void_p(x.ctypes.data), size) for x in (problem.a, problem.b, problem.c))
        flags = 0, 0, 0, 0  # left, lower, not transposed, not unit; or as many of them as a routine has
        matrices: dict[str, tuple[Any, ...]] = {
            "gemm": (*flags[:2], size, size, size, one, *a, *b, zero, *c),
            "syrk": (*flags[:2], size, size, one, *a, zero, *c),
            "symm": (*flags[:2], size, size, one, *a, *b, zero, *c),
            "trmm": (*flags, size, size, one, *a, *b, *c),
            "trsm": (*flags, size, size, one, *a, *c),
        }
        self._call(problem.letter.upper() + problem.routine, self._handle, *matrices[problem.routine])
        cupy.cuda.runtime.deviceSynchronize()


def rates(pinned: list[np.ndarray]) -> dict[str, float]:
    """Bytes a second of copies from and to page-locked memory, alone and both at once."""
    host = [each.ravel(order="K").view(np.uint8)[: 1 << 29] for each in pinned[:2]]
    device = [cupy.empty(each.size, np.uint8) for each in host]
    nbytes = host[0].size
    up, down = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)

    def copies(goes_up: bool, comes_down: bool) -> None:
        if goes_up:
            device[0].data.copy_from_host_async(host[0].ctypes.data, nbytes, up)
        if comes_down:
            device[1].data.copy_to_host_async(host[1].ctypes.data, nbytes, down)
        up.synchronize()
        down.synchronize()

    return {
        "up": nbytes / seconds(lambda: copies(True, False)),
        "down": nbytes / seconds(lambda: copies(False, True)),
        "both": nbytes / seconds(lambda: copies(True, True)),
    }
