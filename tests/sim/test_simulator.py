"""The intrinsics mean in the simulator what they mean in `ptx`; copies under way are watched."""

from __future__ import annotations

import ast
import inspect
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from simulated import THREADS, device, host, once, run

from pyblasgpu.gpu.simulator import intrinsics as sim

cuda, types, real = sim.cuda, sim.types, sim.types.float32


# --- names -----------------------------------------------------------------------------------------------


def _ptx_exports() -> tuple[list[str], ast.Module]:
    tree = ast.parse((Path(sim.__file__).parents[1] / "intrinsics" / "ptx.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value), tree
    raise AssertionError("ptx.py has no __all__")


def test_every_name_of_ptx_has_a_stand_in():
    exported, _ = _ptx_exports()
    assert set(exported) <= set(sim.__all__)
    assert all(hasattr(sim, name) for name in exported)


def test_stand_ins_take_the_arguments_of_ptx():
    exported, tree = _ptx_exports()
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in set(exported) & set(functions):
        expected = [argument.arg for argument in functions[name].args.args if argument.arg != "_"]
        assert list(inspect.signature(getattr(sim, name)).parameters) == expected, name


# --- types -----------------------------------------------------------------------------------------------


def test_integer_casts_are_checked_and_compute_without_overflow():
    assert types.int32(np.int64(2**31 - 1)) + 1 == 2**31
    with pytest.raises(OverflowError, match="int32"):
        types.int32(2**31)


@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64"])
def test_types_are_dtypes_of_arrays(name):
    def kernel():
        array = cuda.local.array(2, getattr(types, name))
        assert array.array.dtype == name

    once(kernel)


# --- predicated access, vectors, tiles -------------------------------------------------------------------


def test_loads_and_stores_move_what_they_say():
    def kernel():
        local = cuda.local.array(8, real)
        shared = cuda.shared.array(0, real, alignment=16)
        sim.load_global(4, False)(local, 0, memory, 4, True)
        sim.store_shared(4)(shared, 8, local, 0)
        sim.load_shared(2, 2, 2)(local, 4, shared, 8)
        sim.load_global(2, True)(local, 0, memory, 10**9, False)  # not ok: zeros, and nothing is touched
        sim.store_global(memory, 10**9, real(1), False)
        for i in range(8):
            sim.store_global(memory, i, local[i], True)
        sim.store_global_vector(2)(memory, 8, local, 5, True)
        sim.store_global_vector(2)(memory, 10**9, local, 0, False)

    address, memory = device(np.arange(10))
    once(kernel)
    assert host(address, 10).tolist() == [0, 0, 6, 7, 4, 5, 6, 7, 5, 6]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("conj_a, conj_b", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("at_a, at_b", [((0, 1), (0, 1)), ((1, 3), (2, 4))])
def test_rank1_update(dtype, conj_a, conj_b, at_a, at_b):
    m, n, reals_per_element = 3, 2, 2 if "complex" in dtype else 1
    rng = np.random.default_rng(1)
    part = np.dtype(dtype).type(0).real.dtype
    reals = [rng.integers(-9, 9, count * reals_per_element).astype(part) for count in (m * n + 1, 8, 8)]
    acc, a, b = (sim.Pointer(array, 0) for array in reals)
    column, row = (x.array.view(dtype).copy() for x in (a, b))
    column, row = column[at_a[0] :: at_a[1]][:m], row[at_b[0] :: at_b[1]][:n]
    expected = acc.array.view(dtype).copy()
    product = np.outer(row.conj() if conj_b else row, column.conj() if conj_a else column)
    expected[: m * n] += product.ravel()
    sim.rank1_update(m, n, reals_per_element, conj_a, conj_b, at_a=at_a, at_b=at_b)(acc, a, b)
    assert acc.array.dtype == part
    assert np.array_equal(acc.array.view(dtype), expected)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("conj", [False, True])
@pytest.mark.parametrize("first", [0, 2])
def test_shifted_update(dtype, conj, first):
    """Sums move from one tile to that before it, which is by columns."""
    m, n, depth, reals_per_element = 3, 2, 2, 2 if "complex" in dtype else 1
    rng = np.random.default_rng(1)
    part = np.dtype(dtype).type(0).real.dtype
    counts = 2 * m * n, m * depth, (first + depth) * n
    acc, a, b = (
        sim.Pointer(rng.integers(-9, 9, count * reals_per_element).astype(part), 0) for count in counts
    )
    left, right = a.array.view(dtype).reshape(m, depth), b.array.view(dtype).reshape(-1, n)
    expected = acc.array.view(dtype).copy()
    product = (left.conj() if conj else left) @ right[first:]
    expected[: m * n] = expected[m * n :] + product.T.ravel()
    targets = tuple((j * m + i) * reals_per_element for i in range(m) for j in range(n))
    sources = tuple(place + m * n * reals_per_element for place in targets)
    sim.shifted_update(m, n, depth, reals_per_element, conj, sources, targets, first)(acc, a, b)
    assert np.array_equal(acc.array.view(dtype), expected)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("conj", [False, True])
@pytest.mark.parametrize("j", [0, 2, 3])
def test_spread_column(dtype, conj, j):
    n, reals_per_element = 4, 2 if "complex" in dtype else 1
    rng = np.random.default_rng(2)
    part = np.dtype(dtype).type(0).real.dtype
    column, matrix = (
        sim.Pointer(rng.integers(-9, 9, count * reals_per_element).astype(part), 0) for count in (n, n * n)
    )
    t, expected = matrix.array.view(dtype).reshape(n, n).T, column.array.view(dtype).copy()
    expected[j + 1 :] -= (t.conj() if conj else t)[j + 1 :, j] * expected[j]
    sim.axpy_column(n, j, reals_per_element, conj, -1)(column, matrix)
    assert np.array_equal(column.array.view(dtype), expected)


@pytest.mark.parametrize("dtype, step", [(np.float32, 2.0**-12), (np.float64, 2.0**-27)])
def test_fma_rounds_once(dtype, step):
    x, z = dtype(1 + step), dtype(-(1 + 2 * step))
    assert x * x + z == 0
    assert sim.fma(x, x, z) == dtype(step) ** 2
    assert sim.fma(x, x, z).dtype == dtype
    assert np.isinf(sim.fma(dtype(np.inf), x, z)) and np.isnan(sim.fma(x, dtype(np.nan), z))


def test_fma_of_doubles_is_the_nearest_of_the_exact_sum():
    """Where sums nearly cancel, are halfway between doubles, or differ much in size."""
    random, shares = np.random.default_rng(3), [0, 1, 2.0**-52, 1 - 2.0**-53, 2.0**-53, 2.0**54, 2.0**-106]
    for _ in range(2000):
        x, y, other = random.choice([1 + random.random(), 1 + 2.0**-26, 1 - 2.0**-53, 3.0], 3)
        x, y, z = x * 2.0 ** random.integers(-60, 60), -y, other * 2.0 ** random.integers(-60, 60)
        z = random.choice([z, *(-x * y * share for share in shares)])
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        assert sim.fma(x, y, z) == float(exact), (x, y, z)


def test_fma_of_doubles_at_the_edges_of_the_range():
    big = np.finfo(np.float64).max
    assert sim.fma(np.float64(big), np.float64(2), np.float64(-big)) == big
    with np.errstate(over="ignore"):
        assert sim.fma(np.float64(big), np.float64(2), np.float64(big)) == np.inf
    assert np.signbit(sim.fma(np.float64(-0.0), np.float64(1), np.float64(-0.0)))


def test_division_by_zero_is_quiet_in_a_kernel():
    def kernel():
        assert np.isinf(real(2e38) * real(2))
        assert np.isinf(sim.divide(real(1), real(0))) and np.isnan(sim.divide(real(0), real(0)))

    with np.errstate(all="raise"), warnings.catch_warnings(action="error"):
        once(kernel)


# --- asynchronous copies ---------------------------------------------------------------------------------


def _staged(wait: bool, barrier: bool):
    """Thread t copies 4 reals by cp.async, and reads those of its neighbour."""
    copy, commit, finish = sim.copy_async(16), sim.commit_async, sim.wait_async(0)

    def kernel(out, source):
        shared = cuda.shared.array(0, real, alignment=16)
        t = cuda.threadIdx.x
        copy(shared, 4 * t, source, 4 * t, 16)
        commit()
        if wait:
            finish()
        if barrier:
            cuda.syncthreads()
        other = t ^ 1 if barrier else t
        out[t] = shared[4 * other + 3]

    return kernel


def test_copies_arrive_after_wait_and_barrier():
    address, out = device(np.zeros(THREADS))
    _, source = device(np.arange(4 * THREADS))
    run(_staged(True, True), out, source, shared=16 * THREADS)
    assert np.array_equal(host(address, THREADS), 4 * (np.arange(THREADS) ^ 1) + 3)


def test_missing_wait_reads_nan():
    address, out = device(np.zeros(THREADS))
    _, source = device(np.arange(4 * THREADS))
    run(_staged(False, False), out, source, shared=16 * THREADS)
    assert np.isnan(host(address, THREADS)).all()


def test_a_copy_under_way_leaves_nothing_of_what_was_there():
    def kernel():
        shared = cuda.shared.array(0, real)
        shared[0] = real(7)
        sim.copy_async(4)(shared, 0, source, 0, 4)
        sim.commit_async()
        assert np.isnan(shared[0])
        sim.wait_async(0)()
        assert shared[0] == 1

    _, source = device([1])
    once(kernel)


def test_a_copy_under_way_races_even_across_barriers():
    _, out = device(np.zeros(THREADS))
    _, source = device(np.arange(4 * THREADS))
    with pytest.raises(sim.SimulatorError, match="race"):
        run(_staged(False, True), out, source, shared=16 * THREADS)


def test_a_copy_of_what_another_thread_writes_is_a_race():
    def kernel(source, at):
        shared = cuda.shared.array(0, real)
        if cuda.threadIdx.x == 0:
            sim.copy_async(4)(shared, 0, source, 0, 4)
            sim.commit_async()
        else:
            source[at] = real(1)
        sim.wait_async(0)()

    _, source = device([1, 2])
    run(kernel, source, 1, threads=2, shared=4)
    with pytest.raises(sim.SimulatorError, match="race in device memory: thread 1 writes element 0"):
        run(kernel, source, 0, threads=2, shared=4)


def test_a_copy_into_what_others_still_read_is_a_race():
    def kernel(source):
        shared = cuda.shared.array(0, real, alignment=16)
        t = cuda.threadIdx.x
        for step in range(3):
            if t == 0:
                copy(shared, 0, source, 4 * step, 16)
            commit()
            wait()
            cuda.syncthreads()
            assert shared[0] == 4 * step
            if last_barrier:
                cuda.syncthreads()

    copy, commit, wait = sim.copy_async(16), sim.commit_async, sim.wait_async(0)
    _, source = device(np.arange(12))
    last_barrier = True
    run(kernel, source, shared=16)
    last_barrier = False
    with pytest.raises(sim.SimulatorError, match="race"):
        run(kernel, source, shared=16)


def test_wait_leaves_the_newest_groups_under_way():
    def kernel():
        shared = cuda.shared.array(0, real)
        for i in range(4):
            copy(shared, i, source, i, 4)
            if i < 3:
                sim.commit_async()
        seen = []
        for pending in (2, 1, 0):
            sim.wait_async(pending)()
            seen.append([i for i in range(4) if not np.isnan(shared[i])])
        assert seen == [[0], [0, 1], [0, 1, 2]]  # the last copy was never committed

    copy = sim.copy_async(4)
    _, source = device(np.ones(4))
    once(kernel)


@pytest.mark.parametrize("valid", [0, 4, 8, 16])
def test_a_copy_reads_its_valid_bytes_alone(valid):
    def kernel():
        shared = cuda.shared.array(0, real, alignment=16)
        at = 4 if valid else 10**9  # none valid: nothing is touched
        sim.copy_async(16)(shared, 0, source, at, valid)
        sim.commit_async()
        sim.wait_async(0)()
        assert [shared[i] for i in range(4)] == [7] * (valid // 4) + [0] * (4 - valid // 4)

    _, source = device([7] * (4 + valid // 4))
    once(kernel)


def test_a_copy_out_of_bounds():
    def kernel(at, valid):
        shared = cuda.shared.array(0, real, alignment=16)
        sim.copy_async(16)(shared, at, source, 4, valid)

    _, source = device(np.zeros(7))
    run(kernel, 0, 12, threads=1, shared=16)
    for at, valid in ((0, 16), (4, 0)):
        with pytest.raises(IndexError):
            run(kernel, at, valid, threads=1, shared=16)


@pytest.mark.parametrize("size, valid", [(12, 12), (16, 20), (16, -4), (16, 6)])
def test_copies_that_the_hardware_does_not_have(size, valid):
    def kernel():
        sim.copy_async(size)(cuda.shared.array(0, real, alignment=16), 0, source, 0, valid)

    _, source = device(np.zeros(8))
    with pytest.raises(sim.SimulatorError, match=r"cp\.async"):
        once(kernel)
