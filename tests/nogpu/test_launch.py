"""Kernel arguments in memory, as the driver reads them, and launches on a driver that is none."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu.gpu import context, launch, memory
from pyblasgpu.gpu.build.compile import WHOLE_ROWS, KernelSource
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.gpu.driver import DriverState
from pyblasgpu.gpu.launch import ArgumentBlock, ArgumentLayout

TYPES = {"p": ctypes.c_uint64, "i": ctypes.c_int32, "q": ctypes.c_int64}
REALS = {"float32": ctypes.c_float, "float64": ctypes.c_double}
PDL = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
COMPILED = SimpleNamespace(cubin=b"", entry="k", archive=None)


@given(
    st.integers(1, 4), st.text("iq", max_size=9), st.integers(0, 4), st.sampled_from(sorted(REALS)), st.data()
)
def test_every_argument_lies_where_its_pointer_says(pointers, integers, reals, real, data):
    parameters = "p" * pointers + integers + "r" * reals
    arguments = ArgumentLayout(parameters, real)
    block = ArgumentBlock(arguments, None)
    for _ in range(2):
        addresses = data.draw(st.tuples(*[st.integers(0, 2**64 - 1)] * pointers))
        numbers = data.draw(st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * len(integers)))
        scalars = data.draw(st.tuples(*[st.floats(width=32)] * reals))
        # in any order: no part touches another
        arguments.pack_reals(block.values, arguments.reals_at, *scalars)
        arguments.pack_pointers(block.values, 0, *addresses)
        arguments.pack_integers(block.values, arguments.integers_at, *numbers)
        values = []
        for index, code in enumerate(parameters):
            kind = TYPES.get(code, REALS[real])
            place = ctypes.c_void_p.from_address(block.address + 8 * index).value
            assert place % ctypes.sizeof(kind) == 0
            values.append(kind.from_address(place).value)
        assert list(map(repr, values)) == list(map(repr, (*addresses, *numbers, *scalars)))


def test_other_orders_of_parameters_are_refused():
    with pytest.raises(AssertionError, match="in this order"):
        ArgumentLayout("pipr", "float32")


# ------------------------------------------------------------------------------------------------ launching


class Driver:
    """Stands for the driver: what is launched is read from memory as the driver would read it."""

    def __init__(self, monkeypatch):
        driver = pytest.importorskip("cuda.bindings.driver")
        self.events, self.capturing, self.function = [], {}, driver.CUfunction(0xF)
        self.none = driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        self.active = driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
        ok = driver.CUresult.CUDA_SUCCESS

        def answer(name, *values):
            monkeypatch.setattr(
                driver, name, lambda *args: self.events.append((name, *args)) or (ok, *values)
            )

        for name, *values in (
            ("cuLibraryLoadData", 1),
            ("cuLibraryGetKernel", driver.CUkernel(2)),
            ("cuFuncSetAttribute",),
            ("cuKernelGetFunction", self.function),
            ("cuStreamCreate", driver.CUstream(0x57)),
            ("cuStreamDestroy",),
            ("cuStreamBeginCapture",),
            ("cuStreamEndCapture", "graph"),
            ("cuGraphInstantiate", "runnable"),
            ("cuGraphDestroy",),
            ("cuGraphExecDestroy",),
            ("cuGraphLaunch",),
            ("cuDriverGetVersion", 12030),
            ("cuOccupancyMaxActiveBlocksPerMultiprocessor", 1),
        ):
            answer(name, *values)
        monkeypatch.setattr(driver, "cuLaunchKernelEx", lambda *args: (ok, self._launched(*args))[:1])
        monkeypatch.setattr(
            driver, "cuStreamIsCapturing", lambda stream: (ok, self.capturing.get(int(stream), self.none))
        )
        self.used, self.kinds = [], ()
        monkeypatch.setattr(DriverState, "driver", driver)
        monkeypatch.setattr(context, "make_current", self.used.append)

    def _launched(self, config, function, arguments, extra):
        assert function is self.function and extra == 0
        self.attributes = [
            (attribute.id.name, attribute.value.programmaticStreamSerializationAllowed)
            for attribute in config.attrs[: config.numAttrs]
        ]
        places = (ctypes.c_void_p * len(self.kinds)).from_address(arguments)
        grid = config.gridDimX, config.gridDimY, config.gridDimZ
        block = config.blockDimX, config.blockDimY, config.blockDimZ
        values = tuple(kind.from_address(place).value for kind, place in zip(self.kinds, places, strict=True))
        self.events.append((grid, block, config.sharedMemBytes, int(config.hStream), values))

    def take(self):
        """What happened since."""
        events, self.events = self.events, []
        return events


@pytest.fixture
def driver(monkeypatch):
    return Driver(monkeypatch)


def kernel_of(driver, monkeypatch, cc, **fields):
    """A kernel of two pointers, an int32, an int64 and two float32, with 64 threads and 100 KiB."""
    monkeypatch.setattr(launch, "compile_source", lambda *_: COMPILED)
    monkeypatch.setitem(stand_ins, 0, replace(known("h200"), cc=cc, sm_count=10))
    driver.kinds = [TYPES["p"]] * 2 + [TYPES["i"], TYPES["q"]] + [REALS["float32"]] * 2
    source = KernelSource("k", "here", (), "float32", "ppiqrr", 64, 1, 102400, None, **fields)
    return launch.LoadedKernel(source, 0)


@pytest.fixture
def kernel(driver, monkeypatch):
    made = kernel_of(driver, monkeypatch, (9, 0))
    assert next(event for event in driver.take() if event[0] == "cuFuncSetAttribute")[3] == 102400
    driver.used.clear()
    return made


@pytest.mark.parametrize("pdl", [False, True])
def test_a_kernel_of_clusters_is_launched_in_clusters(driver, monkeypatch, pdl):
    kernel = kernel_of(driver, monkeypatch, (9, 0), cluster=2)
    kernel.launch((4, 1, 1), 5, [16, 32], (7, 8), (1.5, -2.0), pdl)
    names = [name for name, _ in driver.attributes]
    assert names == ["CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", PDL][: 1 + pdl]
    assert driver.attributes[0][1] == 2  # blocks along x, which begin the same union


@pytest.mark.parametrize("pdl", [False, True])
def test_all_blocks_along_x_are_a_cluster(driver, monkeypatch, pdl):
    """However many a launch has; one is none."""
    kernel = kernel_of(driver, monkeypatch, (9, 0), cluster=WHOLE_ROWS)
    may_be_16 = "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
    set_to = {event[2].name: event[3] for event in driver.take() if event[0] == "cuFuncSetAttribute"}
    assert set_to[may_be_16] == 1
    own = "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"
    for blocks in (4, 16, 1, 3):
        kernel.launch((blocks, 1, 2), 5, [16, 32], (7, 8), (1.5, -2.0), pdl)
        names = [name for name, _ in driver.attributes]
        expected = ([own] if blocks > 1 else []) + [PDL] * pdl
        assert names == expected
        assert blocks == 1 or driver.attributes[0][1] == blocks  # which begins the same union


def test_every_launch_is_told_what_is_new(kernel, driver):
    integers, reals, grid = (7, 2**40), (1.5, -2.0), (3, 1, 2)
    for call in (
        (grid, 5, [16, 32], integers, reals),
        (grid, 5, [48, 64], integers, reals),
        (grid, 6, [48, 64], integers, reals),
        ((4, 5, 6), 6, [48, 64], integers, reals),
        (grid, 0, [16, 32], (8, 9), reals),
        (grid, 0, [16, 32], integers, (0.5, 0.25)),
        (grid, 5, [16, 32], integers, reals),
    ):
        kernel.launch(*call)
        blocks, stream, *arguments = call
        assert driver.take() == [
            (blocks, (64, 1, 1), 102400, stream, tuple(value for part in arguments for value in part))
        ]
    assert len(kernel.free_blocks) == 1


def test_a_launch_with_pdl_has_the_attribute(kernel, driver):
    call = (1, 1, 1), 5, (1, 2), (3, 4), (5.0, 6.0)
    for pdl in (True, False, True):
        kernel.launch(*call, pdl)
        expected = [("CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION", 1)] if pdl else []
        assert driver.attributes == expected


@pytest.mark.parametrize(("resident", "blocks", "pdl"), [(1, 1, True), (2, 59, False), (2, 60, True)])
def test_blocks_that_would_crowd_have_no_pdl(driver, monkeypatch, resident, blocks, pdl):
    from cuda.bindings import driver as real

    name, answer = "cuOccupancyMaxActiveBlocksPerMultiprocessor", (real.CUresult.CUDA_SUCCESS, resident)
    monkeypatch.setattr(real, name, lambda *args: answer)
    made = kernel_of(driver, monkeypatch, (9, 0))
    made.launch((blocks, 1, 1), 5, (1, 2), (3, 4), (5.0, 6.0), True)
    assert bool(driver.attributes) == pdl


@pytest.mark.parametrize(("cc", "version"), [((8, 9), 13000), ((9, 0), 12020)])
def test_no_pdl_where_card_or_driver_lacks_it(driver, monkeypatch, cc, version):
    from cuda.bindings import driver as real

    monkeypatch.setattr(real, "cuDriverGetVersion", lambda: (real.CUresult.CUDA_SUCCESS, version))
    kernel_of(driver, monkeypatch, cc).launch((1, 1, 1), 5, (1, 2), (3, 4), (5.0, 6.0), True)
    assert driver.attributes == []


def test_a_launch_within_a_launch_has_its_own_memory(kernel, driver, monkeypatch):
    """The second launch begins before the driver has read the arguments of the first, as of two threads."""
    outer = kernel.driver_launch

    def late(*args):
        kernel.driver_launch = outer
        kernel.launch((2, 1, 1), 9, (3, 4), (5, 6), (7.0, 8.0))
        return outer(*args)

    kernel.driver_launch = late
    kernel.launch((1, 1, 1), 8, (1, 2), (3, 4), (5.0, 6.0))
    assert [(event[0][0], event[3], event[4][0]) for event in driver.take()] == [(2, 9, 3), (1, 8, 1)]


def test_a_failing_launch_names_the_kernel(kernel, driver):
    from cuda.bindings import driver as real

    kernel.driver_launch = lambda *_: (real.CUresult.CUDA_ERROR_INVALID_CONTEXT,)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "cuGetErrorString", lambda error: (0, b"invalid device context"))
        with pytest.raises(memory.DeviceError, match=r"launch of k: .*INVALID_CONTEXT: invalid device"):
            kernel.launch((1, 1, 1), 8, (1, 2), (3, 4), (5.0, 6.0))
    assert len(kernel.free_blocks) == 1


# --------------------------------------------------------------------------------------------------- graphs


def test_a_graph_is_recorded_apart_and_launched_where_it_is_asked(driver):
    graph = launch.Graph(lambda stream: driver.events.append(("enqueued on", stream)), 0)
    recorded = driver.take()
    assert [event[0] for event in recorded] == [
        "cuStreamCreate",
        "cuStreamBeginCapture",
        "enqueued on",
        "cuStreamEndCapture",
        "cuStreamDestroy",
        "cuGraphInstantiate",
        "cuGraphDestroy",
    ]
    assert ("enqueued on", 0x57) in recorded
    for stream in (0, 2, 0x99):
        assert graph.launch(stream)
        (event,) = driver.take()
        assert event[:2] == ("cuGraphLaunch", "runnable") and int(event[2]) == stream
    del graph
    assert driver.take() == [("cuGraphExecDestroy", "runnable")]


def test_a_graph_with_the_priorities_of_its_streams(driver):
    flags, flag = DriverState.driver.CUgraphInstantiate_flags, launch.USE_NODE_PRIORITY
    assert flag == flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
    for by_priority in (False, True):
        launch.Graph(lambda stream: None, 0, by_priority)
        (made,) = (event for event in driver.take() if event[0] == "cuGraphInstantiate")
        assert made[2] == flag * by_priority


def test_a_stream_that_is_captured_gets_no_graph(driver):
    graph = launch.Graph(lambda stream: None, 0)
    driver.take()
    driver.capturing[0x99] = driver.active
    assert not graph.launch(0x99) and graph.launch(0x98)
    assert [int(event[2]) for event in driver.take()] == [0x98]


def test_a_graph_is_launched_by_one_thread_at_a_time(driver, monkeypatch):
    graph = launch.Graph(lambda stream: None, 0)
    inner, run = [], graph.driver_launch

    def during(*args):
        inner.append(graph.launch(0x99))
        return run(*args)

    graph.driver_launch = during
    assert graph.launch(0x98) and inner == [False]
    graph.driver_launch = run
    assert graph.launch(0x99)


def test_what_cannot_be_recorded_leaves_no_capture(driver):
    with pytest.raises(ZeroDivisionError):
        launch.Graph(lambda stream: 1 / 0, 0)
    assert [event[0] for event in driver.take()][-2:] == ["cuStreamEndCapture", "cuStreamDestroy"]


# --------------------------------------------------------------------------------------------------- memory


def test_a_room_goes_back_with_its_holder(driver, monkeypatch):
    from cuda.bindings import driver as real

    freed = []
    monkeypatch.setattr(real, "cuMemAlloc", lambda nbytes: (real.CUresult.CUDA_SUCCESS, 256 + nbytes))
    monkeypatch.setattr(real, "cuMemFree", freed.append)
    room = memory.OwnedMemory(4096, 3)
    assert room.address == 4352 and driver.used == [3] and not freed
    del room
    assert freed == [4352] and driver.used == [3, 3]
    out_of_memory = real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    monkeypatch.setattr(real, "cuMemAlloc", lambda nbytes: (out_of_memory, None))
    monkeypatch.setattr(real, "cuGetErrorString", lambda error: (0, b"out of memory"))
    trimmed = []
    monkeypatch.setattr(memory, "trim", trimmed.append)
    with pytest.raises(MemoryError, match="cuMemAlloc: out of memory"):
        memory.OwnedMemory(4096, 3)
    assert freed == [4352] and trimmed == [3]
