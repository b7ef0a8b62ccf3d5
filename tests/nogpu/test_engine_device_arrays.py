"""Arrays on one card, computed by several: their tiles lie where they are, and others come from there."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
import scipy.linalg
from fake_cards_install import holds_nothing
from tiled_runs import KINDS, problem

import pyblasgpu
from pyblasgpu.engine.matrices import DeviceMatrix, HostMatrix
from pyblasgpu.engine.placement import owners_of
from pyblasgpu.engine.run import CallerStream, run_tasks
from pyblasgpu.engine.schedule import Schedule
from pyblasgpu.frontend.arrays.layouts import Layout
from pyblasgpu.frontend.calls import call as frontend_call
from pyblasgpu.frontend.calls import engine_call, engine_lu
from pyblasgpu.frontend.calls.call import Call
from pyblasgpu.frontend.calls.factor_call import FactorCall
from pyblasgpu.gpu.context import current_context
from pyblasgpu.operands import Operand
from pyblasgpu.testing.leaves_on_host import elements, enqueue_on
from pyblasgpu.types import DTYPES, INT32


def on_card(p, name, driver, device) -> DeviceMatrix:
    """A matrix of a problem in the memory of a card."""
    array = p.sources.get(name, p.arrays[name])
    address = driver.add_array(array, device)
    steps = [step // array.itemsize for step in array.strides]
    operand = Operand(address, *array.shape, *steps, p.dtype, device=device)
    return DeviceMatrix(name, p.tasks.grids[name], operand)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_results(fake_cards, kind, seed):
    """With the output on a card or on the host, and tasks dealt as they are or at random."""
    p, driver = problem(kind, size=2, order="CF"[seed % 2]), fake_cards(seed=seed)
    devices = (2, 0, 5)
    matrices = {name: on_card(p, name, driver, 0) for name in p.tasks.grids}
    if seed == 1 and p.output == "c":
        matrices["c"] = HostMatrix("c", p.tasks.grids["c"], p.dtype, p.arrays["c"])
    owners = owners_of(p.tasks, [1, 2, 1], p.side)
    if seed == 2:
        owners = list(np.random.default_rng(seed).integers(0, 3, len(owners)))
    stream = driver.add_stream(0)
    schedule = Schedule(p.tasks, owners)
    run_tasks(schedule, matrices, devices, 1 << 20, CallerStream(0, stream), enqueue=enqueue_on(driver))
    with current_context(0):
        driver.cuStreamSynchronize(stream)
    output = matrices[p.output]
    actual = output.array if isinstance(output, HostMatrix) else elements(output.operand)
    np.testing.assert_array_equal(actual, p.expected)
    assert holds_nothing(driver)


@pytest.fixture
def cupy_on(fake_cards, small_tiles, monkeypatch):
    """Makes an array of a fake CuPy in the memory of card 1, whose current stream is one of the driver's."""
    driver, cupy = fake_cards(), fake_device.cupy
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    stream = driver.add_stream(1)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda device=None: SimpleNamespace(ptr=stream))

    def put(array):
        array = np.asarray(array)
        address = driver.add_array(array, 1)
        rows, cols, *_ = *array.shape, 1, 1
        row_step, col_step, *_ = *(step // array.itemsize for step in array.strides), 1, 1
        dtype = INT32 if array.dtype == np.int32 else DTYPES["d"]
        whole = elements(Operand(address, rows, cols, row_step, col_step, dtype, device=1))
        return fake_device.Array(whole.reshape(array.shape) if array.ndim < 2 else whole, 1)

    monkeypatch.setattr(cupy, "empty", lambda shape, dtype: put(np.empty(shape, dtype)))
    return driver, put


def test_calls(cupy_on):
    driver, put = cupy_on
    rng = np.random.default_rng(3)
    a, b, c = (np.asfortranarray(rng.integers(-3, 4, (24, 24)) * 1.0) for _ in range(3))
    expected = 2 * (a @ b.T) + c
    out = put(c)
    actual = pyblasgpu.gemm(put(a), put(b), alpha=2, beta=1, trans_b="T", out=out, devices=[0, 1])
    assert actual is out
    np.testing.assert_array_equal(out.host, expected)
    x = put(b)
    pyblasgpu.trmm(put(a), x, lower=True, out=x, devices=[1, 0, 3])
    np.testing.assert_array_equal(x.host, np.tril(a) @ b)
    assert driver.copied[1, 0] and driver.copied[0, 1] and driver.copied[3, 1]


#: Calls on a, b and c whose output begins as a copy of an argument, and what they return.
STARTING = {
    "trmm": (lambda a, b, c: pyblasgpu.trmm(a, b, lower=True), lambda a, b, c: np.tril(a) @ b),
    "trmm into another": (
        lambda a, b, c: pyblasgpu.trmm(a, b, lower=True, out=c),
        lambda a, b, c: np.tril(a) @ b,
    ),
    "trsm": (
        lambda a, b, c: pyblasgpu.trsm(a, b, lower=True),
        lambda a, b, c: np.linalg.solve(np.tril(a), b),
    ),
    "dgemm": (lambda a, b, c: pyblasgpu.blas.dgemm(2, a, b, 1, c), lambda a, b, c: 2 * a @ b + c),
    "dsyrk": (
        lambda a, b, c: pyblasgpu.blas.dsyrk(2, b, 1, c, lower=1),
        lambda a, b, c: np.where(np.tri(24) > 0, 2 * b @ b.T + c, c),
    ),
    "potrf": (
        lambda a, b, c: pyblasgpu.lapack.potrf(a, 1, clean=0)[0],
        lambda a, b, c: scipy.linalg.lapack.dpotrf(a, 1, clean=0)[0],
    ),
    "potrs": (
        lambda a, b, c: pyblasgpu.lapack.potrs(a, b, 1)[0],
        lambda a, b, c: scipy.linalg.cho_solve((a, 1), b),
    ),
    "getrf": (lambda a, b, c: pyblasgpu.lapack.getrf(a)[0], lambda a, b, c: scipy.linalg.lapack.dgetrf(a)[0]),
}


@pytest.mark.parametrize("call", STARTING)
def test_an_output_that_begins_as_another_array(cupy_on, monkeypatch, call):
    """The copy is enqueued on the caller's stream, and the other array stays as it is."""
    driver, put = cupy_on
    copies = []

    def enqueue_copy(_prepare, _scalars, operands, stream):
        source, target = operands
        copies.append(stream)
        driver.launch(stream, "copy", [], lambda: np.copyto(elements(target), elements(source)))

    monkeypatch.setattr(frontend_call, "enqueue", enqueue_copy)
    rng = np.random.default_rng(3)
    a, b, c = (np.asfortranarray(rng.integers(-3, 4, (24, 24)) * 1.0) for _ in range(3))
    a = np.asfortranarray(a @ a.T + 24 * np.eye(24))
    arrays = [put(each.copy("F")) for each in (a, b, c)]
    routine, expected = STARTING[call]
    with pyblasgpu.use_devices([0, 1]):
        result = routine(*arrays)
    np.testing.assert_allclose(result.host, expected(a, b, c), atol=1e-11)
    assert len(copies) == 1 and driver.copied[1, 0]
    for array, before in zip(arrays, (a, b, c)):
        assert array is result or np.array_equal(array.host, before)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("clean", [0, 1])
@pytest.mark.parametrize("devices", [[0, 1], [3, 1, 0]], ids=str)
def test_cholesky_factors(cupy_on, order, clean, devices):
    driver, put = cupy_on
    root = np.random.default_rng(4).normal(size=(27, 27))
    spd = np.asarray(root @ root.T + 27 * np.eye(27), order=order)
    a, b = put(spd.copy(order)), put(np.asarray(root, order=order).copy(order))
    with pyblasgpu.use_devices(devices):
        factor, info = pyblasgpu.lapack.potrf(a, 1, clean=clean, overwrite_a=1)
        solved = pyblasgpu.lapack.potrs(factor, b, 1, overwrite_b=1)[1]
    assert info.host.dtype == np.int32 and int(info) == 0 == int(solved)
    expected = scipy.linalg.lapack.dpotrf(spd, 1, clean=clean)[0]
    np.testing.assert_allclose(a.host, expected, atol=1e-12)
    np.testing.assert_allclose(spd @ b.host, root, atol=1e-10)
    assert driver.copied[1, 0] and driver.copied[0, 1]


def test_a_matrix_that_is_not_definite(cupy_on):
    _, put = cupy_on
    spd = 2 * np.eye(27)
    spd[20, 20] = -1
    with pyblasgpu.use_devices([0, 1]):
        info = pyblasgpu.lapack.potrf(put(spd), 1, overwrite_a=1)[1]
    assert int(info) == 21


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(27, 27), (30, 20), (20, 30)])
@pytest.mark.parametrize("panels_from", [1, 99])
def test_lu_factors(cupy_on, decide_by, monkeypatch, order, shape, panels_from):
    driver, put = cupy_on
    decide_by(tiled_lu_columns=8, tiled_lu_min_panels=panels_from)
    monkeypatch.setattr(engine_lu, "FEWEST", 4)
    matrix = np.asarray(np.random.default_rng(5).normal(size=shape), order=order)
    a = put(matrix.copy(order))
    with pyblasgpu.use_devices([0, 1]):
        _, piv, info = pyblasgpu.lapack.getrf(a, overwrite_a=1)
    expected, pivots, _ = scipy.linalg.lapack.dgetrf(matrix)
    assert int(info) == 0 and driver.copied[1, 0]
    np.testing.assert_array_equal(piv.host, pivots)
    np.testing.assert_allclose(a.host, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "devices"), [((27, 27), [0, 2]), ((27, 27), [1]), ((2, 9, 9), [0, 1]), ((27, 27), [0, 1])]
)
def test_factors_on_one_card(cupy_on, monkeypatch, shape, devices):
    """Arrays are elsewhere than what is set around them, and are stacks."""
    driver, put = cupy_on
    whole = []
    monkeypatch.setattr(FactorCall, "run_on_arrays", lambda call, *_: whole.append(call.name) or [0])
    host = np.zeros(shape) + np.eye(shape[-1])
    a = put(host) if len(shape) == 2 else fake_device.Array(host, 1)
    with pyblasgpu.use_devices(devices):
        pyblasgpu.lapack.potrf(a, overwrite_a=1)
    assert bool(whole) == (len(shape) == 3 or devices != [0, 1]) != bool(driver.copied)


def test_arrays_of_which_tiles_are_no_views_are_refused(cupy_on):
    _, put = cupy_on
    a, out = put(np.ones((24, 24))), put(np.full((24, 24), 7.0))
    backwards = a[::-1]
    with pytest.raises(ValueError, match=r"gemm: an array of shape \(24, 24\) has strides \(-24, 1\); on"):
        pyblasgpu.gemm(backwards, a, out=out, devices=[0, 1])
    with pytest.raises(ValueError, match=r"gemm: an array of shape \(12, 12\) has strides \(48, 2\)"):
        pyblasgpu.gemm(a[::2, ::2], a[:12, :12], out=out[:12, :12], devices=[0, 1])
    np.testing.assert_array_equal(out.host, 7)
    conjugated = Layout(4096, (3, 3), (3, 1), pyblasgpu.types.DTYPES["z"], 1, conj=True)
    call = SimpleNamespace(device=1, library=SimpleNamespace(host=False), out=conjugated)
    assert "lazily conjugated" in engine_call.obstacle(call, [0, 1], [conjugated])
    assert not engine_call.obstacle(call, [0, 1], [conjugated._replace(conj=False)])


def test_what_is_refused(cupy_on):
    _, put = cupy_on
    a = put(np.ones((24, 24)))
    with pytest.raises(ValueError, match="the arrays are on device 1, which is none of"):
        pyblasgpu.gemm(a, a, out=put(np.ones((24, 24))), devices=[0, 2])
    out = put(np.full((24, 24), 7.0))
    with pytest.raises(ValueError, match="bytes of device memory are too few"):
        pyblasgpu.trsm(a, a, out=out, devices=[0, 1], max_device_memory=64)
    np.testing.assert_array_equal(out.host, 7)
    apart = put(np.ones((48, 48)))[::2, ::2]
    with pytest.raises(ValueError, match=r"an array of shape \(24, 24\) has strides"):
        pyblasgpu.gemm(apart, a, out=put(np.ones((24, 24))), devices=[0, 1])


def test_what_is_set_around_calls_serves_where_it_can(cupy_on, monkeypatch):
    """Arrays with other strides run as without, and so do plans."""
    driver, put = cupy_on
    whole = []
    monkeypatch.setattr(Call, "run", lambda call, *args: whole.append(call.name))
    a, out = put(np.ones((24, 24))), put(np.ones((24, 24)))
    with pyblasgpu.use_devices([0, 1]):
        pyblasgpu.gemm(a, a, out=out)
        assert not whole and driver.copied[1, 0]
        pyblasgpu.gemm(put(np.ones((48, 48)))[::2, ::2], a, out=out)
        stack = [put(np.ones((48, 24))).reshape((2, 24, 24)) for _ in range(2)]
        pyblasgpu.gemm(stack[0], a, out=stack[1])
        assert whole == ["gemm"] * 2
    with pyblasgpu.use_devices([0, 2]):
        pyblasgpu.gemm(a, a, out=out)
    assert whole == ["gemm"] * 3
    np.testing.assert_array_equal(out.host, np.full((24, 24), 24))
