"""Arrays that lie where kernels do not read, or that a protocol alone describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.types import DTYPES
from pyblasgpu.typing import TransFlag

from .running import cupy

#: Of 5 by 5 matrices: dtype, and strides in bytes of which one at least is no multiple of it.
UNEVEN = [
    ("z", (120, 24)),
    ("z", (24, 120)),
    ("z", (88, 16)),
    ("z", (16, 88)),
    ("z", (-120, 24)),
    ("z", (82, 16)),
    ("c", (60, 12)),
    ("c", (12, 60)),
    ("d", (60, 12)),
    ("d", (45, 9)),
    ("d", (8, 44)),
    ("d", (44, -8)),
    ("s", (25, 5)),
    ("s", (4, 22)),
]
EACH = pytest.mark.parametrize(("letter", "strides"), UNEVEN)


def numbers(letter: str, shape=(5, 5)) -> np.ndarray:
    dtype, count = DTYPES[letter], np.arange(int(np.prod(shape))).reshape(shape)
    return (count % 7 - 3 + (1j * (count % 5) if dtype.is_complex else 0)).astype(dtype.name)


class Placed:
    """`values` on the device with these strides in bytes, amid bytes that must stay as they are."""

    def __init__(self, values: np.ndarray, strides: tuple[int, int], offset: int = 0):
        steps = [(extent - 1) * stride for extent, stride in zip(values.shape, strides, strict=True)]
        low, high = (sum(pick(step, 0) for step in steps) for pick in (min, max))
        self.memory = np.full(high - low + values.itemsize + offset, 0xFF, np.uint8)
        np.ndarray(values.shape, values.dtype, self.memory, offset - low, strides)[...] = values
        self.device = cupy.asarray(self.memory)
        pointer = self.device.data + (offset - low)
        self.array = cupy.ndarray(values.shape, values.dtype, pointer, strides)

    def unharmed(self) -> bool:
        return bool((self.device.get() == self.memory).all())


class Interface:
    """The CUDA array interface of a CuPy array, and nothing else of it."""

    def __init__(self, array, read_only: bool = False, **facts):
        self.array = array
        described = array.__cuda_array_interface__
        self.__cuda_array_interface__ = {**described, "data": (described["data"][0], read_only), **facts}


class Exporter:
    """DLPack of another library's array, and nothing else of it."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


WAYS = pytest.mark.parametrize("way", [lambda array: array, Interface], ids=["CuPy", "interface"])


@WAYS
@EACH
def test_inputs_of_uneven_strides_are_copied(way, letter, strides):
    a, b = numbers(letter), numbers(letter)[::-1]
    placed, right = Placed(a, strides), way(cupy.asarray(b))
    left = way(placed.array)
    ops: dict[TransFlag, Any] = {"N": a, "T": a.T, "C": a.conj().T}
    for trans, op in ops.items():
        np.testing.assert_array_equal(pyblasgpu.gemm(left, right, trans_a=trans).get(), op @ b)
    np.testing.assert_array_equal(pyblasgpu.gemm(right, left).get(), b @ a)
    np.testing.assert_array_equal(pyblasgpu.trmm(left, right, lower=True).get(), np.tril(a) @ b)
    np.testing.assert_array_equal(linalg.matmul(left, left).get(), a @ a)
    np.testing.assert_array_equal(getattr(blas, f"{letter}gemm")(1, left, right).get(), a @ b)
    np.testing.assert_array_equal(
        getattr(blas, f"{letter}trmm")(1, right, left, overwrite_b=1).get(), np.triu(b) @ a
    )
    assert placed.unharmed()


@WAYS
@EACH
def test_outputs_of_uneven_strides_are_refused(way, letter, strides):
    a, placed = numbers(letter), Placed(numbers(letter), strides)
    one, out = way(cupy.asarray(a)), way(placed.array)
    for call in (
        lambda: pyblasgpu.gemm(one, one, out=out),
        lambda: pyblasgpu.trsm(one, out, out=out),
        lambda: pyblasgpu.syrk(one, out=out),
    ):
        with pytest.raises(ValueError, match=r"(gemm|trsm|syrk): out has strides \(.*\) in bytes"):
            call()
    assert placed.unharmed()
    cupy.cuda.Device().synchronize()


def test_repeated_calls_see_uneven_strides():
    a = numbers("z", (2, 2))
    even, out = cupy.asarray(np.asfortranarray(a)), cupy.zeros((2, 2), "D", order="F")
    for _ in range(3):
        pyblasgpu.gemm(even, even, out=out)
    for strides, cols in (((16, 40), 2), ((24, 16), 1), ((24, 48), 2), ((16, 32), 2)):
        values = a.T[:, :cols]
        placed = Placed(values, strides)
        for _ in range(3):
            result = pyblasgpu.gemm(placed.array, even[:cols], out=out)
            np.testing.assert_array_equal(result.get(), values @ a[:cols])


@pytest.mark.parametrize("dtype", ["i4", "f2", "u2", "?", "i8"])
def test_what_is_cast_may_lie_anywhere(dtype):
    values = np.arange(25).reshape(5, 5).astype(dtype)
    size = values.itemsize
    for strides, offset in (((6 * size + 1, size), 0), ((5 * size, size), 1), ((-9 * size - 9, size + 1), 3)):
        placed = Placed(values, strides, offset)
        result = pyblasgpu.gemm(placed.array, placed.array)
        np.testing.assert_array_equal(result.get(), values.astype("f8") @ values.astype("f8"))
        assert placed.unharmed()
    cupy.cuda.Device().synchronize()


@pytest.mark.parametrize(
    "way", [lambda array: array, Interface, Exporter], ids=["CuPy", "interface", "DLPack"]
)
@pytest.mark.parametrize("letter", DTYPES)
def test_addresses_between_elements_are_refused(way, letter):
    a = numbers(letter)
    size, real = a.itemsize, DTYPES[letter].real_size
    off = Placed(a, (5 * size, size), real // 2)
    one = way(cupy.asarray(a))
    with pytest.raises(ValueError, match="gemm: b is not aligned"):
        pyblasgpu.gemm(one, way(off.array))
    with pytest.raises(ValueError, match="gemm: out is not aligned"):
        pyblasgpu.gemm(one, one, out=way(off.array))
    assert off.unharmed()
    between_parts = Placed(a, (5 * size, size), real)
    np.testing.assert_array_equal(pyblasgpu.gemm(one, way(between_parts.array)).get(), a @ a)


@pytest.mark.parametrize("call", ["gemm", "trmm"])
def test_read_only_memory_is_not_written(call):
    a, b = np.triu(numbers("d")), np.asfortranarray(numbers("d"))
    memory = cupy.asarray(b, order="F")
    kept: Any = Interface(memory, read_only=True)
    left: Any = Interface(cupy.asarray(a))
    with pytest.raises(TypeError, match=f"{call}: out is read-only"):
        getattr(pyblasgpu, call)(
            left, kept, out=kept if call == "trmm" else Interface(memory, read_only=True)
        )
    np.testing.assert_array_equal(blas.dtrmm(1, left, kept, overwrite_b=1).get(), a @ b)
    np.testing.assert_array_equal(blas.dgemm(1, left, left, 2, kept, overwrite_c=1).get(), a @ a + 2 * b)
    np.testing.assert_array_equal(memory.get(), b)


@pytest.mark.parametrize("key", ["mask", "stream"])
def test_masks_and_stream_0_are_refused(key):
    facts: dict[str, Any] = {"mask": {"mask": Interface(cupy.ones((3, 3), bool))}, "stream": {"stream": 0}}
    good, wrong = Interface(cupy.eye(3)), Interface(cupy.eye(3), **facts[key])
    for call in (
        lambda: pyblasgpu.gemm(good, wrong),
        lambda: pyblasgpu.gemm(good, good, out=wrong),
        lambda: linalg.dot(good, wrong),
        lambda: blas.daxpy(good, wrong),
    ):
        with pytest.raises(TypeError, match="CUDA array interface"):
            call()


@pytest.mark.parametrize("stream", [None, 1, 2, "own"])
def test_streams_of_interfaces_are_served(stream):
    """1 is the legacy default stream, 2 the thread's."""
    own = cupy.cuda.Stream(non_blocking=True)
    named = own.ptr if stream == "own" else stream
    a = cupy.eye(1000) * 2
    late, out = cupy.full((1000, 1000), np.nan), cupy.zeros((1000, 1000))
    cupy.cuda.Device().synchronize()
    queue = {2: cupy.cuda.Stream.ptds, "own": own}.get(stream, cupy.cuda.Stream.null)
    with queue:
        big = cupy.zeros((8192, 8192), np.float32)
        for _ in range(4):
            big = big @ big
        late[...] = a
    given = Interface(late, stream=named)
    pyblasgpu.gemm(given, Interface(a, stream=named), out=Interface(out, stream=named))
    cupy.cuda.Device().synchronize()
    np.testing.assert_array_equal(out.get(), np.eye(1000) * 4)
    np.testing.assert_array_equal(linalg.dot(given, given).get(), np.eye(1000) * 4)


def test_exporters_of_dlpack_are_waited_for():
    """What PyTorch still computes, on a stream of its own, is there when a call reads it."""
    torch = pytest.importorskip("torch")
    ready = torch.eye(1000, dtype=torch.float64, device="cuda") * 4
    late, one = torch.full_like(ready, float("nan")), torch.eye(1000, dtype=torch.float64, device="cuda")
    pyblasgpu.gemm(Exporter(late), Exporter(one))
    stream, big = torch.cuda.Stream(), torch.zeros((8192, 8192), device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(4):
            big = big @ big
        late.copy_(ready, non_blocking=True)
        result: Any = pyblasgpu.gemm(Exporter(late), Exporter(one))
    np.testing.assert_array_equal(result.get(), np.eye(1000) * 4)
