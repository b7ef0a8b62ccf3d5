"""Lists of matrices of unequal sizes on a device: exact on integers, captured, on a stream, repeated."""

from __future__ import annotations

from typing import Any

import grouped_cases
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.errors import OverlapError
from pyblasgpu.testing.reference import integers, reals
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
    for _ in range(4):  # a library's arrays may be unknown to the first call, and others are repeated
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


# ------------------------------------------------------------------------------------------------ triangles


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_systems_of_unequal_sizes(letter, in_place):
    for _ in range(4):
        made = grouped_cases.systems(DTYPES[letter])
        arrays, count = on_card([*made.a, *made.b]), len(made.a)
        a, b = arrays[:count], arrays[count:]
        options: dict[str, Any] = made.options
        results: list[Any] = pyblasgpu.trsm_grouped(a, b, out=b if in_place else None, **options)
        for result, expected in zip(results, made.expected, strict=True):
            np.testing.assert_allclose(result.get(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("letter", DTYPES)
def test_factors_of_unequal_sizes(letter):
    for _ in range(4):
        matrices, lower, factors = grouped_cases.definite(DTYPES[letter])
        a: list[Any] = on_card(matrices)
        results, info = pyblasgpu.potrf_grouped(a, lower=lower, out=a)
        assert info.get().tolist() == [int(i == grouped_cases.FAILED) for i in range(len(a))]
        for i, (result, factor) in enumerate(zip(results, factors, strict=True)):
            if i != grouped_cases.FAILED:
                np.testing.assert_allclose(result.get(), factor, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("letter", DTYPES)
def test_random_factors_and_solutions(letter):
    """Orders that are rounded up, and those of calls of their own."""
    rng, dtype = np.random.default_rng(5), DTYPES[letter]
    tolerance = 2e-3 if dtype.real_size == 4 else 1e-10
    matrices, right = [], []
    for n in [*rng.integers(1, 200, 60).tolist(), 512, 513, 700]:
        g = reals(rng, (n, n), dtype)
        matrices.append((g @ g.T.conj() + n * np.eye(n)).astype(dtype.name))
        right.append(reals(rng, (n, int(rng.integers(1, 20))), dtype))
    a: list[Any] = [*map(cupy.asarray, matrices)]
    b: list[Any] = [*map(cupy.asarray, right)]
    c, info = pyblasgpu.potrf_grouped(a, lower=True)
    assert not info.get().any()
    x = pyblasgpu.trsm_grouped(c, b, lower=True)
    x = pyblasgpu.trsm_grouped(c, x, lower=True, trans="C", out=x)
    for matrix, rhs, solution in zip(matrices, right, x, strict=True):
        np.testing.assert_allclose(matrix @ solution.get(), rhs, rtol=tolerance, atol=tolerance)


def test_the_first_pivot_that_fails():
    places = [(n, k) for n in (5, 40, 130, 600) for k in (0, 3, n - 1)]
    a: list[Any] = [cupy.diag(cupy.asarray([1.0] * k + [-1.0] + [1.0] * (n - k - 1))) for n, k in places]
    _, info = pyblasgpu.potrf_grouped(a)
    assert info.get().tolist() == [k + 1 for _, k in places]
