from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
from fake_routines import elements
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu.errors import DtypeError
from pyblasgpu.frontend.arrays import libraries, protocols
from pyblasgpu.frontend.arrays.any_array import (
    can_be_output,
    common_dtype,
    common_library,
    library_of,
    stored_dtype,
)
from pyblasgpu.frontend.arrays.layouts import (
    Layout,
    MisalignedError,
    batches,
    check_alignment,
    element_strides,
    is_column_major,
    is_injective,
    shares_memory,
)
from pyblasgpu.frontend.arrays.pytorch import TORCH
from pyblasgpu.types import DTYPES, Trans

D = DTYPES["d"]


def layout_of(array: np.ndarray) -> Layout:
    strides = tuple(step // array.itemsize for step in array.strides)
    return Layout(array.ctypes.data, array.shape, strides, D, 0)


# ------------------------------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize(
    ("names", "letter"),
    [
        (["f4"], "s"),
        (["f8"], "d"),
        (["F"], "c"),
        (["D"], "z"),
        (["i8"], "d"),
        (["?"], "d"),
        (["u1"], "d"),
        (["f2"], "s"),
        (["f2", "F"], "c"),
        (["f4", "f8"], "d"),
        (["f8", "F"], "z"),
        (["i4", "f4"], "d"),
        ([">f8"], "d"),
        (["f4", ">f4"], "s"),
    ],
)
def test_common_dtype(names, letter):
    assert common_dtype("gemm", [np.dtype(name) for name in names]) is DTYPES[letter]


@pytest.mark.parametrize("name", ["longdouble", "clongdouble", "O", "U3", "M8[s]"])
def test_dtypes_that_would_lose_something(name):
    with pytest.raises(DtypeError, match=r"gemm: dtype .* cannot be cast to float\(32, 64\)") as raised:
        common_dtype("gemm", [np.dtype("f8"), np.dtype(name)])
    assert isinstance(raised.value, TypeError) and isinstance(raised.value, ValueError)  # SciPy has both


def test_stored_dtype():
    assert stored_dtype(np.dtype("F")) is DTYPES["c"]
    assert stored_dtype(np.dtype(">f8")) is stored_dtype(np.dtype("i8")) is None


# ---------------------------------------------------------------------------------------------- libraries


class FakeTensor:
    """A tensor on the device: what pyblasgpu reads of PyTorch's."""

    requires_grad, is_cuda, device = False, True, SimpleNamespace(type="cuda")
    dtype, shape = "torch.complex64", (2, 3)

    def __init__(self, conj=False, neg=False):
        self.conj, self.neg = conj, neg

    def is_conj(self):
        return self.conj

    def is_neg(self):
        return self.neg

    def resolve_neg(self):
        return FakeTensor(self.conj)

    def data_ptr(self):
        return 4096

    def stride(self):
        return (1, 2)

    def get_device(self):
        return 1


FakeTensor.__module__ = "torch"


def no_memory():
    raise RuntimeError("no memory")


class Exporter:
    """Host memory through DLPack alone."""

    def __init__(self, host):
        self.host = host

    def __dlpack__(self, **options):
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.host.__dlpack_device__()


def test_libraries_are_told_apart():
    names = {library_of(x).name for x in (np.ones(2), [1], 1.0, np.float32(1))}
    assert names == {"NumPy"}
    assert library_of(fake_device.Array(np.ones(2))).name == "CuPy"
    assert library_of(FakeTensor()).name == "PyTorch"
    assert library_of(Exporter(np.ones(2))).name.endswith("Exporter (host)")


def test_a_tensor_on_the_host_or_with_a_gradient():
    tensor = FakeTensor()
    tensor.is_cuda, tensor.device = False, SimpleNamespace(type="cpu")
    assert library_of(tensor).host
    tensor.device = SimpleNamespace(type="mps")
    with pytest.raises(TypeError, match="neither on CUDA"):
        library_of(tensor)
    tensor.requires_grad = True
    with pytest.raises(TypeError, match="detach"):
        library_of(tensor)


@pytest.mark.parametrize("value", ["text", {1: 2}, None, object(), np.ma.ones(2)])
def test_what_is_no_array(value):
    with pytest.raises(TypeError, match="array"):
        library_of(value)


def test_mixed_libraries_are_refused():
    with pytest.raises(TypeError, match="gemm: a is a NumPy array and out a CuPy array"):
        common_library("gemm", ("a", "b", "out"), (np.ones(2), [1], fake_device.Array(np.ones(2))))


def test_layout_of_a_cupy_array():
    host = np.zeros((3, 4, 5))[:, ::2]
    layout = libraries.CUPY.layout(fake_device.Array(host, device=2), D, None)
    assert layout[:5] == (host.ctypes.data, (3, 2, 5), (20, 10, 1), D, 2)


def test_a_lazily_conjugated_tensor_is_no_output():
    assert can_be_output(FakeTensor(), DTYPES["c"])
    assert not can_be_output(FakeTensor(conj=True), DTYPES["c"])


def test_layout_of_a_lazily_conjugated_tensor():
    layout = TORCH.layout(FakeTensor(conj=True), DTYPES["c"], None)
    assert layout[:7] == (4096, (2, 3), (1, 2), DTYPES["c"], 1, True, True)


@pytest.mark.parametrize("quick", [True, False])
def test_the_current_stream_of_pytorch(pytorch, quick):
    streams = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=10 + device))
    raw = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 20 + device) if quick else object()
    pytorch(SimpleNamespace(cuda=streams, _C=raw))
    assert TORCH.current_stream(3) == (23 if quick else 13)


@pytest.mark.parametrize("stream", [0, 7])
def test_the_stream_that_pytorch_casts_on(pytorch, monkeypatch, stream):
    """`ExternalStream(0)` of PyTorch is one of its own streams."""
    used = []
    cuda = SimpleNamespace(
        ExternalStream=lambda address, device: address or "another",
        default_stream=lambda device: 0,
        stream=lambda stream: nullcontext(used.append(stream)),
        current_device=lambda: 1,
    )
    pytorch(
        SimpleNamespace(
            cuda=cuda,
            _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: stream),
            device=lambda *device: device,
            complex64="torch.complex64",
            empty=lambda shape, dtype, device: FakeTensor(),
        )
    )
    monkeypatch.setattr(FakeTensor, "element_size", lambda tensor: 8, raising=False)
    monkeypatch.setattr(FakeTensor, "to", lambda tensor, dtype: tensor, raising=False)
    TORCH.copied(FakeTensor(), DTYPES["c"], None)
    TORCH.copied(FakeTensor(), DTYPES["c"], stream)
    TORCH.empty((2, 3), DTYPES["c"], 1, stream)
    assert used == [stream] * 3


@pytest.mark.parametrize("is_older", [False, True])
def test_a_stream_as_cupys(is_older):
    """Before CuPy 14 its streams had no `from_external`."""
    stream = SimpleNamespace() if is_older else SimpleNamespace(from_external=lambda each: each)
    cuda = SimpleNamespace(Stream=stream, ExternalStream=lambda handle, device: (device, handle))
    actual = libraries.cupy_stream(cuda, 2, 7)
    assert actual == (2, 7) if is_older else actual.__cuda_stream__() == (0, 7)


def test_what_is_read_of_tensors():
    plain, conjugated = FakeTensor(), FakeTensor(conj=True)
    facts, pointers = TORCH.read((plain, conjugated))
    assert facts == [((2, 3), (1, 2), "torch.complex64", 1, conj) for conj in (False, True)]
    assert pointers == [4096, 4096]
    for change in ({"is_cuda": False}, {"requires_grad": True}, {"neg": True}):
        other = FakeTensor()
        other.__dict__.update(change)
        assert TORCH.read((plain, other)) is None
    assert TORCH.read((plain, fake_device.Array(np.ones(2)))) is None
    for missing in ("stride", "data_ptr"):
        without = FakeTensor()
        setattr(without, missing, no_memory)
        assert TORCH.read((plain, without)) is TORCH.read((without, plain)) is None


@pytest.mark.parametrize("position", range(3))
def test_a_tensor_that_is_changed_in_place_is_seen(position):
    tensors = [FakeTensor() for _ in range(3)]
    before = TORCH.state(*tensors)
    assert TORCH.state(*tensors) == before
    for name, value in (("shape", (3, 2)), ("stride", lambda: (3, 1)), ("data_ptr", lambda: 8192)):
        tensors[position].__dict__[name] = value
        assert TORCH.state(*tensors) != before
        del tensors[position].__dict__[name]


def test_a_lazily_negated_tensor_is_resolved_and_no_output():
    layout = TORCH.layout(FakeTensor(neg=True), DTYPES["c"], None)
    assert not layout.owner.neg and not layout.writable


@pytest.mark.parametrize("strides", [None, (1, 2)])
def test_protocols_are_parsed_by_cuda_core(monkeypatch, strides):
    view = SimpleNamespace(ptr=64, shape=(2, 3), strides=strides, device_id=0, readonly=True)
    seen = []

    class StridedMemoryView:
        @staticmethod
        def from_any_interface(array, stream_ptr):
            seen.append(stream_ptr)
            return view

    monkeypatch.setitem(sys.modules, "cuda.core.utils", SimpleNamespace(StridedMemoryView=StridedMemoryView))
    fake_device.without_contexts(monkeypatch)
    libraries.module.cache_clear()
    array = SimpleNamespace(__dlpack_device__=lambda: (2, 0))
    layouts = protocols.NUMBA.layout(array, D, 9), protocols.NUMBA.layout(array, D, None)
    libraries.module.cache_clear()
    assert layouts[0][:5] == (64, (2, 3), strides or (3, 1), D, 0) and not layouts[0].writable
    assert layouts[0].owner is view and seen == [9, 1]


# ------------------------------------------------------------------------------------------------ layouts


@st.composite
def views(draw, dimensions=(2, 4)):
    """Views of one array: slices, transposes, repetitions."""
    shape = draw(st.lists(st.integers(1, 3), min_size=dimensions[0], max_size=dimensions[1]))
    view = MEMORY[: np.prod(shape)].reshape(shape)
    steps = draw(st.tuples(*[st.sampled_from([1, -1, 2])] * len(shape)))
    view = view[tuple(slice(None, None, step) for step in steps)]
    return view.transpose(draw(st.permutations(range(len(shape)))))


MEMORY = np.arange(81.0)


@given(views())
def test_slices_and_transposes_are_injective(view):
    assert is_injective(view) and is_injective(layout_of(view))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_arrays_without_elements_are_injective(shape):
    empty = np.zeros(shape)  # NumPy's strides are 0 here
    assert is_injective(empty) and is_injective(layout_of(empty))


def test_repeated_elements_are_not_injective():
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(9), 3)
    for view in (windows, np.broadcast_to(np.zeros(3), (2, 3))):
        assert not is_injective(view) and not is_injective(layout_of(view))


@pytest.mark.parametrize(("step", "expected"), [(4, False), (7, False), (8, True), (9, True), (-7, False)])
def test_elements_that_share_bytes_are_not_injective(step, expected):
    view = np.ndarray((3,), "f8", bytearray(64), 16, (step,))
    assert is_injective(view) == is_injective(view[:, None]) == expected


def test_addresses_of_arrays_without_elements_do_not_count():
    check_alignment(4097, (0, 3), D)
    assert element_strides(4097, (3, 0), (9, 9), D) == (1, 1)
    with pytest.raises(MisalignedError, match="is not aligned to its float64"):
        check_alignment(4097, (1, 3), D)


@given(views(), views())
def test_shares_memory_is_exact(x, y):
    expected = np.shares_memory(x, y)
    assert shares_memory(x, y) == shares_memory(layout_of(x), layout_of(y)) == expected


def test_where_the_search_grows_too_long_memory_is_shared():
    x = Layout(4096, (14, 11, 8, 16), (566, 471, 1450, 90), D, 0)
    y = Layout(4096 + 18 * 8, (15, 14, 12, 8), (1861, 668, 1006, 1898), D, 0)
    with pytest.raises(np.exceptions.TooHardError):
        np.shares_memory(x, y, max_work=10_000)
    assert shares_memory(x, y)


def test_other_devices_share_nothing():
    x = layout_of(MEMORY.reshape(9, 9))
    assert shares_memory(x, x) and not shares_memory(x, x._replace(device=1))


@given(views(), st.sampled_from(Trans))
def test_op(view, trans):
    layout = layout_of(view)._replace(dtype=D)
    expected = view if trans is Trans.NO else view.swapaxes(-1, -2)
    actual = layout.op(trans)
    assert (actual.shape, actual.strides) == layout_of(expected)[1:3] and not actual.conj


def test_conjugate_transpose_of_a_complex_layout():
    layout = Layout(0, (2, 3), (3, 1), DTYPES["z"], 0)
    assert layout.op(Trans.CONJ).conj and not layout.op(Trans.CONJ).op(Trans.CONJ).conj
    assert not layout.op(Trans.TRANS).conj


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((2, 3)), False),
        (np.zeros((2, 3), order="F"), True),
        (np.zeros((3, 2)).T[:, ::2], True),
        (np.zeros((2, 1)), False),
        (np.zeros((1, 2), order="F"), False),
        (np.zeros((4, 3), order="F")[:, :1], False),
        (np.zeros((4, 3), order="F")[:1], False),
    ],
)
def test_is_column_major(array, expected):
    assert is_column_major(array) == is_column_major(layout_of(array)) == expected


@given(st.lists(st.integers(0, 3), max_size=3), st.data())
def test_batches_visit_every_matrix_once(batch_shape, data):
    """Each product written is that of the inputs that broadcasting puts there."""
    pad = [data.draw(st.integers(0, len(batch_shape))) for _ in range(2)]
    inputs = []
    for skip in pad:
        shape = [data.draw(st.sampled_from([extent, 1])) if extent else 0 for extent in batch_shape[skip:]]
        inputs.append(np.random.default_rng(1).integers(1, 99, (*shape, 2, 2)).astype(float))
    axes = data.draw(st.permutations(range(len(batch_shape))))
    out = np.zeros([batch_shape[axis] for axis in axes] + [2, 2]).transpose(*np.argsort(axes), -2, -1)
    for a, b, c in batches(tuple(map(layout_of, (*inputs, out)))):
        elements(c)[...] += elements(a) * 100 + elements(b)
    np.testing.assert_array_equal(out, np.broadcast_to(inputs[0] * 100 + inputs[1], out.shape))


def test_contiguous_stacks_are_one_batch():
    stack, one = np.zeros((4, 5, 2, 3)), np.zeros((2, 3))
    assert [c.batch for _, c in batches((layout_of(one), layout_of(stack)))] == [20]
    assert [c.batch for _, c in batches((layout_of(one), layout_of(stack[:, ::2])))] == [4] * 3
