"""Factors and solves of device arrays: they stay there, and what was found is read and told."""

from __future__ import annotations

import sys
from types import ModuleType

import fake_device
import fake_libraries
import numpy as np
import pytest
import scipy.linalg

from pyblasgpu import linalg
from pyblasgpu.api.linalg import host as linalg_host
from pyblasgpu.frontend.arrays import libraries

put = fake_device.Array
RNG = np.random.default_rng(11)
GENERAL = RNG.standard_normal((2, 5, 5)) + 1j * RNG.standard_normal((2, 5, 5))
DEFINITE = GENERAL @ GENERAL.conj().swapaxes(-1, -2) + 5 * np.eye(5)
B = RNG.standard_normal((5, 3))


def check(actual, expected):
    assert type(actual) is put
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.host, expected, 1e-10, 1e-10)


@pytest.fixture(params=[0, ...], ids=["matrix", "stack"])
def pick(request, fake):
    return lambda stack: stack[request.param]


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(pick, lower):
    a = pick(DEFINITE)
    check(linalg.cholesky(put(a), lower), scipy.linalg.cholesky(a, lower))
    pair = linalg.cho_factor(put(a), lower)
    check(linalg.cho_solve(pair, put(B)), np.linalg.solve(a, B))
    check(linalg.cho_solve(pair, put(B[:, 0])), np.linalg.solve(a, B[:, :1])[..., 0])
    for function, options in ((linalg.solve, {}), (linalg.inv, {})):
        right = () if function is linalg.inv else (put(B),)
        expected = np.linalg.inv(a) if function is linalg.inv else np.linalg.solve(a, B)
        check(function(put(a), *right, lower=lower, assume_a="pos", **options), expected)


def test_lu(pick):
    a = pick(GENERAL)
    factors, pivots = linalg.lu_factor(put(a))
    expected = scipy.linalg.lu_factor(a)
    check(factors, expected[0])
    check(pivots, expected[1])
    for trans, matrix in ((0, a), (1, a.swapaxes(-1, -2)), (2, a.conj().swapaxes(-1, -2))):
        check(linalg.lu_solve((factors, pivots), put(B), trans), np.linalg.solve(matrix, B))
    check(linalg.solve(put(a), put(B)), np.linalg.solve(a, B))
    check(linalg.inv(put(a)), np.linalg.inv(a))
    check(linalg.det(put(a)), np.asarray(np.linalg.det(a)))
    for actual, reference in zip(linalg.slogdet(put(a)), np.linalg.slogdet(a), strict=True):
        check(actual, np.asarray(reference))
    for options in ({}, {"permute_l": True}, {"p_indices": True}):
        for actual, reference in zip(
            linalg.lu(put(a), **options), scipy.linalg.lu(a, **options), strict=True
        ):
            check(actual, reference)


@pytest.mark.parametrize("structure", ["upper triangular", "lower triangular", "diagonal", "sym", "her"])
def test_structures(pick, structure):
    a = pick(DEFINITE)
    full = {
        "upper triangular": np.triu(a),
        "lower triangular": np.tril(a),
        "diagonal": a * np.eye(5),
        "sym": np.triu(a) + np.triu(a, 1).swapaxes(-1, -2),
        "her": a,
    }[structure]
    check(linalg.solve(put(a), put(B), assume_a=structure), np.linalg.solve(full, B))
    check(linalg.inv(put(a), assume_a=structure), np.linalg.inv(full))


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("lower", [False, True])
def test_launch_lists_of_triangles(card, dtype, order, lower):
    """The other triangle is not read, whatever the layout; repeated calls and zeros on the diagonal too."""
    n, structure = 40, f"{'lower' if lower else 'upper'} triangular"
    a = RNG.standard_normal((2, n, n)) + (1j * RNG.standard_normal((2, n, n)) if dtype == "D" else 0)
    a, b = (a @ a.conj().swapaxes(1, 2) + n * np.eye(n)).astype(dtype), a[0, :, :3].astype(dtype, order=order)
    triangle = np.tril if lower else np.triu
    for whole in (a, np.asarray(a[0], order=order)):
        read = np.where(triangle(np.ones((n, n), bool)), whole, np.nan)
        read = put(np.asarray(read, order="K" if whole.ndim > 2 else order))
        zero = put(np.where(np.arange(n) == 7, 0, whole))
        for _ in range(2):
            check(linalg.inv(read, assume_a="pos", lower=lower), np.linalg.inv(whole))
            solution = np.linalg.solve(triangle(whole), b)
            check(linalg.solve(read, put(b), assume_a=structure), solution)
            if dtype == "d":
                solution = np.linalg.solve(triangle(whole).swapaxes(-1, -2), b)
                check(linalg.solve(read, put(b), assume_a=structure, transposed=True), solution)
            with pytest.raises(np.linalg.LinAlgError, match="are singular"):
                linalg.solve(zero, put(b), assume_a=structure)


def test_what_was_found_is_told(fake):
    bad = np.stack([np.eye(3), np.ones((3, 3)), -np.eye(3)])
    with pytest.raises(np.linalg.LinAlgError, match="2-th leading minor"):
        linalg.cholesky(put(bad))
    with pytest.raises(np.linalg.LinAlgError, match=r"slice\(s\) \[1\] are singular"):
        linalg.solve(put(bad), put(np.ones(3)))
    with pytest.raises(np.linalg.LinAlgError, match=r"slice\(s\) \[1, 2\] are singular"):
        linalg.inv(put(bad), assume_a="pos")
    np.testing.assert_array_equal(linalg.det(put(bad)).host, [1, 0, -1])
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.lu_factor(put(np.full((2, 2), np.nan)), check_finite=True)
    with pytest.raises(NotImplementedError, match="'banded' is for host arrays"):
        linalg.solve(put(bad[0]), put(np.ones(3)), assume_a="banded")


def test_what_may_be_overwritten(fake):
    a, b = put(DEFINITE[0].copy()), put(B.astype("D"))
    factor = linalg.cholesky(a, overwrite_a=True)
    assert np.shares_memory(factor.host, a.host)
    assert np.shares_memory(linalg.cho_solve((factor, False), b, overwrite_b=True).host, b.host)
    check(b, np.linalg.solve(DEFINITE[0], B))


def test_empty_arrays(fake):
    for shape in ((0, 0), (2, 0, 0)):
        assert linalg.cholesky(put(np.ones(shape))).shape == shape
        assert linalg.inv(put(np.ones(shape))).shape == shape
        np.testing.assert_array_equal(linalg.det(put(np.ones(shape))).host, np.ones(shape[:-2]))
        assert linalg.solve(put(np.ones(shape)), put(np.ones((0, 2)))).shape == (*shape[:-1], 2)


@pytest.mark.parametrize("stacked", [False, True])
def test_host_matrices_visit_the_device_once(fake, stacked):
    _, memory = fake
    a, b = (GENERAL, B[:, :1].astype("D")) if stacked else (GENERAL[0], B[:, :1].astype("D"))
    definite = DEFINITE if stacked else DEFINITE[0]
    column = np.linalg.solve(a, b)  # which is broadcast, and goes once
    probes = 12 * column.size  # vectors that are solved for to know the condition
    for actual, expected, extra, more in [
        (lambda: linalg.solve(a, b, assume_a="gen", check_finite=False), column, b.size, probes),
        (lambda: linalg.solve(definite, b, assume_a="pos"), np.linalg.solve(definite, b), b.size, probes),
        (lambda: linalg.inv(a), np.linalg.inv(a), 0, 0),
        (lambda: linalg.inv(definite, assume_a="pos"), np.linalg.inv(definite), 0, 0),
    ]:
        memory.copied = 0
        np.testing.assert_allclose(actual(), expected, 1e-10, 1e-10)
        assert 0 <= memory.copied - a.size - extra <= more
        assert not memory.held


def test_a_device_computes_by_columns(fake, monkeypatch):
    """Results by rows are transposed there; those in the arguments, and vectors, are not copied."""
    routines, _ = fake
    whole, seen = linalg_host.launch_list_of, []

    def watching(name):
        def prepare(*operands, **flags):
            seen.append(operands[-1].row_stride)
            return whole(name)(*operands, **flags)

        return prepare

    monkeypatch.setattr(linalg_host, "launch_list_of", watching)
    by_columns, b = np.asfortranarray(GENERAL[0]), B.astype("D")
    for call, copies in [
        (lambda: linalg.inv(by_columns), 2),  # of real and imaginary parts
        (lambda: linalg.inv(by_columns.copy("F"), overwrite_a=True), 0),
        (lambda: linalg.solve(by_columns, b[:, 0].copy(), assume_a="gen"), 0),
        (lambda: linalg.solve(by_columns, np.asfortranarray(b), assume_a="gen"), 2),
        (lambda: linalg.solve(by_columns, np.asfortranarray(b), overwrite_b=True, assume_a="gen"), 0),
    ]:
        routines.calls.clear()
        call()
        assert [each[0] for each in routines.calls].count("copy") == copies
    assert set(seen) == {1}


class Tensor:
    """One that the protocols alone describe; its library has a `from_dlpack` and no array API."""

    def __init__(self, host):
        self.host = np.asarray(host)

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)

    def __dlpack__(self, **options):
        return self.host.__dlpack__()

    def __dlpack_device__(self):
        return 2, 0

    def __setitem__(self, index, values):
        self.host[index] = values.host


Tensor.__module__ = "tensors"


@pytest.fixture
def tensors(fake, monkeypatch):
    module = ModuleType("tensors")
    module.from_dlpack = lambda exporter: Tensor(exporter.host)
    monkeypatch.setitem(sys.modules, "tensors", module)
    yield fake_libraries.install(monkeypatch)
    libraries.module.cache_clear()


def test_results_of_views_are_arrays_of_the_callers_library(tensors):
    """CuPy computes what no kernel does, on views of the arrays."""
    a, b = DEFINITE[0], B + 0j

    def check_each(actual, expected):
        for one, other in zip(actual, expected, strict=True):
            assert type(one) is Tensor
            np.testing.assert_allclose(one.host, other, 1e-10, 1e-10)

    factors = linalg.lu_factor(Tensor(a))
    check_each(factors, scipy.linalg.lu_factor(a))
    check_each([linalg.lu_solve(factors, Tensor(b))], [np.linalg.solve(a, b)])
    pair = linalg.cho_factor(Tensor(a), True)
    check_each([linalg.cho_solve(pair, Tensor(b))], [np.linalg.solve(a, b)])
    check_each(linalg.slogdet(Tensor(a)), np.linalg.slogdet(a))
    out = Tensor(np.zeros((5, 3), complex))
    assert linalg.dot(Tensor(a), Tensor(b), out) is out
    check_each([out], [a @ b])
    number = Tensor(np.zeros((), complex))
    assert linalg.einsum("ij,ij", Tensor(a), Tensor(a), number) is number
    check_each([number], [np.sum(a * a)])
