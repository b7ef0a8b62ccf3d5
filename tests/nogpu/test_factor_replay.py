"""Repeated calls of factorisations on device arrays: as the first one, whatever has changed since."""

from __future__ import annotations

from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
from fake_device import regular
from scipy.linalg import lapack as scipys

from pyblasgpu import lapack
from pyblasgpu.api.lapack import determinants
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.calls import factor_replay
from pyblasgpu.types import DTYPES


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
        a, b = regular(5, 5, seed=seed), regular(5, 2, seed=seed + 9)
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
        a, b = regular(5, 5, seed=seed), regular(5, 2, seed=seed + 9)
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
        a = regular(5, 5, seed=seed)
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
        a = regular(4, 4, seed=seed)
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
    a = regular(4, 4)
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
        a = regular(4, 4, seed=seed, dtype="f")
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
    a, x = regular(5, 5, dtype="f"), np.arange(10.0).reshape(5, 2)
    a.host[...] = a.host @ a.host.T + 5 * np.eye(5)
    single, double = (fake_device.Array(np.asfortranarray((a.host @ x).astype(each))) for each in "fd")
    for _ in range(2):
        getattr(lapack, stem)(a, single)
    factor, *_, solution, info = getattr(lapack, stem)(a, double)
    assert factor.dtype == solution.dtype == np.float64 and int(info) == 0
    np.testing.assert_allclose(solution.host, x, atol=1e-12)


def test_an_overlap_is_found(repeats):
    memory = fake_device.Array(np.zeros((8, 8), order="F"))
    lu, piv, _ = lapack.dgetrf(regular(4, 4))
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
    a = regular(3, 3)
    lapack.dgetrf(a, overwrite_a=1)
    before = a.host.copy()
    with pytest.raises(ValueError, match="overwrite_a"):
        lapack.dgetrf(a, overwrite_a=flag)
    assert not repeats
    np.testing.assert_array_equal(a.host, before)


def test_stacks(repeats):
    for seed in range(3):
        a = regular(3, 4, 4, seed=seed, order="C")
        lu, piv, info = lapack.dgetrf(a, overwrite_a=1)
        assert lu is a and piv.shape == (3, 4) and not info.host.any()
    assert len(repeats) == 2


@pytest.mark.parametrize("overwrite", [0, 1])
def test_stacks_that_are_no_one_batch_are_computed_anew(repeats, overwrite):
    for seed in range(2):
        a, b = (
            regular(2, 5, 3, 3, seed=seed, order="C")[:, ::2],
            regular(2, 1, 3, 3, seed=seed + 5, order="C"),
        )
        matrices, right = a.host.copy(), b.host.copy()
        lu, piv, _ = lapack.dgetrf(a, overwrite)
        x, _ = lapack.dgetrs(lu, piv, b, 0, overwrite)  # one right-hand side for three matrices
        np.testing.assert_allclose(matrices @ x.host, np.broadcast_to(right, matrices.shape), atol=1e-12)
        assert (lu is a) == bool(overwrite) and piv.shape == (2, 3, 3)
        factors = regular(2, 5, 3, 3, order="C")[:, ::2]
        factors.host[...] = lu.host
        x, _ = lapack.dgetrs(factors, piv, fake_device.Array(matrices.copy()), 0, overwrite)
        np.testing.assert_allclose(x.host, np.broadcast_to(np.eye(3), matrices.shape), atol=1e-12)
    assert not repeats


def test_a_flag_of_two_overwrites(repeats):
    """SciPy takes every integer but zero so, though the repeated calls know of 0 and 1 alone."""
    for overwrite in (0, 1, 2, True):
        a = regular(4, 4)
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
