"""Repeated calls of functions of linalg on device arrays: as the first one, whatever has changed since."""

from __future__ import annotations

from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
from fake_device import regular
from scipy.linalg import lapack as scipys

from pyblasgpu import linalg, use_devices
from pyblasgpu.frontend.arrays.device_integers import Place
from pyblasgpu.frontend.calls import factor_chain
from pyblasgpu.frontend.calls.call_cache import CachedCall
from pyblasgpu.gpu import events


def definite(*shape, seed=0):
    a = regular(*shape, seed=seed)
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
        a, b = definite(*shape, seed=seed), regular(shape[-1], 2, seed=seed + 9)
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
    function(definite(*shape), regular(shape[-1], 2))
    chains.copied = 0
    a, b = definite(*shape, seed=3), regular(shape[-1], 2)
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
        function(definite(40, 40), regular(40, 2))

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
    function(definite(40, 40), regular(40, 2))
    assert seen == ["call", "begin", "call", "join"]
    seen.clear()
    fails_at = 2
    with pytest.raises(MemoryError):
        function(definite(40, 40), regular(40, 2))
    assert seen == ["call", "begin", "call", "join"]


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4)], ids=["matrix", "stack"])
def test_what_a_factorization_found_is_raised_again(chains, shape):
    """Where a matrix is singular, or not definite, of a repeated call too; none of the next one."""
    right = regular(4, 2)
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
        a, b = definite(4, 4, seed=seed), regular(4, 2, seed=seed + 9)
        before = b.host.copy()
        expected = np.linalg.solve(a.host, b.host)
        x = linalg.solve(a, b, **flags)
        np.testing.assert_allclose(x.host, expected, 1e-9, 1e-9)
        assert (x is b) == ("overwrite_b" in flags)
        assert x is b or (b.host == before).all()
    assert chains.repeated == ["solve"] * 2


def test_arrays_that_overlap_are_checked(chains):
    """One array as both, and a right-hand side in the memory of the matrix."""
    a, b = definite(4, 4), regular(4, 4)
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
