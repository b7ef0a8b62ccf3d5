"""Repeated calls of factorisations on device arrays: as the first one, whatever has changed since."""

from __future__ import annotations

from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
from scipy.linalg import lapack as scipys

from pyblasgpu import lapack, linalg, use_devices
from pyblasgpu.api.lapack import determinants
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.arrays.device_integers import Place
from pyblasgpu.frontend.calls import factor_chain, factor_replay
from pyblasgpu.frontend.calls.call_cache import CachedCall
from pyblasgpu.gpu import events
from pyblasgpu.types import DTYPES


def device(*shape, seed=0, dtype="d", order="F"):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, shape).astype(dtype) + 3 * np.eye(*shape[-2:], dtype=dtype)
    return fake_device.Array(np.array(a, order=order))


@pytest.fixture
def repeats(fake, monkeypatch):
    """How many calls were repeated."""
    counted = []
    replay = factor_replay.replay_factor

    def spy(*arguments):
        result = replay(*arguments)
        if result is not None:
            counted.append(arguments[0][0])
        return result

    for module in ("lu", "cholesky", "triangular", "determinants"):
        monkeypatch.setattr(f"pyblasgpu.api.lapack.{module}.replay_factor", spy)
    return counted


@pytest.mark.parametrize("overwrite", [0, 1])
def test_factors_and_solutions_of_other_arrays(repeats, overwrite):
    """Pivots and info are new each time, and those of the first call stay."""
    kept = []
    for seed in range(3):
        a, b = device(5, 5, seed=seed), device(5, 2, seed=seed + 9)
        expected = scipys.dgesv(a.host, b.host)
        lu, piv, info = lapack.dgetrf(a, overwrite)
        x, _ = lapack.dgetrs(lu, piv, b, 0, overwrite)
        assert (lu is a) == bool(overwrite) and (x is b) == bool(overwrite)
        kept.append((expected, (lu, piv, x, info)))
    for (lu, piv, x, info), (got_lu, got_piv, got_x, got_info) in kept:
        np.testing.assert_allclose(got_lu.host, lu)
        np.testing.assert_array_equal(got_piv.host, piv)
        np.testing.assert_allclose(got_x.host, x)
        assert int(got_info) == info == 0
    assert repeats == ["dgetrf", "dgetrs"] * 2


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_pivots_of_the_arrays_library(repeats, dtype):
    """Their values and memory are those of each call; other shapes and dtypes are other calls."""
    for seed in range(3):
        a, b = device(5, 5, seed=seed), device(5, 2, seed=seed + 9)
        lu, piv, expected, _ = scipys.dgesv(a.host, b.host)
        pivots, factors = fake_device.Array(piv.astype(dtype)), fake_device.Array(lu)
        np.testing.assert_allclose(lapack.dgetrs(factors, pivots, b)[0].host, expected)
        np.testing.assert_allclose(lapack.dgetri(factors, pivots)[0].host @ a.host, np.eye(5), atol=1e-12)
    assert repeats == ["dgetrs", "dgetri"] * 2
    with pytest.raises(ValueError, match="piv"):
        lapack.dgetrs(factors, pivots[:4], b)
    with pytest.raises(TypeError, match="piv"):
        lapack.dgetrs(factors, fake_device.Array(piv.astype("int16")), b)


def test_determinants_of_factors(repeats):
    """Their own calls are repeated, whichever of pivots they get: those of `getrf`, or an array."""
    for seed in range(3):
        a = device(5, 5, seed=seed)
        lu, piv, _ = lapack.dgetrf(a)
        expected = np.linalg.slogdet(a.host)
        for pivots in (piv, fake_device.Array(piv.host.astype("int64"))):
            found = determinants.signs_and_logarithms("slogdet", lu, pivots, DTYPES["d"])
            np.testing.assert_allclose([each.host for each in found], expected)
            determinant = determinants.determinants("det", lu, pivots, DTYPES["d"])
            np.testing.assert_allclose(determinant.host, np.linalg.det(a.host))
    assert [name for name in repeats if name != "dgetrf"] == ["signs", "determinants"] * 4


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("overwrite", [0, 1])
def test_cholesky(repeats, lower, overwrite):
    for seed in range(3):
        a = device(4, 4, seed=seed)
        a.host[...] = a.host @ a.host.T
        if seed == 2:
            a.host[1, 1] = -1
        expected, expected_info = scipys.dpotrf(a.host, lower)
        c, info = lapack.dpotrf(a, lower, 1, overwrite)
        assert int(info) == expected_info
        if not expected_info:
            np.testing.assert_allclose(c.host, expected)
    assert repeats == ["dpotrf"] * 2


def test_flags_and_layouts_are_told_apart(repeats):
    a = device(4, 4)
    a.host[...] = a.host @ a.host.T
    factor = np.linalg.cholesky(a.host)
    for _ in range(2):
        np.testing.assert_allclose(lapack.dpotrf(a, 1)[0].host, factor)
        np.testing.assert_allclose(lapack.dpotrf(a, 0)[0].host, factor.T)
        np.testing.assert_allclose(np.tril(lapack.dpotrf(a, 1, 0)[0].host), factor)
    by_rows = fake_device.Array(np.array(a.host, order="C"))
    np.testing.assert_allclose(lapack.dpotrf(by_rows, 1)[0].host, factor)
    assert len(repeats) == 3


def test_arrays_of_another_dtype_are_converted_each_time(repeats):
    for seed in range(3):
        a = device(4, 4, seed=seed, dtype="f")
        lu, piv, _ = lapack.dgetrf(a, overwrite_a=1)
        expected, pivots, _ = scipys.dgetrf(a.host.astype("d"))
        np.testing.assert_allclose(lu.host, expected)
        np.testing.assert_array_equal(piv.host, pivots)
    assert not repeats


@pytest.mark.parametrize("stem", ["gesv", "posv"])
def test_factors_are_of_the_dtype_of_both_arrays(repeats, stem, monkeypatch):
    """Also where factors of the matrix in its own dtype are kept."""

    def unless(part):
        def prepare(info, *operands, **flags):
            launches = fake_device.factor_launch_list(part)(*operands, **flags)
            return SimpleNamespace(
                run=lambda bases, *_, stream: launches.run(bases[1:], stream=stream),
                bound=lambda *_: lambda bases, stream: launches.run(bases[1:], stream=stream),
                source_region=launches.source_region,
            )

        return prepare

    solutions = {f"{part}_launch_list": unless(part) for part in ("getrs", "potrs")}
    monkeypatch.setattr("pyblasgpu.api.lapack.call.routine_module", lambda name: SimpleNamespace(**solutions))
    a, x = device(5, 5, dtype="f"), np.arange(10.0).reshape(5, 2)
    a.host[...] = a.host @ a.host.T + 5 * np.eye(5)
    single, double = (fake_device.Array(np.asfortranarray((a.host @ x).astype(each))) for each in "fd")
    for _ in range(2):
        getattr(lapack, stem)(a, single)
    factor, *_, solution, info = getattr(lapack, stem)(a, double)
    assert factor.dtype == solution.dtype == np.float64 and int(info) == 0
    np.testing.assert_allclose(solution.host, x, atol=1e-12)


def test_an_overlap_is_found(repeats):
    memory = fake_device.Array(np.zeros((8, 8), order="F"))
    lu, piv, _ = lapack.dgetrf(device(4, 4))
    apart = memory[:4, :4], memory[:4, 4:]
    apart[0].host[...] = lu.host
    for _ in range(2):
        lapack.dgetrs(apart[0], piv, apart[1], overwrite_b=1)
    assert len(repeats) == 1
    before = memory.host.copy()
    try:
        x, _ = lapack.dgetrs(apart[0], piv, memory[:4, 2:6], overwrite_b=1)
    except OverlapError:
        x = None
    assert len(repeats) == 1 and (x is None or not np.shares_memory(x.host, memory.host))
    np.testing.assert_array_equal(memory.host, before)


@pytest.mark.parametrize("flag", ["1", 1.0])
def test_what_equals_a_flag_is_none(repeats, flag):
    a = device(3, 3)
    lapack.dgetrf(a, overwrite_a=1)
    before = a.host.copy()
    with pytest.raises(ValueError, match="overwrite_a"):
        lapack.dgetrf(a, overwrite_a=flag)
    assert not repeats
    np.testing.assert_array_equal(a.host, before)


def test_stacks(repeats):
    for seed in range(3):
        a = device(3, 4, 4, seed=seed, order="C")
        lu, piv, info = lapack.dgetrf(a, overwrite_a=1)
        assert lu is a and piv.shape == (3, 4) and not info.host.any()
    assert len(repeats) == 2


@pytest.mark.parametrize("overwrite", [0, 1])
def test_stacks_that_are_no_one_batch_are_computed_anew(repeats, overwrite):
    for seed in range(2):
        a, b = device(2, 5, 3, 3, seed=seed, order="C")[:, ::2], device(2, 1, 3, 3, seed=seed + 5, order="C")
        matrices, right = a.host.copy(), b.host.copy()
        lu, piv, _ = lapack.dgetrf(a, overwrite)
        x, _ = lapack.dgetrs(lu, piv, b, 0, overwrite)  # one right-hand side for three matrices
        np.testing.assert_allclose(matrices @ x.host, np.broadcast_to(right, matrices.shape), atol=1e-12)
        assert (lu is a) == bool(overwrite) and piv.shape == (2, 3, 3)
        factors = device(2, 5, 3, 3, order="C")[:, ::2]
        factors.host[...] = lu.host
        x, _ = lapack.dgetrs(factors, piv, fake_device.Array(matrices.copy()), 0, overwrite)
        np.testing.assert_allclose(x.host, np.broadcast_to(np.eye(3), matrices.shape), atol=1e-12)
    assert not repeats


def test_a_flag_of_two_overwrites(repeats):
    """SciPy takes every integer but zero so, though the repeated calls know of 0 and 1 alone."""
    for overwrite in (0, 1, 2, True):
        a = device(4, 4)
        expected, pivots, _ = scipys.dgetrf(a.host)
        lu, piv, _ = lapack.dgetrf(a, overwrite)
        assert (lu is a) == bool(overwrite)
        np.testing.assert_allclose(lu.host, expected)
        np.testing.assert_array_equal(piv.host, pivots)


@pytest.mark.parametrize(("order", "n", "by_rows"), [("C", 4, True), ("F", 4, False), ("C", 33, False)])
def test_small_matrices_of_a_stack_are_left_as_they_lie(repeats, order, n, by_rows):
    """The first call and those that repeat it, with solutions of several columns and of one."""
    for seed in range(3):
        host = np.random.default_rng(seed).uniform(-1, 1, (3, n, n))
        host = host @ host.swapaxes(1, 2) + n * np.eye(n)
        columns = host[..., :2].copy() if order == "C" else host[..., :2].swapaxes(1, 2).copy().swapaxes(1, 2)
        host = host if order == "C" else host.swapaxes(1, 2).copy().swapaxes(1, 2)
        a, b = fake_device.Array(host.copy("K")), fake_device.Array(columns)
        c, _ = lapack.dpotrf(a, lower=1)
        x, _ = lapack.dpotrs(c, b, lower=1)
        lu, piv, _ = lapack.dgetrf(a)
        np.testing.assert_allclose(c.host, np.linalg.cholesky(host))
        np.testing.assert_allclose(host @ x.host, columns, atol=1e-12)
        np.testing.assert_allclose(lapack.dgetrs(lu, piv, b)[0].host, x.host, atol=1e-12)
        one = lapack.dgetrs(lu, piv, fake_device.Array(columns[..., :1].copy()))[0]
        np.testing.assert_allclose(one.host, x.host[..., :1], atol=1e-12)
        for factor in (c, lu):
            assert (factor.host.strides[-1] == factor.host.itemsize) == by_rows
        np.testing.assert_array_equal(a.host, host)
    assert len(repeats) == 2 * 5


def definite(*shape, seed=0):
    a = device(*shape, seed=seed)
    a.host[...] = a.host @ a.host.swapaxes(-1, -2)
    return a


#: Functions of linalg on a matrix and a right-hand side, SciPy's for the same, and how often each waits.
FUNCTIONS = {
    "cholesky": (lambda a, b: linalg.cholesky(a), lambda a, b: np.linalg.cholesky(a).swapaxes(-1, -2), 1),
    "upper=False": (lambda a, b: linalg.cholesky(a, upper=False), lambda a, b: np.linalg.cholesky(a), 1),
    "cho_solve": (lambda a, b: linalg.cho_solve((a, True), b), lambda a, b: _by_factor(a, b), 0),
    "solve": (linalg.solve, np.linalg.solve, 1),
    "vector": (lambda a, b: linalg.solve(a, b[:, 0]), lambda a, b: np.linalg.solve(a, b[:, :1])[..., 0], 1),
    "transposed": (
        lambda a, b: linalg.solve(a, b, transposed=True),
        lambda a, b: np.linalg.solve(a.swapaxes(-1, -2), b),
        1,
    ),
    "pos": (lambda a, b: linalg.solve(a, b, assume_a="pos"), np.linalg.solve, 1),
    "triangular": (
        lambda a, b: linalg.solve(a, b, assume_a="lower triangular"),
        lambda a, b: np.linalg.solve(np.tril(a), b),
        1,
    ),
    "triangular, vector": (
        lambda a, b: linalg.solve(a, b[:, 1], assume_a="upper triangular", transposed=True),
        lambda a, b: np.linalg.solve(np.triu(a).swapaxes(-1, -2), b[:, 1:])[..., 0],
        1,
    ),
    "inv": (lambda a, b: linalg.inv(a), lambda a, b: np.linalg.inv(a), 1),
    "inv pos": (lambda a, b: linalg.inv(a, assume_a="pos", lower=True), lambda a, b: np.linalg.inv(a), 1),
    "det": (lambda a, b: linalg.det(a), lambda a, b: np.linalg.det(a), 0),
    "slogdet": (lambda a, b: linalg.slogdet(a)[1], lambda a, b: np.linalg.slogdet(a)[1], 0),
    "qr": (lambda a, b: _product(*linalg.qr(a)), lambda a, b: a, 0),
    "qr raw": (lambda a, b: linalg.qr(a, mode="raw")[1], lambda a, b: np.linalg.qr(a, mode="r"), 0),
    "qr r": (lambda a, b: _first(linalg.qr(a, mode="r")), lambda a, b: np.linalg.qr(a, mode="r"), 0),
    "qr economic": (
        lambda a, b: _product(*linalg.qr(a[..., :3], mode="economic")),
        lambda a, b: a[..., :3],
        0,
    ),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], np.linalg.solve, 0),
    "lstsq residues": (
        lambda a, b: linalg.lstsq(a[..., :2], b[:, 0])[1],
        lambda a, b: _least_squares(a[..., :2], b[:, :1])[..., 0],
        0,
    ),
    "lu_factor": (lambda a, b: linalg.lu_factor(a)[1], lambda a, b: _pivots(a), 0),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), np.linalg.solve, 0),
}


def _product(q, r):
    return fake_device.Array(q.host @ r.host)


def _least_squares(a, b):
    """Squares of residuals."""
    residuals = b - a @ (np.linalg.pinv(a) @ b)
    return (residuals * residuals).sum(-2)


def _pivots(a):
    matrices = a.reshape(-1, *a.shape[-2:])
    pivots = np.stack([scipys.dgetrf(matrix)[1] for matrix in matrices]).reshape(a.shape[:-1])
    return pivots.astype(np.int32)


def _first(results):
    return results[0] if isinstance(results, tuple) else results


def _by_factor(a, b):
    factor = np.tril(a)
    return np.linalg.solve(factor @ factor.swapaxes(-1, -2), b)


@pytest.fixture
def chains(fake, monkeypatch):
    """Functions of linalg that were repeated, and the copies to the host."""
    seen = SimpleNamespace(repeated=[], copied=0)
    repeat, (_, memory) = factor_chain.repeat_chain, fake

    def spy(flags, arrays):
        done = repeat(flags, arrays)
        if done is not None:
            seen.repeated.append(flags[0])
        return done

    def to_host(*arguments):
        seen.copied += 1
        type(memory).to_host(memory, *arguments)

    for module in ("cholesky", "solve", "inverse", "determinant", "lu", "qr", "least_squares"):
        monkeypatch.setattr(f"pyblasgpu.api.linalg.{module}.repeat_chain", spy)
    monkeypatch.setattr(memory, "to_host", to_host)
    return seen


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5), (40, 40)], ids=["matrix", "stack", "larger"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_linalg_on_other_arrays(chains, name, shape):
    """Results are new each time; a repeated call waits for one small copy at most."""
    function, expected, waits = FUNCTIONS[name]
    kept = []
    for seed in range(3):
        a, b = definite(*shape, seed=seed), device(shape[-1], 2, seed=seed + 9)
        before = a.host.copy(), b.host.copy()
        chains.copied = 0
        kept.append((function(a, b), expected(*before)))
        np.testing.assert_array_equal(a.host, before[0])
        np.testing.assert_array_equal(b.host, before[1])
    for result, reference in kept:
        np.testing.assert_allclose(result.host, reference, 1e-9, 1e-9)
        assert result.host.dtype == reference.dtype
    assert chains.repeated and chains.copied == waits
    assert len(chains.repeated) == 2 * (2 if name == "lu_solve" else 1)


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5)], ids=["matrix", "stack"])
@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "inv pos"])
def test_one_launch_leaves_info_in_memory_of_the_host(chains, fake, monkeypatch, name, shape):
    """Nothing is copied, and numbers that are not 0 raise; of several launches info stays on the device."""
    function, expected, _ = FUNCTIONS[name]
    numbers, waits = np.full(shape[0] if len(shape) > 2 else 1, -1, np.int32), []

    def synchronize(*_):
        waits.append(numbers.copy())

    monkeypatch.setattr(CachedCall, "uses_of", lambda *_: 1)
    place = Place(numbers, numbers.ctypes.data)
    monkeypatch.setattr(factor_chain, "place_to_write", lambda *_: place)
    monkeypatch.setattr(events, "record", lambda stream: SimpleNamespace(join=synchronize))
    monkeypatch.setattr(fake[1], "synchronize", synchronize)
    function(definite(*shape), device(shape[-1], 2))
    chains.copied = 0
    a, b = definite(*shape, seed=3), device(shape[-1], 2)
    reference = expected(a.host.copy(), b.host.copy())
    np.testing.assert_allclose(function(a, b).host, reference, 1e-9, 1e-9)
    assert not chains.copied and len(waits) == 1 and not waits[0].any()
    a.host[..., 0] = a.host[..., 0, :] = 0
    with pytest.raises(np.linalg.LinAlgError):
        function(a, b)
    assert len(waits) == 2 and waits[1].all()


@pytest.mark.parametrize("name", ["solve", "inv", "inv pos"])
def test_the_host_waits_while_the_device_solves(chains, fake, monkeypatch, name):
    """The copy of info follows the factors, and is waited for once all is enqueued, also where that fails."""
    seen, (_, memory), run = [], fake, CachedCall.run_fitting
    function, *_ = FUNCTIONS[name]
    for _ in range(2):
        function(definite(40, 40), device(40, 2))

    def begin_to_host(*arguments):
        seen.append("begin")
        type(memory).begin_to_host(memory, *arguments)
        return SimpleNamespace(join=lambda: seen.append("join"))

    def run_fitting(call, pointers, stream):
        seen.append("call")
        if seen.count("call") == fails_at:
            raise MemoryError
        run(call, pointers, stream)

    monkeypatch.setattr(memory, "begin_to_host", begin_to_host)
    monkeypatch.setattr(CachedCall, "run_fitting", run_fitting)
    fails_at = 0
    function(definite(40, 40), device(40, 2))
    assert seen == ["call", "begin", "call", "join"]
    seen.clear()
    fails_at = 2
    with pytest.raises(MemoryError):
        function(definite(40, 40), device(40, 2))
    assert seen == ["call", "begin", "call", "join"]


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4)], ids=["matrix", "stack"])
def test_what_a_factorization_found_is_raised_again(chains, shape):
    """Where a matrix is singular, or not definite, of a repeated call too; none of the next one."""
    right = device(4, 2)
    for function, text in (
        (linalg.cholesky, "2-th leading minor of the array is not positive definite"),
        (lambda a: linalg.solve(a, right), r"A singular matrix detected: slice\(s\) \[.\] are singular."),
        (linalg.inv, r"A singular matrix detected: slice\(s\) \[.\] are singular."),
        (
            lambda a: linalg.solve(a, right, assume_a="upper triangular"),
            r"A singular matrix detected: slice\(s\) \[.\] are singular.",
        ),
    ):
        good, bad = definite(*shape), definite(*shape)
        bad.host[..., 1, :] = bad.host[..., :, 1] = 0
        if len(shape) > 2:
            bad.host[0] = bad.host[2] = good.host[0]
        function(good)
        before = len(chains.repeated)
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError, match=text):
                function(bad)
            function(good)
        assert len(chains.repeated) == before + 2


@pytest.mark.parametrize("flags", [{"overwrite_a": True}, {"overwrite_b": True}])
def test_functions_that_overwrite(chains, flags):
    for seed in range(3):
        a, b = definite(4, 4, seed=seed), device(4, 2, seed=seed + 9)
        before = b.host.copy()
        expected = np.linalg.solve(a.host, b.host)
        x = linalg.solve(a, b, **flags)
        np.testing.assert_allclose(x.host, expected, 1e-9, 1e-9)
        assert (x is b) == ("overwrite_b" in flags)
        assert x is b or (b.host == before).all()
    assert chains.repeated == ["solve"] * 2


def test_arrays_that_overlap_are_checked(chains):
    """One array as both, and a right-hand side in the memory of the matrix."""
    a, b = definite(4, 4), device(4, 4)
    for _ in range(2):
        linalg.solve(a, b)
        linalg.solve(a.copy(), b.copy(), overwrite_b=True)
    np.testing.assert_allclose(linalg.solve(a, a).host, np.eye(4), atol=1e-12)
    same = a.copy()
    np.testing.assert_allclose(linalg.solve(same, same, overwrite_b=True).host, np.eye(4), atol=1e-12)
    for flags in ({"overwrite_a": True}, {"overwrite_a": True, "overwrite_b": True}):
        for structure in ("gen", "pos"):
            same = a.copy()
            x = linalg.solve(same, same[:, 1:2], assume_a=structure, **flags)
            np.testing.assert_allclose(x.host, np.eye(4)[:, 1:2], atol=1e-12)
    assert chains.repeated == ["solve"] * 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: linalg.cholesky(a, overwrite_a="yes"), ValueError, "overwrite_a"),
        (lambda a: linalg.cholesky(a, lower=1.0), ValueError, "lower"),
        (lambda a: linalg.cholesky(a, check_finite=True), ValueError, "infs or NaNs"),
        (lambda a: linalg.solve(a, a, assume_a="big"), ValueError, "not a recognized"),
        (lambda a: linalg.solve(a, a[:2]), ValueError, "incompatible shapes"),
        (lambda a: linalg.solve(a, np.ones((4, 1))), TypeError, "one library"),
        (lambda a: linalg.inv(a, lower=[1]), ValueError, "lower"),
        (lambda a: linalg.lu_solve((a, np.ones(4)), a), TypeError, "piv"),
    ],
)
def test_what_a_function_refuses_it_refuses_again(chains, call, error, text):
    good, bad = definite(4, 4), definite(4, 4)
    bad.host[0, 0] = np.nan
    linalg.cholesky(good), linalg.solve(good, good.copy()), linalg.inv(good)
    linalg.lu_solve(linalg.lu_factor(good), good)
    before = bad.host.copy()
    with pytest.raises(error, match=text):
        call(bad)
    np.testing.assert_array_equal(bad.host, before)


def test_a_method_is_not_kept(chains):
    """The kernels of a method are those within the call."""
    a = definite(4, 4)
    single, right = fake_device.Array(a.host.astype("f")), fake_device.Array(np.ones((4, 2), "f", order="F"))
    for _ in range(2):
        linalg.solve(single, right, method="tensor")
    assert not chains.repeated


def test_devices_that_are_named_around_a_call_serve_it(chains):
    a = definite(4, 4)
    linalg.cholesky(a)
    with use_devices(max_device_memory=1 << 30):
        linalg.cholesky(a)
    assert not chains.repeated
