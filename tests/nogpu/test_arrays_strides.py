"""Strides that are no multiples of an element, and addresses between elements: copied or refused."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import fake_device
import fake_libraries
import numpy as np
import pytest
from blas_calls import PLACES as LAYOUTS
from blas_calls import placed
from fake_level1 import LEVEL1
from library_cases import CASES as CALLS
from library_cases import HOST_CASES, evaluated

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.api.keyword import vector_calls, vector_pairs
from pyblasgpu.cpu.scipy.level3 import at_elements
from pyblasgpu.frontend.arrays import libraries
from pyblasgpu.frontend.arrays.any_array import by_columns, reshaped
from pyblasgpu.frontend.arrays.layouts import UnevenStridesError, element_strides
from pyblasgpu.frontend.arrays.protocols import NUMBA
from pyblasgpu.gpu.backend import SIMULATED, why_unavailable
from pyblasgpu.types import DTYPES


def view_of(values: np.ndarray, strides: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """`values` in an array with these strides in bytes, amid bytes that no call may change or need."""
    steps = [(extent - 1) * stride for extent, stride in zip(values.shape, strides, strict=True)]
    low, high = (sum(pick(step, 0) for step in steps) for pick in (min, max))
    memory = np.full(high - low + values.itemsize + offset + 64, 0xFF, np.uint8)
    start = -memory.ctypes.data % 32 + offset - low
    view = np.ndarray(values.shape, values.dtype, memory, start, strides)
    view[...] = values
    return view


def numbers(shape: tuple[int, ...], letter: str) -> np.ndarray:
    dtype, count = DTYPES[letter], int(np.prod(shape))
    values = np.arange(count).reshape(shape) % 7 - 3.0
    return (values + 1j * (np.arange(count).reshape(shape) % 5) if dtype.is_complex else values).astype(
        dtype.name
    )


#: Of 3 by 3 matrices: dtype, and strides of which one at least is no multiple of it.
UNEVEN = [
    ("z", (72, 24)),
    ("z", (24, 72)),
    ("z", (56, 16)),
    ("z", (16, 56)),
    ("z", (-72, 24)),
    ("z", (50, 16)),
    ("c", (36, 12)),
    ("c", (12, 36)),
    ("d", (36, 12)),
    ("d", (27, 9)),
    ("d", (8, 28)),
    ("d", (28, -8)),
    ("s", (15, 5)),
    ("s", (4, 18)),
]
EACH = pytest.mark.parametrize(("letter", "strides"), UNEVEN)
PLACES = {"CuPy": fake_device.Array, "interface": fake_libraries.InterfaceArray, "NumPy": lambda view: view}
EVERYWHERE = pytest.mark.parametrize("put", PLACES.values(), ids=PLACES)


def host(array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.host


@EVERYWHERE
@EACH
def test_inputs_are_copied(device, put, letter, strides):
    a, b = numbers((3, 3), letter), numbers((3, 3), letter)[::-1]
    left, right = put(view_of(a, strides)), put(np.ascontiguousarray(b))
    for trans in "NTC":
        op = {"N": a, "T": a.T, "C": a.conj().T}[trans]
        np.testing.assert_array_equal(host(pyblasgpu.gemm(left, right, trans_a=trans)), op @ b)
    np.testing.assert_array_equal(host(pyblasgpu.gemm(right, left)), b @ a)
    np.testing.assert_array_equal(host(pyblasgpu.trmm(left, right, lower=True)), np.tril(a) @ b)
    np.testing.assert_array_equal(host(linalg.matmul(left, left)), a @ a)
    np.testing.assert_array_equal(host(getattr(blas, f"{letter}gemm")(1, left, right)), a @ b)


@EVERYWHERE
@pytest.mark.parametrize(("letter", "step"), [("z", 24), ("z", -24), ("d", 12), ("c", 12), ("s", 9)])
def test_vectors_are_copied(device, monkeypatch, put, letter, step):
    for module in (vector_calls, vector_pairs):
        monkeypatch.setattr(module, "routine_module", lambda name: LEVEL1)
    a, x = numbers((3, 3), letter), numbers((3,), letter)
    uneven, y = put(view_of(x, (step,))), put(x[::-1].copy())
    np.testing.assert_array_equal(host(linalg.matmul(put(a), uneven)), a @ x)
    np.testing.assert_array_equal(host(linalg.matmul(uneven, put(a))), x @ a)
    np.testing.assert_array_equal(host(pyblasgpu.axpy(uneven, y)), x + x[::-1])
    np.testing.assert_array_equal(host(pyblasgpu.axpy(y, uneven)), x + x[::-1])


@EACH
def test_numpys_outputs_are_written_where_their_elements_lie(device, letter, strides):
    a = numbers((3, 3), letter)
    for backend in ("cpu", "cuda"):
        out = view_of(np.zeros_like(a), strides)
        before = out.base.copy()
        assert pyblasgpu.gemm(a, a, out=out, backend=backend) is out
        np.testing.assert_array_equal(out, a @ a)
        out[...] = 0
        np.testing.assert_array_equal(out.base, before)


@pytest.mark.parametrize("put", [fake_device.Array, fake_libraries.InterfaceArray])
@EACH
def test_outputs_on_the_device_are_refused(device, put, letter, strides):
    a = numbers((3, 3), letter)
    out = view_of(np.zeros_like(a), strides)
    before = out.base.copy()
    for call in (
        lambda: pyblasgpu.gemm(put(a), put(a), out=put(out)),
        lambda: pyblasgpu.trsm(put(a), put(out), out=put(out)),
        lambda: pyblasgpu.syrk(put(a), out=put(out)),
    ):
        with pytest.raises(
            ValueError, match=r"(gemm|trsm|syrk): out has strides \(.*\) in bytes, no multiples"
        ):
            call()
    np.testing.assert_array_equal(out.base, before)
    assert not device[0].calls


@pytest.mark.parametrize("put", [fake_device.Array, fake_libraries.InterfaceArray])
@EACH
def test_what_may_be_overwritten_is_not_where_it_cannot(device, put, letter, strides):
    a, b = numbers((3, 3), letter), numbers((3, 3), letter).T
    kept = view_of(b, strides)
    before = kept.base.copy()
    result = getattr(blas, f"{letter}trmm")(1, put(a), put(kept), lower=1, overwrite_b=1)
    np.testing.assert_array_equal(host(result), np.tril(a) @ b)
    result = getattr(blas, f"{letter}gemm")(1, put(a), put(a), 2, put(kept), overwrite_c=1)
    np.testing.assert_array_equal(host(result), a @ a + 2 * b)
    np.testing.assert_array_equal(kept.base, before)


def test_a_repeated_call_is_not_taken_for_one_of_even_strides(device):
    """(24, 16) and (16, 16) // 16 are the same, and the addresses are not."""
    a, b = numbers((2, 2), "z"), numbers((2, 2), "z").T
    even, out = fake_device.Array(np.asfortranarray(a)), fake_device.Array(np.zeros((2, 2), "D"))
    for _ in range(3):
        pyblasgpu.gemm(even, even, out=out)
    for _ in range(3):
        left = fake_device.Array(view_of(b, (16, 40)))
        pyblasgpu.gemm(left, even, out=out)
        np.testing.assert_array_equal(out.host, b @ a)
    wrong = fake_device.Array(view_of(np.zeros((2, 2), "D"), (40, 16)))
    for _ in range(3):
        with pytest.raises(ValueError, match="gemm: out has strides"):
            pyblasgpu.gemm(even, even, out=wrong)
    assert not wrong.host.any()


def test_a_plan_copies_nothing(device):
    a = fake_device.Array(view_of(numbers((3, 3), "d"), (28, 8)))
    out = fake_device.Array(np.zeros((3, 3)))
    with pytest.raises(TypeError, match=r"plan_gemm: a .*copies nothing"):
        pyblasgpu.plan_gemm(a, out, fake_device.Array(np.zeros((3, 3))))
    with pytest.raises(ValueError, match="plan_gemm: out has strides"):
        pyblasgpu.plan_gemm(out, out, a)


@EVERYWHERE
@pytest.mark.parametrize("dtype", ["i4", "f2", "u2", "?"])
def test_what_is_cast_may_have_any_strides(device, put, dtype):
    values = np.arange(9).reshape(3, 3).astype(dtype)
    size = values.itemsize
    other = np.arange(9.0).reshape(3, 3)
    for strides in ((4 * size + 1, size), (size, 3 * size + 1), (-5 * size - 1, size + 1)):
        wide = put(view_of(values, strides))
        result = pyblasgpu.gemm(wide, wide)
        np.testing.assert_array_equal(host(result), values.astype("f8") @ values.astype("f8"))
        np.testing.assert_array_equal(host(pyblasgpu.gemm(wide, put(other))), values.astype("f8") @ other)


@EVERYWHERE
def test_stacks_are_copied(device, put):
    stack = numbers((2, 3, 3), "d")
    view = view_of(stack, (77, 8, 25))
    other = numbers((3, 2), "d")
    np.testing.assert_array_equal(host(pyblasgpu.gemm(put(view), put(other))), stack @ other)
    repeated = np.lib.stride_tricks.as_strided(view, (4, 2, 3, 3), (0, *view.strides))
    np.testing.assert_array_equal(
        host(pyblasgpu.gemm(put(repeated), put(other))), np.stack([stack @ other] * 4)
    )


@pytest.mark.parametrize(
    ("shape", "strides"), [((1, 3), (13, 8)), ((3, 1), (8, 13)), ((0, 3), (13, 13)), ((1, 1), (3, 5))]
)
def test_strides_that_do_not_count(device, shape, strides):
    """Extents of one, and arrays without elements, may have any strides."""
    out = fake_device.Array(view_of(np.zeros(shape), strides) if 0 not in shape else np.zeros(shape))
    left, right = np.ones((shape[0], 2)), np.ones((2, shape[1]))
    result = pyblasgpu.gemm(fake_device.Array(left), fake_device.Array(right), out=out)
    assert result is out
    np.testing.assert_array_equal(out.host, left @ right)
    assert len(element_strides(64, shape, strides, DTYPES["d"])) == 2


@pytest.mark.parametrize(
    "put", [fake_device.Array, fake_libraries.InterfaceArray, fake_libraries.DeviceArray]
)
@pytest.mark.parametrize(
    ("letter", "real"), [("s", "float32"), ("d", "float64"), ("c", "float32"), ("z", "float64")]
)
def test_addresses_between_elements(device, put, letter, real):
    a = numbers((3, 3), letter)
    size = a.itemsize
    real_size = np.dtype(real).itemsize
    off = view_of(a, (3 * size, size), offset=real_size // 2)
    before = off.base.copy()
    with pytest.raises(ValueError, match=f"gemm: b is not aligned to its {real}"):
        pyblasgpu.gemm(put(a), put(off))
    with pytest.raises(ValueError, match=f"gemm: out is not aligned to its {real}"):
        pyblasgpu.gemm(put(a), put(a), out=put(off))
    np.testing.assert_array_equal(off.base, before)
    between_parts = view_of(a, (3 * size, size), offset=real_size)  # of complex numbers kernels need no more
    np.testing.assert_array_equal(host(pyblasgpu.gemm(put(a), put(between_parts))), a @ a)


def test_uneven_strides_without_cupy_are_refused(device, monkeypatch):
    from pyblasgpu.frontend.arrays import protocols

    def absent(name):
        if name == "cupy":
            raise ImportError(name)
        return libraries.import_module(name)

    monkeypatch.setattr(protocols, "module", absent)
    a = fake_libraries.InterfaceArray(view_of(numbers((3, 3), "d"), (28, 8)))
    with pytest.raises(ValueError, match=r"gemm: a has strides \(28, 8\) in bytes"):
        pyblasgpu.gemm(a, a)


def test_the_message_tells_the_strides():
    with pytest.raises(
        UnevenStridesError, match=r"strides \(24, 16\) in bytes, no multiples of the 16 of a complex128"
    ):
        element_strides(4096, (2, 2), (24, 16), DTYPES["z"])
    assert element_strides(4096, (2, 2), (-32, 16), DTYPES["z"]) == (-2, 1)


CASES = CALLS.strip().split("\n")


def results_of(case: str, letter: str, put) -> list[np.ndarray]:
    """What a call gives of NumPy's arrays as `put` makes them."""
    library = SimpleNamespace(put=put, get=np.asarray)
    return [np.asarray(result) for result in evaluated(library, letter, "C", case)[0]]


@pytest.mark.parametrize("case", CASES + HOST_CASES)
def test_results_do_not_depend_on_where_numpys_elements_lie(case, monkeypatch):
    """Misaligned, uneven, backwards, read-only, in the other byte order: of those NumPy has them all."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    for letter in "dz":
        expected = results_of(case, letter, np.copy)
        for how in LAYOUTS if "out=" not in case else set(LAYOUTS) - {"swapped", "read-only"}:
            results = results_of(case, letter, partial(placed, how=how))
            for one, other in zip(results, expected, strict=True):
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                np.testing.assert_allclose(one, other, 1e-12, 1e-12, err_msg=f"{letter} {how}")


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4), (0, 2)])
def test_elements_at_multiples_of_their_size(shape, how):
    for letter in DTYPES:
        values = numbers(shape, letter)
        array = placed(values, how)
        usable = at_elements(array)
        np.testing.assert_array_equal(usable, values)
        assert usable.flags.aligned and not any(step % array.itemsize for step in usable.strides)
        if how in ("F", "C", "strided", "reversed", "swapped", "read-only"):
            assert usable is array


@pytest.mark.parametrize("case", [case for case in CASES if "(k" in case or "(q" in case])
def test_stacks_whose_matrices_are_one(case):
    """Strides are 0, as NumPy's broadcasts have them."""

    def repeated(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values[:1], values.shape) if values.ndim > 2 else values

    def dense(values: np.ndarray) -> np.ndarray:
        return repeated(values).copy()

    for one, other in zip(*(results_of(case, "d", put) for put in (repeated, dense)), strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)


class WithoutOrder(np.ndarray):
    """Like PyTorch's: they are reshaped by rows alone."""

    def reshape(self, shape):
        return np.ndarray.reshape(self, shape).view(type(self))


@pytest.mark.parametrize("kind", [np.ndarray, WithoutOrder])
@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_by_columns(kind, order):
    array = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order).view(kind)
    line = by_columns(array, (24,))
    np.testing.assert_array_equal(line, np.arange(24.0).reshape(2, 3, 4).ravel(order="F"))
    if order == "F":
        assert np.shares_memory(line, array)
    again = by_columns(line, (2, 3, 4))
    np.testing.assert_array_equal(again, array)
    assert np.shares_memory(again, line)


@pytest.fixture
def numbas():
    """Makes Numba's arrays, which need no memory to be looked at."""
    if SIMULATED or why_unavailable():
        pytest.skip("the simulator has other arrays" if SIMULATED else str(why_unavailable()))
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    memory = SimpleNamespace()
    return lambda shape, strides: DeviceNDArray(shape, strides, np.dtype("d"), 7, memory)


def assert_view(view, array, shape, strides) -> None:
    assert (view.shape, view.strides, view.stream) == (shape, strides, 7)
    assert view.gpu_data is array.gpu_data


def test_numbas_elements_by_columns_are_views(numbas):
    """Its own transpose is a copy, by a kernel that it compiles at each call."""
    array = numbas((2, 3, 4), (8, 16, 48))
    line = by_columns(array, (24,))
    assert_view(line, array, (24,), (8,))
    assert_view(by_columns(line, (2, 3, 4)), array, (2, 3, 4), (8, 16, 48))
    assert_view(NUMBA.swap(array), array, (2, 4, 3), (8, 48, 16))


@pytest.mark.parametrize("step", [8, 16, -8])
def test_numbas_arrays_get_extents_of_one_whatever_their_strides(numbas, step):
    """For which Numba's own would copy, and does not."""
    vector = numbas((3,), (step,))
    assert_view(reshaped(vector, (3, 1)), vector, (3, 1), (step, 8))
    assert_view(reshaped(vector, (1, 3)), vector, (1, 3), (8, step))
    assert_view(reshaped(numbas((3, 1), (step, 24)), (3,)), vector, (3,), (step,))
    assert_view(reshaped(numbas((), ()), (1, 1)), vector, (1, 1), (8, 8))
    assert_view(reshaped(numbas((1, 1), (8, 8)), ()), vector, (), ())
    stack = numbas((2, 1, 3), (80, 8, step))
    assert_view(reshaped(stack, (2, 3)), vector, (2, 3), (80, step))
    assert_view(reshaped(stack, (2, 1, 3, 1)), vector, (2, 1, 3, 1), (80, 8, step, 8))
