"""Streams of another device than the arrays' are refused by name, before anything is enqueued."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from fake_device import Array

import pyblasgpu
from pyblasgpu import plan_gemm
from pyblasgpu.frontend.arrays.streams import device_for, stream_of, stream_pointer

HERE, THERE = 0x5000, 0x5001  # streams of devices 0 and 1


@pytest.mark.parametrize(
    ("stream", "pointer"),
    [
        (None, None),
        (0, 0),
        (5, 5),
        (np.int64(5), 5),
        (np.uint64(2**63), 2**63),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 6)), 6),
        (SimpleNamespace(ptr=7), 7),
        (SimpleNamespace(cuda_stream=8), 8),
        (SimpleNamespace(handle=9), 9),
        (SimpleNamespace(handle=ctypes.c_void_p(10)), 10),
        (SimpleNamespace(handle=ctypes.c_void_p(None)), 0),
    ],
)
def test_stream_pointer(stream, pointer):
    assert stream_pointer(stream) == pointer


@pytest.mark.parametrize("stream", ["main", 1.0, [3]])
def test_what_is_no_stream(stream):
    with pytest.raises(TypeError, match="stream must be"):
        stream_pointer(stream)


def objects(pointer: int, device: int) -> list:
    """A stream as the libraries have it."""
    return [
        pointer,
        np.uint64(pointer),
        SimpleNamespace(ptr=pointer, device_id=device),
        SimpleNamespace(cuda_stream=pointer, device_index=device),
        SimpleNamespace(handle=ctypes.c_void_p(pointer)),
        SimpleNamespace(__cuda_stream__=lambda: (0, pointer)),
    ]


def square(device=1) -> Array:
    return Array(np.ones((8, 8)), device)


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("current", [None, 0, 1])
def test_a_stream_of_another_device_is_named(driver, current, kind):
    """In the first call, in those that are repeated, by a plan, and in every call of one."""
    driver.begin(current)
    right, wrong = objects(THERE, 1)[kind], objects(HERE, 0)[kind]
    a, b, out = square(), square(), square()
    plan = plan_gemm(a, b, out, stream=right)
    for _ in range(3):
        pyblasgpu.gemm(a, b, out=out, stream=right)
        pyblasgpu.trsm(a, out, out=out, stream=right)
        plan(a, b, out)
    assert set(driver.launches) == {(1, THERE)}
    driver.launches.clear()
    message = "stream 0x5000 belongs to device 0, and the arrays are on device 1"
    for name, call in (
        ("gemm", lambda: pyblasgpu.gemm(a, b, out=out, stream=wrong)),
        ("gemm", lambda: pyblasgpu.gemm(a, b, stream=wrong)),
        ("trsm", lambda: pyblasgpu.trsm(a, out, out=out, stream=wrong)),
        ("trmm", lambda: pyblasgpu.trmm(a, b, stream=wrong)),
        ("syrk", lambda: pyblasgpu.syrk(a, stream=wrong)),
        ("plan_gemm", lambda: plan_gemm(a, b, out, stream=wrong)),
        ("plan_gemm", lambda: plan(a, b, out, stream=wrong)),
    ):
        with pytest.raises(ValueError, match=f"{name}: {message}"):
            call()
    assert not driver.launches and driver.current == current
    assert driver.made["cuMemAllocFromPoolAsync"] == 0, "memory was asked for"


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_default_streams_are_those_of_the_arrays_device(driver, stream):
    driver.begin(0)
    a, b, out = square(), square(), square()
    for _ in range(2):
        pyblasgpu.gemm(a, b, out=out, stream=stream)
    assert set(driver.launches) == {(1, stream)}


@pytest.mark.parametrize("attribute", ["device_index", "device_id"])
def test_an_object_for_the_default_stream_knows_its_device(driver, attribute):
    """The stream is `torch.cuda.current_stream()` of this or another device; CuPy's has no device (-1)."""
    a, b, out = square(), square(), square()
    for _ in range(2):
        for device in (1, -1):
            pyblasgpu.gemm(a, b, out=out, stream=SimpleNamespace(ptr=0, **{attribute: device}))
        with pytest.raises(ValueError, match=r"gemm: stream 0x0 belongs to device 0, .* on device 1"):
            pyblasgpu.gemm(a, b, out=out, stream=SimpleNamespace(ptr=0, **{attribute: 0}))
    assert set(driver.launches) == {(1, 0)}


@pytest.mark.parametrize("stream", [-1, 1 << 64])
def test_a_number_that_is_no_address(driver, stream):
    with pytest.raises(ValueError, match=f"gemm: stream {stream} is not the handle of a stream"):
        pyblasgpu.gemm(square(), square(), stream=stream)


def test_a_handle_may_come_back_on_another_device(driver):
    """The driver gives the handle of a stream that is gone to the next one, wherever that is."""
    a, b, out = square(), square(), square()
    for _ in range(2):
        pyblasgpu.gemm(a, b, out=out, stream=THERE)
    driver.streams[THERE] = 0
    with pytest.raises(ValueError, match="gemm: stream 0x5001 belongs to device 0"):
        pyblasgpu.gemm(a, b, out=out, stream=THERE)


def test_a_stream_of_which_the_driver_does_not_tell(driver):
    """It is left to the launch to refuse it."""
    driver.refused["cuStreamGetCtx"] = driver.result.CUDA_ERROR_NOT_SUPPORTED
    pyblasgpu.gemm(square(), square(), stream=THERE)
    assert set(driver.launches) == {(1, THERE)}


def test_a_stream_of_a_context_beside_the_primary_one(driver, monkeypatch):
    """Its device counts: what is launched in such a context the driver knows."""
    monkeypatch.setattr(driver.real, "cuStreamGetCtx", lambda stream: (0, driver.real.CUcontext(0x101)))
    assert stream_of(1, THERE, "gemm") == THERE and driver.stack == []


def test_host_arrays_go_where_their_stream_is(driver):
    driver.begin(0)
    assert device_for(THERE) == 1 and device_for(0) == device_for(None) == 0
    assert device_for(SimpleNamespace(ptr=0, device_id=1)) == 1
    driver.begin(1)
    assert device_for(HERE) == 0 and device_for(2) == device_for(None) == 1
