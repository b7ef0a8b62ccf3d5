"""CuPy that is none: arrays are NumPy's, all takes a millisecond, and the vendor's functions compute nothing.

With it and the processor's backend the scripts of `benchmarks` and `tuning/papers` run from their options to
their files. Sizes are small.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

import pyblasgpu
from pyblasgpu.api import plans
from pyblasgpu.bench import command
from pyblasgpu.frontend.arrays import libraries
from pyblasgpu.gpu import device, events
from pyblasgpu.kernels import compile_ahead
from pyblasgpu.testing import cublas, cublas_level1, cusolver

CARD = device.known("h200")
GIB = 1 << 30


class ndarray(np.ndarray):
    """NumPy's memory behind CuPy's attributes."""

    data = property(lambda self: Pointer(self))
    device = SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        facts = self.__array_interface__
        return {
            "data": facts["data"],
            "shape": self.shape,
            "strides": self.strides,
            "typestr": facts["typestr"],
            "version": 3,
        }

    def get(self, order: str = "C", out: Any = None) -> np.ndarray:
        array = np.array(self, order=order, subok=False)
        if out is None:
            return array
        out[...] = array
        return out

    def set(self, array: Any) -> None:
        self[...] = array


class Pointer:
    """Where an array begins."""

    def __init__(self, array: np.ndarray):
        self.ptr, self.device_id, self._array = array.ctypes.data, 0, array

    def memset_async(self, value: int, nbytes: int, stream: Any) -> None:
        assert nbytes <= self._array.nbytes

    def copy_from_device_async(self, source: Pointer, nbytes: int, stream: Any) -> None:
        assert nbytes <= self._array.nbytes

    def copy_from_host_async(self, source: int, nbytes: int, stream: Any) -> None:
        assert nbytes <= self._array.nbytes

    copy_to_host_async = copy_from_host_async


def _put(result: Any) -> Any:
    if type(result) is tuple:
        return tuple(map(_put, result))
    return result.view(ndarray) if type(result) is np.ndarray else result


def _of_numpy(function: Any) -> Any:
    def call(*arguments: Any, **options: Any) -> Any:
        return _put(function(*arguments, **options))

    call.__name__ = getattr(function, "__name__", "")
    return call


def _of_functions(name: str, module: ModuleType, functions: str) -> ModuleType:
    """A module of functions that are its own, and of whatever else `module` has."""
    made = ModuleType(name)
    vars(made).update(vars(module), **{each: _of_numpy(getattr(module, each)) for each in functions.split()})
    made.__name__ = name
    return made


class RandomState:
    """CuPy's, which gives numbers of a dtype."""

    def __init__(self, seed: Any = None):
        self._rng = np.random.default_rng(seed)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        return _put(self._rng.standard_normal(size).astype(dtype))

    def uniform(self, low: float, high: float, size: Any = None, dtype: Any = np.float64) -> Any:
        return _put(self._rng.uniform(low, high, size).astype(dtype))

    def random(self, size: Any = None, dtype: Any = np.float64) -> Any:
        return _put(self._rng.random(size, dtype))

    random_sample = random

    def randint(self, low: int, high: int, size: Any = None) -> Any:
        return _put(self._rng.integers(low, high, size))


class Event:
    def record(self, stream: Any = None) -> None:
        """Nothing is timed."""

    def synchronize(self) -> None:
        """Nothing is under way."""


class _Scope:
    """A context manager that changes nothing."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Device(_Scope):
    attributes = {"L2CacheSize": 4096}
    mem_info = 64 * GIB, 80 * GIB

    def __init__(self, number: int = 0):
        self.id = number

    def use(self) -> None:
        """There is no other."""

    synchronize = use


class Stream(_Scope):
    """A stream, or what was captured on one: whoever launches that runs nothing."""

    ptr = handle = 0

    def __init__(self, *_: Any, **__: Any):
        pass

    @classmethod
    def from_external(cls, stream: Any) -> Stream:
        return cls()

    def synchronize(self) -> None:
        """Nothing is under way."""

    begin_capture = synchronize

    def end_capture(self) -> Stream:
        return self

    def launch(self, stream: Any = None) -> None:
        """Nothing was captured: it ran at once."""


class _Functions(ModuleType):
    """Functions of a vendor's library, which give one and the same."""

    def __init__(self, name: str, answer: int = 0):
        super().__init__(name)
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: self._answer


def modules() -> dict[str, Any]:
    """What `import cupy`, `import cupyx` and CuPy's bindings find."""
    cuda = ModuleType("cupy.cuda")
    runtime = SimpleNamespace(
        deviceSynchronize=lambda: None,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda number: {"name": CARD.name.encode()},
        hostRegister=lambda *_: None,
    )
    handles = SimpleNamespace(get_cusolver_handle=lambda: 0, get_cublas_handle=lambda: 0)
    for name, value in {
        "Device": Device,
        "Event": Event,
        "Stream": Stream,
        "runtime": runtime,
        "device": handles,
        "get_current_stream": Stream,
        "MemoryPointer": lambda memory, offset: memory,
        "profiler": SimpleNamespace(start=lambda: None, stop=lambda: None),
        "get_elapsed_time": lambda start, end: 1.0,
        "UnownedMemory": lambda at, nbytes, *_: (ctypes.c_char * nbytes).from_address(at),
    }.items():
        setattr(cuda, name, value)
    pool = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=lambda: 0)
    random = SimpleNamespace(
        RandomState=RandomState,
        default_rng=RandomState,
        seed=lambda number: None,
        **{name: getattr(RandomState(0), name) for name in ("random", "standard_normal", "uniform")},
    )
    cupy = ModuleType("cupy")
    cupy.__spec__ = ModuleSpec("cupy", None)
    own = {
        "cuda": cuda,
        "random": random,
        "ndarray": ndarray,
        "get_default_memory_pool": lambda: pool,
        "RawKernel": lambda *_: lambda *arguments: None,
    }
    for name, value in own.items():
        setattr(cupy, name, value)
    for name in dir(np):
        if not name.startswith("_") and name not in own:
            function = getattr(np, name)
            is_function = callable(function) and not isinstance(function, type)
            setattr(cupy, name, _of_numpy(function) if is_function else function)
    cupy.linalg = _of_functions(
        "cupy.linalg", np.linalg, "cholesky solve inv det slogdet qr eigh eigvalsh svd"
    )
    cupyx = ModuleType("cupyx")
    cupyx.empty_pinned, cupyx.geterr = np.empty, lambda: {"linalg": "ignore"}
    vendors = ModuleType("cupy_backends.cuda.libs")
    vendors.cublas, vendors.cusolver = _Functions("cublas", 1), _Functions("cusolver", 1)
    folders = {name: ModuleType(name) for name in ("cupy_backends", "cupy_backends.cuda", "cupyx.scipy")}
    names = "solve_triangular lu_factor lu_solve lu"
    folders["cupyx.scipy.linalg"] = _of_functions("cupyx.scipy.linalg", scipy.linalg, names)
    return {
        "cupy": cupy,
        "cupy.linalg": cupy.linalg,
        "cupy.cuda": cuda,
        "cupyx": cupyx,
        **folders,
        "cupy_backends.cuda.libs": vendors,
    }


def install(monkeypatch: Any) -> None:
    """Let scripts find it; calls of the library run on the processor.

    Nothing is replaced that a module of the package may import by name meanwhile, and keep.
    """
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setattr(type(libraries.NUMPY), "deliver", lambda self, result, like, stream: _put(result))
    monkeypatch.setattr(cusolver, "load", cache(lambda: cusolver.Cusolver(_Functions("cusolver"))))
    monkeypatch.setattr(cusolver, "library", lambda: _Functions("cusolver"))
    monkeypatch.setattr(pyblasgpu, "plan_gemm", _planned)
    # nothing is timed: a ratio of times would go by what else the machine does
    monkeypatch.setattr(events.Stopwatch, "__init__", lambda self, device: None)
    monkeypatch.setattr(events.Stopwatch, "enqueue", lambda self, run, stream=0: run())
    monkeypatch.setattr(events.Stopwatch, "elapsed", lambda self: 1e-3)


def replace_in(monkeypatch: Any, script: ModuleType) -> None:
    """Replace what needs a device among the names of a script; what it compiles ahead is listed."""
    stand_ins = {
        device.current: lambda ordinal=0: CARD,
        compile_ahead.ensure_compiled: lambda sources, ordinal: list(sources),
        compile_ahead.compile_missing: lambda sources, cc: list(sources),
        command.require_device: lambda: None,
        cublas.load: cache(lambda: cublas.Cublas(_Functions("cublas"))),
        cublas_level1.load_vectors: lambda: tuple(
            kind(_Functions("cublas")) for kind in (cublas_level1.CublasVectors, cublas_level1.CublasNumbers)
        ),
    }
    for name, value in vars(script).copy().items():
        if callable(value) and value.__hash__ and value in stand_ins:
            monkeypatch.setattr(script, name, stand_ins[value])
    if getattr(script, "cublas", None) is cublas:
        loaded = stand_ins[cublas.load]
        monkeypatch.setattr(
            script, "cublas", SimpleNamespace(load=loaded, library=lambda: _Functions("cublas"))
        )


def _planned(a: Any, b: Any, out: Any, **options: Any) -> Any:
    """A plan that is none: products with these arrays."""
    inspect.signature(plans.plan_gemm).bind(a, b, out, **options)
    return lambda *arrays: pyblasgpu.gemm(a, b, out=out)


def anywhere(monkeypatch: Any, *routines: str) -> None:
    """Let calls say where they run: they run on the processor all the same."""

    def stand_in(routine: Any) -> Any:
        def call(*arrays: Any, backend: Any = None, devices: Any = None, **options: Any) -> Any:
            inspect.signature(routine).bind(*arrays, backend=backend, devices=devices, **options)
            options.pop("max_device_memory", None)
            return routine(*arrays, **options)

        return call

    for name in routines:
        monkeypatch.setattr(pyblasgpu, name, stand_in(getattr(pyblasgpu, name)))
