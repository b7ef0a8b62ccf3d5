"""Jobs of the worker process: verify on the device, then time, with a result for each problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from ..dispatch import choose
from ..dispatch.overrides import override
from ..errors import BackendUnavailable, PyblasgpuError
from ..gpu import device as devices
from ..gpu import memory
from ..kernels.registry import MATRIX_VECTOR
from ..operands import Operand
from ..testing.cublas import Cublas
from ..testing.cublas import load as load_cublas
from ..testing.policies import deciding_by
from ..types import DTYPES, Diag, Side, Trans, Uplo
from .arenas import SpoiledMemory
from .host_timer import host_seconds
from .measure import Timer, Workload
from .verify import WrongResult, verify
from .worker import DeviceLost

__all__ = ["Bench", "Failed", "Job", "Timing", "vendor"]

STREAM = 0  # the legacy default stream


class Job(NamedTuple):
    """One thing to run on the device.

    Attributes
    ----------
    routine, dtype, layout : str
    overrides : tuple of (str, Config or int)
        Overrides of the choice at run time meanwhile.
    problems : tuple of (extents, seconds)
        Extents to time it at, and the time to beat.
    verify : tuple
        On which extents its result is compared first, as of `verify`: 'aligned', 'odd', (100, 1).
    vendor : bool or str
        Whether cuBLAS is to be timed instead. A name is that of its routine, if not the same one:
        'trmm_out_of_place'.
    reload : bool
        Whether the files of tuned values may have changed.
    policy : tuple of (str, number or dict)
        Values of the policy meanwhile.
    on_host : bool
        Whether a product of host matrices is timed, as a caller waits for it, and nothing is verified.
    """

    routine: str
    dtype: str
    layout: str
    overrides: tuple[tuple[str, Any], ...] = ()
    problems: tuple[tuple[tuple[int, ...], float], ...] = ()
    verify: tuple[str | tuple[int, int], ...] = ()
    vendor: bool | str = False
    reload: bool = False
    policy: tuple[tuple[str, Any], ...] = ()
    on_host: bool = False


class Timing(NamedTuple):
    """Seconds of a call on the job's problem of this number."""

    number: int
    seconds: float


class Failed(NamedTuple):
    """Failure without times: 'wrong', 'spoils', 'error', 'crash', 'absent', and the details."""

    outcome: str
    detail: str


class Bench:
    """The body of the worker.

    Parameters
    ----------
    routine : callable
        Gives the function of a routine by name.
    ordinal : int
        The device.

    Attributes
    ----------
    workload : Workload
    """

    def __init__(self, routine: Callable[[str], Callable], ordinal: int):
        self._routine, self._ordinal = routine, ordinal
        self._timer = Timer(devices.current(ordinal), STREAM)
        self.workload = Workload(ordinal, STREAM)

    def __call__(self, job: Job) -> Iterator[Timing | Failed]:
        """Run a job.

        Raises
        ------
        DeviceLost
            After an error that leaves the context useless.
        """
        if job.reload:
            choose.reload()
        try:
            yield from self._run(job)
        except BackendUnavailable as missing:
            yield Failed("absent", str(missing))
        except WrongResult as problem:
            yield Failed("wrong", str(problem))
        except SpoiledMemory as problem:
            yield Failed("spoils", str(problem))
        except (PyblasgpuError, MemoryError, RuntimeError) as problem:
            lost = not self._alive()
            yield Failed("crash" if lost else "error", str(problem))
            if lost:
                raise DeviceLost from problem

    def _run(self, job: Job) -> Iterator[Timing]:
        dtype = DTYPES[job.dtype]
        if job.on_host:
            yield from self._run_on_host(job)
            return
        routine = self._vendor(job) if job.vendor else self._routine(job.routine)
        with ExitStack() as held:
            if job.policy:
                held.enter_context(deciding_by(**dict(job.policy)))
            for name, value in job.overrides:
                held.enter_context(override(name, value))
            for kind in job.verify:
                verify(routine, job.routine, dtype, job.layout, self._ordinal, STREAM, kind)
            for number, (extents, best) in enumerate(job.problems):
                work = self.workload.rotation(routine, job.routine, dtype, job.layout, extents)
                yield Timing(number, self._timer(work, best))
            self.workload.check()

    def _run_on_host(self, job: Job) -> Iterator[Timing]:
        """Time products of host matrices, as a user calls them."""
        with deciding_by(**dict(job.policy)):
            for number, (extents, _) in enumerate(job.problems):
                yield Timing(number, host_seconds(DTYPES[job.dtype], extents))

    def _vendor(self, job: Job) -> Callable:
        name = job.routine if job.vendor is True else str(job.vendor)
        with memory.current_context(self._ordinal):  # cuBLAS's handle is of the device that is current
            return vendor(name)

    def _alive(self) -> bool:
        """Whether the context still works; after some errors nothing does."""
        try:
            with memory.current_context(self._ordinal):
                memory.synchronize(STREAM)
        except PyblasgpuError:
            return False
        return True


def vendor(name: str) -> Callable:
    """cuBLAS's routine, called as ours are."""
    cublas = load_cublas()
    cublas.set_stream(STREAM)
    if name == "trmm_out_of_place":
        return _OutOfPlace(cublas)
    if name in MATRIX_VECTOR:
        return vendor_matrix_vector(cublas, name)
    return vendor_gemm(cublas) if name == "gemm" else vendor_triangular(getattr(cublas, name))


def vendor_matrix_vector(cublas: Cublas, name: str) -> Callable:
    """cuBLAS's GEMV or GER, called as ours are."""

    def gemv(alpha, a: Operand, x: Operand, beta, y: Operand, stream: int) -> None:
        stored, trans = _stored(a)
        cublas.gemv(alpha, stored, _Array(x), beta, _Array(y), trans)

    def ger(alpha, x: Operand, y: Operand, a: Operand, stream: int) -> None:
        cublas.ger(alpha, _Array(x), _Array(y), _Array(a))

    return gemv if name == "gemv" else ger


def vendor_gemm(cublas: Cublas) -> Callable:
    """cuBLAS's GEMM, called as ours is."""

    def gemm(alpha, a: Operand, b: Operand, beta, c: Operand, stream: int) -> None:
        (left, trans_a), (right, trans_b) = (_stored(operand) for operand in (a, b))
        cublas.gemm(alpha, left, right, beta, _Array(c), trans_a, trans_b)

    return gemm


def vendor_triangular(routine: Callable) -> Callable:
    """cuBLAS's TRMM or TRSM, called as ours are."""

    def run(alpha, t: Operand, b: Operand, stream: int, *, side: Side, uplo: Uplo, diag: Diag) -> None:
        routine(alpha, _Array(t), _Array(b), side, uplo, Trans.NO, diag)

    return run


class _OutOfPlace:
    """cuBLAS's TRMM out of place, called as ours is; the product goes into memory of its own."""

    def __init__(self, cublas: Cublas):
        self._cublas = cublas
        self._address, self._bytes, self._device = 0, 0, 0

    def __call__(
        self, alpha, t: Operand, b: Operand, stream: int, *, side: Side, uplo: Uplo, diag: Diag
    ) -> None:
        nbytes = b.rows * b.cols * b.dtype.itemsize
        if nbytes > self._bytes:
            self._release(stream)
            self._address, self._bytes = memory.allocate(nbytes, b.device, stream), nbytes
        out = b._replace(pointer=self._address, col_stride=b.rows)
        self._cublas.trmm(alpha, _Array(t), _Array(b), side, uplo, Trans.NO, diag, out=_Array(out))

    def _release(self, stream: int) -> None:
        if self._bytes:
            memory.release(self._address, stream)


def _stored(operand: Operand) -> tuple[_Array, Trans]:
    """The column-major matrix there, and the function that makes `operand` of it."""
    return (_Array(operand), Trans.NO) if operand.row_stride == 1 else (_Array(operand.T), Trans.TRANS)


class _Array:
    """A column-major operand, or a batch of them, as an array that `Cublas` takes."""

    def __init__(self, operand: Operand):
        size = operand.dtype.itemsize
        self.dtype = operand.dtype
        self.shape: tuple[int, ...] = operand.rows, operand.cols
        strides: tuple[int, ...] = size, operand.col_stride * size
        if operand.batch > 1:
            self.shape, strides = (operand.batch, *self.shape), (operand.batch_stride * size, *strides)
        self.__cuda_array_interface__ = {"data": (operand.pointer, False), "strides": strides}
