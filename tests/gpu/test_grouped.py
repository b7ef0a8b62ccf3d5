"""gemm_grouped on a device: exact on integers, in few launches, captured, on a stream, and repeated."""

from __future__ import annotations

from typing import Any

import grouped_cases
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.errors import OverlapError
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .running import cupy


def on_card(arrays):
    """Views of one array on the device, as the arrays are of one in host memory."""
    memory = arrays[0].base
    while memory.base is not None:
        memory = memory.base
    device, start = cupy.asarray(memory), memory.ctypes.data
    return [
        cupy.ndarray(each.shape, each.dtype, device.data + (each.ctypes.data - start), each.strides)
        for each in arrays
    ]


def grouped(a, b, **options) -> list[Any]:
    """The results, as arrays of the library that they are of."""
    results: list[Any] = pyblasgpu.gemm_grouped(a, b, **options)
    return results


def ragged(rng, count, most, dtype):
    """Factors of random sizes, their layouts mixed."""
    sizes = rng.integers(0, most, (count, 3)).tolist()
    a = [np.array(integers(rng, (m, k), dtype), order=rng.choice(["C", "F"])) for m, _, k in sizes]
    b = [np.array(integers(rng, (k, n), dtype), order=rng.choice(["C", "F"])) for _, n, k in sizes]
    return a, b


@pytest.mark.parametrize("letter", DTYPES)
def test_layouts_flags_and_scalars_of_each(letter):
    for _ in range(2):  # a library's arrays may be unknown to the first call
        made = grouped_cases.products(DTYPES[letter])
        arrays = on_card([*made.a, *made.b, *made.options["out"]])
        count = len(made.a)
        options = {**made.options, "out": arrays[2 * count :]}
        results = grouped(arrays[:count], arrays[count : 2 * count], **options)
        for result, expected in zip(results, made.expected, strict=True):
            np.testing.assert_array_equal(result.get(), expected)


@pytest.mark.parametrize(("count", "most"), [(1000, 40), (60, 300), (3, 1500)])
@pytest.mark.parametrize("letter", DTYPES)
def test_random_sizes(letter, count, most):
    a, b = ragged(np.random.default_rng(count), count, most, DTYPES[letter])
    results = grouped([*map(cupy.asarray, a)], [*map(cupy.asarray, b)], alpha=2)
    for result, x, y in zip(results, a, b, strict=True):
        np.testing.assert_array_equal(result.get(), 2 * (x @ y))


def test_tables_follow_one_another_on_a_stream():
    """A table is not changed before the device has read it."""
    rng, calls = np.random.default_rng(1), []
    stream = cupy.cuda.Stream(non_blocking=True)
    lists = [ragged(rng, 30, 200, DTYPES["d"]) for _ in range(20)]
    placed = [([*map(cupy.asarray, a)], [*map(cupy.asarray, b)]) for a, b in lists]
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        calls = [grouped(a, b) for a, b in placed]
    stream.synchronize()
    for results, (a, b) in zip(calls, lists, strict=True):
        for result, x, y in zip(results, a, b, strict=True):
            np.testing.assert_array_equal(result.get(), x @ y)


def test_a_captured_call_is_replayed():
    a, b = ragged(np.random.default_rng(2), 20, 100, DTYPES["s"])
    left, right = [*map(cupy.asarray, a)], [*map(cupy.asarray, b)]
    out = grouped(left, right)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        stream.begin_capture()
        grouped(left, right, out=out)
        graph = stream.end_capture()
        for other in left:
            other *= 2
        for _ in range(3):
            graph.launch(stream)
    stream.synchronize()
    for result, x, y in zip(out, a, b, strict=True):
        np.testing.assert_array_equal(result.get(), 2 * (x @ y))


def test_overlap_changes_nothing():
    memory = cupy.zeros(64)
    ones = [cupy.ones((2, 2))] * 2
    with pytest.raises(OverlapError, match=r"gemm_grouped: out\[[01]\] shares memory with out\[[01]\]"):
        grouped(ones, ones, out=[memory[:4].reshape(2, 2), memory[3:7].reshape(2, 2)])
    assert not memory.any()


def test_tensors():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no device")
    rng = np.random.default_rng(3)
    a, b = ragged(rng, 40, 60, DTYPES["s"])
    left, right = ([torch.from_numpy(x).cuda() for x in each] for each in (a, b))
    for _ in range(2):
        results = grouped(left, right)
    versions = [result._version for result in results]
    grouped(left, right, beta=1, out=results)
    for result, x, y, version in zip(results, a, b, versions, strict=True):
        np.testing.assert_array_equal(result.cpu().numpy(), 2 * (x @ y))
        assert result._version > version or 0 in result.shape
