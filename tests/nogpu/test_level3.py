"""gemm, trmm, trsm: arguments, results, errors; on the CPU and on a fake device."""

from __future__ import annotations

import logging
from itertools import product

import fake_device
import memory_spaces
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import backend_status, gemm, trmm, trsm
from pyblasgpu.errors import BackendUnavailable, OverlapError
from pyblasgpu.frontend import backend_status as host_backend
from pyblasgpu.testing import reference
from pyblasgpu.types import DTYPES

NAN = float("nan")
D, Z = DTYPES["d"], DTYPES["z"]
# ------------------------------------------------------------------------------------------------ results


def test_stacks_broadcast(memory_space, rng):
    a, b = reference.integers(rng, (3, 1, 4, 5), D), reference.integers(rng, (2, 5, 6), D)
    result = gemm(memory_space.put(a), memory_space.put(b), **memory_space.options)
    np.testing.assert_array_equal(memory_space.get(result), a @ b)
    out = memory_space.put(np.zeros((2, 3, 2, 4, 6)).swapaxes(0, 1))
    with pytest.raises(ValueError, match="out has shape"):
        gemm(memory_space.put(a), memory_space.put(b), out=out, **memory_space.options)
    out = memory_space.put(np.ones((6, 3, 2, 4, 6))[::2])
    gemm(memory_space.put(a), memory_space.put(b), beta=1, out=out, **memory_space.options)
    np.testing.assert_array_equal(memory_space.get(out), np.broadcast_to(a @ b + 1, (3, 3, 2, 4, 6)))


def test_repeated_and_reversed_inputs(memory_space, rng):
    a = np.broadcast_to(reference.integers(rng, (1, 10), D)[:, ::2], (4, 5))
    b = reference.integers(rng, (9, 12), D)[::-2, ::-3]
    np.testing.assert_array_equal(
        memory_space.get(gemm(memory_space.put(a), memory_space.put(b), **memory_space.options)), a @ b
    )


@pytest.mark.parametrize(
    ("orders", "expected"), [("CC", "C"), ("CF", "C"), ("FC", "C"), ("FF", "F")], ids=lambda value: value
)
def test_order_of_a_new_result(memory_space, orders, expected):
    a, b = (memory_space.put(np.ones((3, 3), order=order)) for order in orders)
    for routine in (gemm, trmm, trsm):
        strides = routine(a, b, **memory_space.options).strides
        assert strides == ((24, 8) if expected == "C" else (8, 24))


def test_mixed_dtypes_are_computed_in_their_common_one(memory_space):
    arrays = [np.array([[3]], dtype) for dtype in ("i4", "f2", "f4", "F", "?")]
    chars = [
        memory_space.get(gemm(memory_space.put(x), memory_space.put(y), **memory_space.options)).dtype.char
        for x, y in product(arrays, arrays)
    ]
    assert "".join(chars) == "dddDddffFddffFdDFFFDdddDd"


def test_read_only_inputs(memory_space):
    a = np.eye(3)
    a.flags.writeable = False
    np.testing.assert_array_equal(
        memory_space.get(gemm(memory_space.put(a), memory_space.put(a), **memory_space.options)), a
    )


def test_numbers_of_any_kind(memory_space):
    a = memory_space.put(np.eye(2))
    for number in (2, 2.0, np.float32(2), np.int8(2), np.array([2.0]), True + True):
        np.testing.assert_array_equal(
            memory_space.get(gemm(a, a, alpha=number, **memory_space.options)), 2 * np.eye(2)
        )


def test_lists_are_arrays():
    np.testing.assert_array_equal(gemm([[1, 2]], [[3], [4]], backend="cpu"), [[11.0]])


# ------------------------------------------------------------------------------------------------- errors


def call(routine, memory_space, *arrays, out=None, **options):
    """Call, expecting an error; nothing may be written."""
    before = None if out is None else out.copy()
    try:
        target = None if out is None else memory_space.put(out)
        routine(*map(memory_space.put, arrays), out=target, **options, **memory_space.options)
    finally:
        if out is not None:
            np.testing.assert_array_equal(out, before)


ONE = np.ones((3, 3))
COINCIDING = np.lib.stride_tricks.as_strided(np.ones(9), (3, 3), (8, 8))


@pytest.mark.parametrize(
    ("routine", "arrays", "options", "error", "message"),
    [
        (gemm, [ONE, np.ones((2, 3))], {}, ValueError, r"gemm: op\(a\) is 3 by 3 and op\(b\) 2 by 3"),
        (gemm, [ONE, np.ones(3)], {}, ValueError, r"b has shape \(3,\)"),
        (gemm, [ONE, ONE], {"trans_a": "X"}, ValueError, "trans_a='X'"),
        (gemm, [ONE, ONE], {"out": np.ones((3, 2))}, ValueError, r"out has shape \(3, 2\); \(3, 3\)"),
        (gemm, [ONE, ONE], {"out": np.ones((3, 3), "f4")}, TypeError, "out has dtype float32"),
        (gemm, [ONE, ONE], {"beta": 1}, ValueError, "beta=1 needs out"),
        (gemm, [ONE, ONE], {"alpha": 1j}, TypeError, "alpha=1j is complex"),
        (gemm, [ONE, ONE], {"out": ONE + 0, "beta": 1 + 0j}, TypeError, r"beta=\(1\+0j\) is complex"),
        (gemm, [ONE, ONE], {"alpha": "1"}, TypeError, "alpha must be a number"),
        (gemm, [ONE, ONE], {"out": ONE + 0, "method": "3m"}, ValueError, "method='3m' is for complex arrays"),
        (gemm, [1j * ONE, ONE], {"out": 1j * ONE, "method": "4M"}, ValueError, "method='4M' is none of '3m'"),
        (gemm, [ONE, ONE.astype("longdouble")], {}, TypeError, "gemm: dtype"),
        (gemm, [np.ones((2, 3, 3)), np.ones((3, 3, 3))], {}, ValueError, "do not broadcast"),
        (gemm, [ONE, ONE], {"out": COINCIDING}, ValueError, "coincide"),
        (trmm, [np.ones((2, 3)), ONE], {}, ValueError, r"a has shape \(2, 3\); \(3, 3\)"),
        (trsm, [np.ones((4, 4)), ONE], {"side": "R"}, ValueError, "side R of b"),
        (trsm, [ONE, ONE], {"trans": 3}, ValueError, "trans=3"),
        (trsm, [ONE, ONE], {"unit_diag": "x"}, ValueError, "unit_diag='x'"),
        (trsm, [ONE, ONE], {"lower": "x"}, ValueError, "lower='x'"),
        (trsm, [ONE, ONE], {"out": np.ones((3, 3), "D")}, TypeError, "out has dtype complex128"),
    ],
)
def test_errors_before_anything_is_written(memory_space, routine, arrays, options, error, message):
    with pytest.raises(error, match=message):
        call(routine, memory_space, *arrays, **options)


def test_overlap_is_refused(memory_space):
    memory = np.ones((6, 6))
    a, b = memory[:3, :3], memory[2:5, :3]
    for routine, out in [
        (gemm, a),
        (gemm, b),
        (trmm, a),
        (trsm, a),
        (trmm, b[:, ::-1]),
        (trsm, memory[1:4, :3]),
    ]:
        with pytest.raises(OverlapError, match=f"{routine.__name__}: out shares memory with [ab]"):
            call(routine, memory_space, a, b, out=out)
    same = memory[:3, 3:]
    with pytest.raises(OverlapError, match="out shares memory with a"):
        call(trsm, memory_space, same, same, out=same)


def test_neighbours_are_no_overlap(memory_space, rng):
    memory = reference.integers(rng, (8, 8), D)
    a, b, c = memory[:4:2, :2].copy(), memory[::2, ::2][:2], memory[::2, 1::2][:2]
    expected = a @ b
    gemm(memory_space.put(a), memory_space.put(b), out=memory_space.put(c), **memory_space.options)
    np.testing.assert_array_equal(c, expected)


def test_in_place_needs_no_identity(memory_space):
    b = np.ones((2, 2))
    trsm(
        memory_space.put(2 * np.eye(2)),
        memory_space.put(b),
        out=memory_space.put(b[:]),
        **memory_space.options,
    )
    np.testing.assert_array_equal(b, np.full((2, 2), 0.5))


def test_read_only_output(memory_space):
    out = np.zeros((3, 3))
    out.flags.writeable = False
    if memory_space is not memory_spaces.Device:
        with pytest.raises(ValueError, match="out is read-only"):
            gemm(ONE, ONE, out=out, **memory_space.options)


def test_what_cannot_be_an_output():
    with pytest.raises(TypeError, match="out must be an array"):
        gemm(np.eye(1), np.eye(1), out=np.float64(0), backend="cpu")


class Immutable:
    """Host memory that its library exports to be read only."""

    def __init__(self, host):
        self.host, self.dtype = host.view(), host.dtype
        self.host.flags.writeable = False

    def __dlpack__(self, **options):
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.host.__dlpack_device__()


def test_immutable_arrays_are_inputs_and_no_outputs():
    a = Immutable(ONE)
    np.testing.assert_array_equal(gemm(a, a, backend="cpu"), 3 * ONE)
    with pytest.raises(TypeError, match="out is read-only"):
        gemm(a, a, out=Immutable(ONE), backend="cpu")


def test_mixed_libraries_and_devices(fake):
    with pytest.raises(TypeError, match="a is a NumPy array and b a CuPy array"):
        gemm(ONE, fake_device.Array(ONE))
    with pytest.raises(ValueError, match="a is on device 0 and b on device 1"):
        gemm(fake_device.Array(ONE), fake_device.Array(ONE, device=1))


def test_misaligned_device_memory(fake):
    off = fake_device.Array(np.zeros(73, np.uint8)[1:].view("f8").reshape(3, 3))
    with pytest.raises(ValueError, match="b is not aligned to its float64"):
        gemm(fake_device.Array(ONE), off)


# ------------------------------------------------------------------------------------ streams and backends


def test_the_stream(fake):
    a, out = fake_device.Array(ONE), fake_device.Array(ONE.copy())
    gemm(a, a, out=out)
    gemm(a, a, out=out, stream=11)
    trsm(a, a, out=out, stream=12)
    assert fake[0].calls == [("gemm", 7, 1), ("gemm", 11, 1), ("trsm", 12, 1)]


def test_repeated_matrices_are_copied_to_the_device_once(fake):
    a, b = np.broadcast_to(ONE, (50, 3, 3)), np.ones((50, 3, 3))
    gemm(a, b, backend="cuda")
    assert fake[1].copied == 9 + 450 and fake[0].calls == [("gemm", 0, 50)]


def test_staged_memory_is_released_when_the_run_fails(fake, monkeypatch):
    monkeypatch.setattr(fake[0], "gemm", lambda *_, **flags: 1 / 0)
    out = ONE.copy()
    with pytest.raises(ZeroDivisionError):
        gemm(ONE, ONE, out=out, backend="cuda")
    assert not fake[1].held and (out == 1).all()


def test_empty_results_touch_no_device(fake):
    gemm(np.ones((0, 3)), ONE, backend="cuda")
    gemm(fake_device.Array(np.ones((0, 3))), fake_device.Array(ONE))
    assert not fake[0].calls


def test_device_arrays_have_no_other_backend(fake):
    a, out = fake_device.Array(ONE), fake_device.Array(0 * ONE)
    for repeated in range(3):
        with pytest.raises(ValueError, match="gemm: backend='cpu' is for host arrays"):
            gemm(a, a, out=out, backend="cpu")
        assert (out.host == 0).all() or repeated
        gemm(a, a, out=out)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_handle_of_device_arrays_waits_for_their_stream(fake, blocking):
    waited = []
    fake[1].synchronize = waited.append
    a, out = fake_device.Array(ONE), fake_device.Array(0 * ONE)
    result = gemm(a, a, out=out, stream=5, blocking=blocking)
    assert (result if blocking else result.wait(60)) is out
    np.testing.assert_array_equal(out.host, ONE @ ONE)
    assert waited == ([] if blocking else [5])


@pytest.fixture(params=[BackendUnavailable, ImportError])
def no_device(request, monkeypatch):
    def current(ordinal):
        raise request.param("no driver")

    monkeypatch.setattr("pyblasgpu.gpu.device.current", current)
    host_backend.why_no_device.cache_clear()
    yield
    host_backend.why_no_device.cache_clear()


def test_without_a_device(no_device, monkeypatch, caplog):
    monkeypatch.delenv("PYBLASGPU_BACKEND", raising=False)
    with caplog.at_level(logging.INFO, "pyblasgpu"):
        for _ in range(3):
            gemm(ONE, ONE)
    assert [record.message for record in caplog.records] == [
        "NumPy arrays are computed by SciPy's BLAS on the CPU: no driver"
    ]
    assert backend_status() == ("cpu", "no driver")
    with pytest.raises(BackendUnavailable, match="no driver"):
        gemm(ONE, ONE, backend="cuda")
    with pytest.raises(BackendUnavailable, match="NUMBA_ENABLE_CUDASIM"):
        gemm(ONE, ONE, backend="sim")


def test_the_environment_sends_host_arrays(fake, monkeypatch):
    assert backend_status().backend == "cuda"
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    assert backend_status() == ("cpu", "set by PYBLASGPU_BACKEND")
    assert backend_status("cuda").backend == "cuda"
    monkeypatch.setenv("PYBLASGPU_BACKEND", "gpu")
    with pytest.raises(ValueError, match=r"backend='gpu' \(set by PYBLASGPU_BACKEND\) is none of"):
        gemm(ONE, ONE)


def test_sim_is_the_cuda_path(fake, monkeypatch):
    monkeypatch.setattr("pyblasgpu.gpu.backend.SIMULATED", True)
    np.testing.assert_array_equal(gemm(ONE, ONE, backend="sim"), 3 * ONE)
    assert fake[0].calls == [("gemm", 0, 1)]


# -------------------------------------------------------------------------------------------------- others


def test_public_names():
    assert set(pyblasgpu.__all__) <= set(dir(pyblasgpu))
    assert all(getattr(pyblasgpu, name) is not None for name in pyblasgpu.__all__)
    with pytest.raises(AttributeError, match="no attribute 'gbmv'"):
        pyblasgpu.gbmv  # noqa: B018
