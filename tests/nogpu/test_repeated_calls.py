"""Calls that are known: their flags and numbers are looked at as those of the first one."""

from __future__ import annotations

from functools import partial

import fake_device
import fake_kernels
import numpy as np
import pytest
import scipy.linalg.blas

from pyblasgpu import blas, gemm, gemmtr, symm, syrk, trmm, trsm
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.frontend.calls.call import Call
from pyblasgpu.testing import reference
from pyblasgpu.types import Diag, Uplo


@pytest.fixture
def arrays(fake):
    """Device arrays a, b, out; nothing is known yet."""
    return [fake_device.Array(np.array([[2.0, 7.0], [1.0, 4.0]]) + i) for i in range(3)]


@pytest.mark.parametrize("value", [10**400, "2", None, [1.0, 2.0], 1j])
def test_numbers_that_are_refused(arrays, value):
    a, b, out = arrays
    for _ in range(2):
        gemm(a, b, out=out, alpha=2)
    before = out.host.copy()
    for argument in ("alpha", "beta"):
        with pytest.raises((TypeError, ValueError), match=f"gemm: {argument}[ =]"):
            gemm(a, b, out=out, **{argument: value})
    np.testing.assert_array_equal(out.host, before)


@pytest.mark.parametrize(
    ("routine", "flags"),
    [
        (gemm, {"trans_a": 1}),
        (trmm, {"lower": 1}),
        (trmm, {"unit_diag": 0}),
        (symm, {"side": 1}),
        (syrk, {"trans": 1}),
    ],
    ids=lambda parameter: getattr(parameter, "__name__", str(parameter)),
)
def test_what_equals_a_flag_is_none(arrays, routine, flags):
    a, b, out = arrays
    inputs = (a,) if routine is syrk else (a, b)
    out = b if routine is trmm else out
    for _ in range(2):
        routine(*inputs, out=out, **flags)
    before = out.host.copy()
    ((flag, value),) = flags.items()
    for other in (float(value), np.float64(value), complex(value)):
        with pytest.raises(ValueError, match=f"{flag}="):
            routine(*inputs, out=out, **{flag: other})
    np.testing.assert_array_equal(out.host, before)
    for other in (bool(value), np.bool_(value), np.int8(value)):
        routine(*inputs, out=out, **{flag: other})


def test_a_flag_that_is_an_array_may_change(arrays):
    a, b, out = arrays
    flag = np.array(0)
    for value in (0, 1, 0):
        flag[...] = value
        gemm(a, b, out=out, trans_a=flag)
        np.testing.assert_array_equal(out.host, (a.host.T if value else a.host) @ b.host)
    assert not call_cache.count()


def test_a_number_that_is_0_in_single_precision_hides_what_0_hides(fake):
    a, out = fake_device.Array(np.ones((2, 2), "f4")), fake_device.Array(np.ones((2, 2), "f4"))
    nan = fake_device.Array(np.full((2, 2), np.nan, "f4"))
    for _ in range(2):
        gemm(a, a, out=out)
    gemm(nan, nan, out=out, alpha=1e-300)
    np.testing.assert_array_equal(out.host, np.zeros((2, 2)))
    gemm(a, a, out=out, alpha=1e300)
    assert np.isinf(out.host).all()


@pytest.mark.parametrize("routine", [syrk, gemmtr])
@pytest.mark.parametrize("new_first", [True, False])
def test_the_other_triangle_is_written_in_new_outputs_alone(fake, routine, new_first):
    """Calls with and without `out` whose arrays lie alike are different calls."""
    inputs = [fake_device.Array(np.full((3, 3), 2.0, order="F")) for _ in range(1 if routine is syrk else 2)]
    zeroed = np.triu(np.full((3, 3), 12.0))
    for is_new in (new_first, not new_first) * 2:
        if is_new:
            np.testing.assert_array_equal(routine(*inputs).host, zeroed)
        else:
            out = fake_device.Array(np.full((3, 3), 7.0, order="F"))
            routine(*inputs, out=out)
            np.testing.assert_array_equal(out.host, zeroed + np.tril(np.full((3, 3), 7.0), -1))


@pytest.mark.parametrize("routine", [trmm, trsm])
def test_calls_in_place_and_into_new_arrays_are_kept_apart(fake, routine):
    a = fake_device.Array(np.array([[2.0, 0.0], [0.0, 4.0]], order="F"))
    expected = {trmm: [[2.0, 2.0], [4.0, 4.0]], trsm: [[0.5, 0.5], [0.25, 0.25]]}[routine]
    for in_place in (False, True, False, True):
        b = fake_device.Array(np.ones((2, 2), order="F"))
        result = routine(a, b, out=b if in_place else None)
        np.testing.assert_array_equal(result.host, expected)
        assert in_place or (b.host == 1).all()
        zero = routine(a, b, alpha=0, out=b if in_place else None)
        np.testing.assert_array_equal(zero.host, np.zeros((2, 2)))
    assert call_cache.count() == 2


def made_twice(monkeypatch, call, *others):
    """The results of a call, of the same without `Call`, and of `others`, without it too."""
    call_cache.clear()
    first = call()
    for module in ("level3", "triangular", "symmetric", "rank_k", "level2"):
        monkeypatch.setattr(f"pyblasgpu.api.keyword.{module}.Call", None)
    results = [first, *(again() for again in (call, *others))]
    monkeypatch.undo()
    fake_device.install(monkeypatch)
    return results


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("routine", [gemm, symm, trmm, trsm])
def test_new_results_are_made_anew_without_checks(fake, monkeypatch, routine, order):
    a = fake_device.Array(np.array([[2.0, 1.0], [0.0, 4.0]], order=order))
    b = fake_device.Array(np.array([[1.0, 3.0], [5.0, 7.0]], order=order))
    before = a.host.copy(), b.host.copy()
    call = partial(routine, a, b)
    first, again, scaled = made_twice(monkeypatch, call, partial(routine, a, b, alpha=2.0))
    assert len({id(first), id(again), id(scaled)}) == 3
    assert again.host.strides == first.host.strides and again.host.shape == first.host.shape
    np.testing.assert_array_equal(again.host, first.host)
    np.testing.assert_array_equal(scaled.host, 2 * first.host)
    for array, unchanged in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(array.host, unchanged)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("routine", [gemm, symm, trmm, trsm])
def test_an_array_that_is_passed_twice_is_two(fake, routine, is_new):
    """Calls whose arrays lie alike are one, whichever of them are the same object."""
    a, b = (np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([[1.0, 3.0], [5.0, 7.0]]))
    for left, right in ((a, a), (a, b), (a, a), (b, a)):
        one = fake_device.Array(left.copy())
        other = one if left is right else fake_device.Array(right.copy())
        out = None if is_new else fake_device.Array(np.zeros((2, 2)))
        expected = routine(left, right, backend="cpu")
        np.testing.assert_array_equal(routine(one, other, out=out).host, expected)


@pytest.mark.parametrize("routine", [trmm, trsm])
def test_results_in_another_array_are_repeated(fake, monkeypatch, routine):
    a = fake_device.Array(np.array([[2.0, 1.0], [0.0, 4.0]]))
    b, out = (fake_device.Array(np.array([[1.0, 3.0], [5.0, 7.0]])) for _ in range(2))
    first, again = made_twice(monkeypatch, partial(routine, a, b, out=out))
    assert first is again is out and (b.host == [[1.0, 3.0], [5.0, 7.0]]).all()
    np.testing.assert_array_equal(out.host, routine(a, b).host)
    with pytest.raises(OverlapError):
        routine(a, b, out=fake_device.Array(b.host[::-1]))


def test_a_new_result_has_nothing_to_scale(arrays):
    a, b, _ = arrays
    for _ in range(2):
        gemm(a, b)
        with pytest.raises(ValueError, match="beta=1 needs out"):
            gemm(a, b, beta=1)
    np.testing.assert_array_equal(gemm(a, b, alpha=0).host, np.zeros((2, 2)))


def test_a_method_is_part_of_the_call(fake):
    """A call that is kept has its method, too; host arrays that the CPU serves are multiplied as without."""
    a, b = (fake_device.Array(np.array([[1 + 2j, 3], [4j, 5 - 1j]]) + i) for i in range(2))
    out = fake_device.Array(np.zeros((2, 2), complex))
    for method in ("3m", None, "3m", None):
        gemm(a, b, out=out, method=method)
        np.testing.assert_array_equal(out.host, a.host @ b.host)
    assert [name for name, *_ in fake[0].calls] == ["gemm 3m", "gemm", "gemm 3m", "gemm"]
    np.testing.assert_array_equal(gemm(a.host, b.host, backend="cpu", method="3m"), a.host @ b.host)


#: Routines of vectors, and of vectors taken as matrices: calls that make a result, add to a copy of an array,
#: and overwrite it. The triangle is t, the symmetric matrix s.
OF_VECTORS = """
gemv(2, a, x)
gemv(2, a, x, trans=1)
gemv(2, a, u)
gemv(2, a, x, 3, y)
gemv(2, a, x, 3, y, overwrite_y=1)
gemv(2, a, x, 0, y, overwrite_y=1)
symv(2, s, x)
symv(2, s, x, 3, y, lower=1)
trsv(t, x, lower=1)
trsv(t, x, lower=1, trans=1, overwrite_x=1)
trmv(t, x, lower=1)
trmv(t, x, lower=1, overwrite_x=1)
ger(2, x, y)
ger(2, x, y, a=a)
ger(2, x, y, a=a, overwrite_a=1)
syr(2, x, lower=1)
syr(2, x, a=s, overwrite_a=1)
syr2(2, x, y)
syr2(2, x, y, a=s)
gemm(2, a, x)
gemm(2, a, x, 3, y)
gemm(2, a, u, 3, y, overwrite_c=1)
symm(2, s, x)
trmm(2, t, x, lower=1)
trmm(2, t, x, lower=1, overwrite_b=1)
trsm(2, t, x, lower=1)
trsm(2, t, x, lower=1, overwrite_b=1)
"""


def operands(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {name: rng.integers(-4, 5, (5, 5)).astype(float) for name in "at"}
    made |= {name: rng.integers(-4, 5, 5).astype(float) for name in "xy"}
    made["u"] = rng.integers(-4, 5, (5, 1)).astype(float)
    made["t"], made["s"] = np.tril(made["t"], -1) + np.eye(5), made["a"] + made["a"].T
    return {name: np.asfortranarray(array) for name, array in made.items()}


def by_both(call: str, host: dict[str, np.ndarray], on_device: dict[str, fake_device.Array]) -> list:
    """The results of a call by this package, on the device, and by SciPy."""
    modules = ((blas, on_device), (scipy.linalg.blas, host))
    return [eval(f"module.d{call}", {"module": each, **given}) for each, given in modules]  # noqa: S307


@pytest.mark.parametrize("call", OF_VECTORS.strip().split("\n"))
def test_calls_of_vectors_by_scipys_names(fake, monkeypatch, call):
    """A repeated one makes no `Call`, on other arrays and with another factor too."""
    fake_kernels.install_below(monkeypatch)
    made, build = [], Call.__init__
    monkeypatch.setattr(Call, "__init__", lambda *given, **named: made.append(call) or build(*given, **named))
    for seed in range(3):
        host = operands(seed)
        on_device = {name: fake_device.Array(np.array(x, order="F")) for name, x in host.items()}
        made.clear()
        result, expected = by_both(call.replace("(2,", "(0.5,") if seed == 2 else call, host, on_device)
        np.testing.assert_array_equal(result.host, expected)
        assert result.host.strides == expected.strides
        for name, array in on_device.items():  # what SciPy overwrites is overwritten
            np.testing.assert_array_equal(array.host, host[name])
        assert bool(made) == (seed == 0)


@pytest.mark.parametrize("call", ["gemv(2, a, z, 3, y, offx=1)", "gemv(2, a, y[::-1])", "trsv(t, z[1:])"])
def test_parts_of_vectors(fake, monkeypatch, call):
    fake_kernels.install_below(monkeypatch)
    for seed in range(3):
        host = {**operands(seed), "z": np.arange(6.0) + seed}
        on_device = {name: fake_device.Array(np.array(x, order="F")) for name, x in host.items()}
        result, expected = by_both(call, host, on_device)
        np.testing.assert_array_equal(result.host, expected)


@pytest.fixture
def repeated(fake, monkeypatch):
    """Device arrays a, b, out of calls that are known; `Call` may not be needed again."""
    call_cache.clear()
    memory = np.arange(75.0)
    for start in (0, 1):
        a, b, out = (memory[start + 24 * i :][:9].reshape(3, 3) for i in range(3))
        if start:
            monkeypatch.setattr("pyblasgpu.api.keyword.level3.Call", None)
            monkeypatch.setattr("pyblasgpu.api.keyword.triangular.Call", None)
        arrays = [fake_device.Array(x) for x in (a, b, out)]
        for options in ({}, {"beta": 1, "stream": 5}, {"alpha": 2.0, "beta": 0.5}, {"backend": "cuda"}):
            expected = options.get("alpha", 1) * (a @ b) + options.get("beta", 0) * out
            assert gemm(*arrays[:2], out=arrays[2], **options) is arrays[2]
            np.testing.assert_array_equal(out, expected)
        triangle = reference.read_part(b, Uplo.LOWER, Diag.UNIT).T @ out
        trmm(arrays[1], arrays[2], lower=True, trans="C", unit_diag=True, out=arrays[2])
        np.testing.assert_array_equal(out, triangle)
    assert [stream for _, stream, _ in fake[0].calls] == [7, 5, 7, 7, 7] * 2
    monkeypatch.undo()
    fake_device.install(monkeypatch)
    return arrays, memory


def test_a_repeated_call_is_checked_where_it_must_be(repeated):
    (a, b, out), memory = repeated
    before = memory.copy()
    with pytest.raises(OverlapError):
        gemm(a, b, out=a)
    with pytest.raises(OverlapError):
        gemm(a, b, out=fake_device.Array(memory[30:39].reshape(3, 3)))
    with pytest.raises(ValueError, match="not aligned"):
        gemm(a, b, out=fake_device.Array(memory.view("u1")[500:572].view("f8").reshape(3, 3)))
    with pytest.raises(TypeError, match="complex"):
        gemm(a, b, out=out, alpha=1j)
    with pytest.raises(ValueError, match="device"):
        gemm(a, b, out=fake_device.Array(out.host, device=1))
    with pytest.raises(ValueError, match="trans_a="):
        gemm(a, b, out=out, trans_a=["N"])
    with pytest.raises(ValueError, match="out has shape"):
        gemm(a, b, out=fake_device.Array(out.host[:2]))
    np.testing.assert_array_equal(memory, before)


def test_cached_calls_do_not_grow_for_ever(fake, monkeypatch):
    call_cache.clear()
    monkeypatch.setattr(call_cache, "MOST_CALLS", 3)
    for n in range(1, 9):
        gemm(
            fake_device.Array(np.ones((n, n))),
            fake_device.Array(np.ones((n, n))),
            out=fake_device.Array(np.ones((n, n))),
        )
        assert 1 <= call_cache.count() <= 3
