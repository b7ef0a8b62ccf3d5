"""`DeviceIntegers`: numbers that are read when somebody asks for them."""

from __future__ import annotations

import copy
import pickle
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from pyblasgpu.frontend.arrays import device_integers
from pyblasgpu.frontend.arrays.device_integers import DeviceIntegers
from pyblasgpu.frontend.arrays.layouts import Layout
from pyblasgpu.types import DTYPES


@pytest.fixture
def reads(monkeypatch):
    """Device memory that holds 1, 2, 3, ... in the first four bytes of each element; who has read it."""
    seen: list[int] = []

    def to_host(array, address, stream):
        seen.append(stream)
        whole = array.view(np.int32)
        whole[:] = -1
        whole[:: array.itemsize // 4] = np.arange(1, array.size + 1)

    monkeypatch.setitem(sys.modules, "pyblasgpu.gpu.memory", SimpleNamespace(to_host=to_host))
    contexts = SimpleNamespace(current_context=lambda device: nullcontext())
    monkeypatch.setattr(device_integers, "contexts", lambda: contexts)
    return seen


def made(shape, letter="d", single=True, stream=7) -> DeviceIntegers:
    strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    return DeviceIntegers(Layout(4096, shape, strides, DTYPES[letter], 0), single, stream)


@pytest.mark.parametrize("letter", DTYPES)
def test_one_number(letter, reads):
    info = made((1, 1), letter)
    assert info.shape == () and info.ndim == 0 and info.size == 1 and "int32" in repr(info)
    assert not reads
    assert int(info) == 1 and info == 1 and info > 0 and info != 2 and not info <= 0 and bool(info)
    assert reads and set(reads) == {7}
    assert [10, 20][info] == 20  # as an index
    assert np.asarray(info).dtype == np.int32 and np.add(info, 1) == 2
    np.testing.assert_array_equal(info == [1, 2], [True, False])
    assert info >= 1 and not info >= 2 and info < 2 and not info < 1
    assert np.asarray(info, dtype="f8").dtype == np.float64
    with pytest.raises(ValueError, match="cannot be read without a copy"):
        info.__array__(copy=False)
    with pytest.raises(TypeError):
        hash(info)


def test_one_a_matrix(reads):
    info = made((2, 3, 1, 1), "s")
    assert info.shape == (2, 3) and len(info) == 2
    np.testing.assert_array_equal(info.numpy(), [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(info > 2, [[False, False, True], [True, True, True]])
    assert info[1, 0] == 4 and [row.tolist() for row in info] == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ValueError, match="size 1"):
        int(info)


def test_several_a_matrix(reads):
    pivots = made((4, 1), "z", single=False)
    assert pivots.shape == (4,)
    np.testing.assert_array_equal(pivots, [1, 2, 3, 4])


@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 1, 1)])
def test_another_process_gets_the_numbers(reads, shape):
    """Their address is another memory there."""
    info = made(shape)
    sent = pickle.loads(pickle.dumps(info))  # noqa: S301
    assert type(sent) is np.ndarray and sent.dtype == np.int32
    np.testing.assert_array_equal(sent, info.numpy())


def test_a_copy_lies_where_they_lie(reads):
    info = made((2, 1, 1))
    assert copy.copy(info) is info and copy.deepcopy([info])[0] is info and not reads


def test_the_cuda_array_interface():
    facts = made((2, 3, 1, 1), "z", stream=0).__cuda_array_interface__
    assert facts["shape"] == (2, 3) and facts["strides"] == (48, 16) and facts["typestr"] == "<i4"
    assert facts["data"] == (4096, False) and facts["stream"] == 1
