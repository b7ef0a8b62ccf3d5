"""Flags, numbers and keywords of calls on device arrays; special values on both backends."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
import scipy.linalg.blas

import pyblasgpu
from pyblasgpu import blas
from pyblasgpu.linalg import matmul, solve_triangular
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .running import cupy, same

NAN = float("nan")


@pytest.fixture
def arrays():
    rng = np.random.default_rng(35)
    return [cupy.asarray(integers(rng, (33, 33), DTYPES["d"])) for _ in range(3)]


def test_numbers_of_any_kind(arrays):
    a, b, out = arrays
    expected = 2 * (a.get() @ b.get())
    one_element: Any = [2.0]
    for alpha in (
        2,
        np.int8(2),
        np.longdouble(2),
        Fraction(2),
        one_element,
        np.array([[2]]),
        cupy.asarray(2),
        cupy.ones(1) * 2,
    ):
        for _ in range(2):  # the second call is a known one
            same(pyblasgpu.gemm(a, b, alpha=alpha, out=out).get(), expected, f"alpha={alpha!r}")


@pytest.mark.parametrize("alpha", [10**400, "2", [1.0, 2.0], None, 1j])
def test_numbers_that_are_refused(arrays, alpha):
    a, b, out = arrays
    before = out.get()
    plan = pyblasgpu.plan_gemm(a, b, out)
    plan(a, b, out)
    pyblasgpu.gemm(a, b, out=out)
    with pytest.raises((TypeError, ValueError), match=r"gemm: alpha[ =]"):
        pyblasgpu.gemm(a, b, out=out, alpha=alpha)
    with pytest.raises((TypeError, ValueError), match=r"plan_gemm: alpha[ =]"):
        pyblasgpu.plan_gemm(a, b, out, alpha=alpha)
    same(out.get(), a.get() @ b.get(), "what was computed before")
    assert (before != out.get()).any()


@pytest.mark.parametrize(
    "lower", [1, True, np.True_, "L", np.str_("l"), np.int64(1), cupy.asarray(1)], ids=repr
)
def test_flags_of_any_kind(arrays, lower):
    a, b, _ = arrays
    lower = cupy.asarray(1) if lower is None else lower
    expected = np.tril(a.get()) @ b.get()
    for _ in range(2):
        target = b.copy()
        same(pyblasgpu.trmm(a, target, lower=lower, out=target).get(), expected, f"lower={lower!r}")
    number, text = cast(Any, 1.0), cast(Any, "False")
    with pytest.raises(ValueError, match="trmm: lower="):
        pyblasgpu.trmm(a, b, lower=number, out=b)
    with pytest.raises(ValueError, match="plan_trmm: lower="):
        pyblasgpu.plan_trmm(a, b, b, lower=text)


def test_a_number_that_is_0_in_single_precision():
    nan, out = cupy.full((33, 33), NAN, "f4"), cupy.ones((33, 33), "f4")
    one = cupy.ones((33, 33), "f4")
    for a, alpha, expected in [(one, 1, 33), (nan, 1e-300, 0), (one, 1e300, np.inf), (one, 2, 66)]:
        pyblasgpu.gemm(a, a, alpha=alpha, out=out)
        assert (out == expected).all(), alpha


@pytest.mark.parametrize(
    "shapes", [((31,), (5, 31, 33)), ((5, 33, 31), (31,)), ((5, 33, 31), (5, 31, 17)), ((33, 31), (31, 17))]
)
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_the_order_of_stacks(shapes, library):
    x1, x2 = (integers(np.random.default_rng(1), shape, DTYPES["d"]) for shape in shapes)
    expected = np.matmul(x1, x2, order="F")
    if library == "cupy":
        actual = matmul(cupy.asarray(x1), cupy.asarray(x2), order="F")
        strides = [step // 8 for step in actual.strides]
        actual = actual.get()
    else:
        torch = pytest.importorskip("torch")
        actual = matmul(torch.as_tensor(x1, device="cuda"), torch.as_tensor(x2, device="cuda"), order="F")
        strides, actual = list(actual.stride()), actual.cpu().numpy()
    same(actual, expected, "matmul")
    assert strides == [step // 8 for step in expected.strides]


def test_what_may_be_overwritten_and_what_is_copied():
    torch = pytest.importorskip("torch")
    a = torch.eye(33, dtype=torch.complex128, device="cuda") * 2
    b = torch.arange(33 * 3, dtype=torch.float64, device="cuda").reshape(33, 3) * (1 + 1j)
    expanded = torch.ones(33, 1, dtype=torch.complex128, device="cuda").expand(33, 3)
    for rhs in (b.conj(), expanded, b.T.contiguous().T.conj()):
        before = rhs.clone().resolve_conj()
        for actual in (
            blas.ztrsm(1.0, a, rhs, overwrite_b=1),
            blas.ztrmm(0.25, a, rhs, overwrite_b=1),
            solve_triangular(a, rhs, overwrite_b=True),
        ):
            assert torch.equal(actual.resolve_conj(), before / 2)
        assert torch.equal(rhs.resolve_conj(), before)
    target = b.T.contiguous().T
    assert blas.ztrsm(1.0, a, target, overwrite_b=1) is target and torch.equal(target, b / 2)


def test_what_is_read_too_is_not_overwritten():
    a = cupy.asfortranarray(cupy.eye(33) * 2)
    actual = blas.dgemm(1, a, a, 1, a, overwrite_c=1)
    same(actual.get(), np.eye(33) * 6, "dgemm")
    same(solve_triangular(a, a, overwrite_b=True).get(), np.eye(33), "solve_triangular")
    same(a.get(), np.eye(33) * 2, "a")


@pytest.mark.parametrize(
    "letter, one, other", [("s", "f8", "i4"), ("c", "D", "f2"), ("d", "f4", "u1"), ("z", "?", "F")]
)
def test_arrays_are_cast_as_by_scipy(letter, one, other):
    rng = np.random.default_rng(2)
    a, b = (abs(integers(rng, (33, 33), DTYPES["d"])).astype(each) for each in (one, other))
    expected = getattr(scipy.linalg.blas, letter + "gemm")(1, a, b)
    same(getattr(blas, letter + "gemm")(1, cupy.asarray(a), cupy.asarray(b)).get(), expected, letter)
    with pytest.raises(TypeError, match="dgemm: b is complex"):
        blas.dgemm(1, cupy.eye(2), cupy.eye(2, dtype="D"))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("name", ["trmm", "trsm"])
def test_both_backends_have_the_same_special_values(letter, name):
    """Where NaN and Inf stand is a matter of what depends on them, on the device as on the CPU."""
    dtype, rng = DTYPES[letter], np.random.default_rng(3)
    for lower, side, special in product((False, True), "LR", (NAN, np.inf)):
        a, b = np.eye(65, dtype=dtype.name) * 2, integers(rng, (65, 65), dtype)
        a[40, 20] = a[20, 40] = 1
        b[33, 7] = special
        options = {"lower": lower, "side": side}
        on_cpu = getattr(pyblasgpu, name)(a, b, backend="cpu", **options)
        on_device = getattr(pyblasgpu, name)(a, b, backend="cuda", **options)
        np.testing.assert_array_equal(np.isfinite(on_device), np.isfinite(on_cpu), err_msg=str(options))
        finite = np.isfinite(on_cpu)
        np.testing.assert_array_equal(on_device[finite], on_cpu[finite])
