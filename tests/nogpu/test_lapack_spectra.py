"""`pyblasgpu.lapack` on eigenvalues and singular values compared with scipy.linalg.lapack."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from functools import partial
from typing import Any

import fake_device
import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.lapack as scipys
from matrices import uniform
from numpy.linalg import LinAlgError
from qr_cases import leaves
from spectra_cases import definite_of

from pyblasgpu import lapack, linalg
from pyblasgpu.api.lapack.spectra import QUERIES, ROWS, scipys_name
from pyblasgpu.api.linalg import least_squares, standard
from pyblasgpu.frontend.calls.lazy_routines import largest_order
from pyblasgpu.routines.lapack import syevd
from pyblasgpu.types import DTYPES

N = 6


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def arguments_of(letter: str, stem: str, *batch: int) -> list[np.ndarray]:
    """The arrays of a call: general, Hermitian, or Hermitian and definite ones."""
    a = uniform(letter, *batch, N, N - 2 if stem.startswith("ge") else N)
    if stem.startswith("ge"):
        return [a]
    a = a + a.swapaxes(-1, -2).conj()
    definite = (a @ a + np.eye(N)).astype(a.dtype)
    b = np.linalg.cholesky(definite) if stem == "sygst" else definite
    return [a, b] if len(ROWS[stem].arrays.split()) > 1 else [a]


def same(ours: Any, theirs: Any) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape and one.dtype.kind == other.dtype.kind
        eps = 1 if one.dtype.kind == "i" else np.finfo(one.dtype).eps
        scale = np.abs(other).max() if other.size else 1
        np.testing.assert_allclose(one, other, rtol=0, atol=1e4 * eps * scale if one.dtype.kind != "i" else 0)


#: Options of calls, by the first argument that they need.
OPTIONS: list[dict[str, Any]] = [
    {},
    {"compute_v": 0},
    {"lower": 1},
    {"range": "I", "il": 2, "iu": 4, "lower": 1},
    {"range": b"V", "vl": -0.5, "vu": 1.0},
    {"itype": 2},
    {"jobz": "N", "uplo": "U"},
    {"compute_uv": 0},
    {"full_matrices": 0},
    {"lwork": 400},
    {"overwrite_a": 1},
]


CALLS = [
    (stem, options)
    for stem, row in ROWS.items()
    for options in OPTIONS
    if {*options} <= {*row.options.split()}
]


@pytest.mark.parametrize(("stem", "options"), CALLS, ids=str)
@pytest.mark.parametrize("letter", DTYPES)
def test_results_are_scipys(stem, letter, options):
    name = scipys_name(letter, stem)
    ours, theirs = getattr(lapack, name), getattr(scipys, name)
    if stem == "sygst":
        options = {**options, "lower": 1}
    passed = arguments_of(letter, stem)
    before = [each.copy() for each in passed]
    expected = theirs(*[each.copy() for each in passed], **options)
    found = ours(*passed, **options)
    is_vectorless = options.get("compute_v") == 0 or options.get("jobz") == "N"
    if is_vectorless and stem in ("syev", "syevd", "sygv", "sygvd"):  # the matrix is destroyed
        found, expected = (found[0], found[2]), (expected[0], expected[2])
    same(found, expected)
    generic = getattr(lapack, stem)(*passed, **options)
    same(generic if len(generic) == len(found) else (generic[0], generic[2]), found)
    if "overwrite_a" not in options:
        for each, other in zip(passed, before, strict=True):
            np.testing.assert_array_equal(each, other)


@pytest.mark.parametrize("stem", ROWS)
@pytest.mark.parametrize("letter", DTYPES)
def test_stacks(stem, letter):
    name = scipys_name(letter, stem)
    passed = arguments_of(letter, stem, 2, 3)
    if len(passed) > 1:
        passed[1] = passed[1][0, 0]  # which broadcasts
    found = getattr(lapack, name)(*passed)
    assert np.shape(found[-1]) == (2, 3)
    for index in np.ndindex(2, 3):
        each = [array[index] if array.ndim > 2 else array for array in passed]
        same([np.asarray(result)[index] for result in found], getattr(scipys, name)(*each))
    empty = getattr(lapack, name)(*[array[..., :0, :, :, :] if array.ndim > 2 else array for array in passed])
    assert [each.shape for each in empty] == [(0, *np.shape(each)[1:]) for each in found]


@pytest.mark.parametrize("stem", QUERIES)
@pytest.mark.parametrize("letter", DTYPES)
def test_queries_are_scipys(stem, letter):
    name = scipys_name(letter, stem) + "_lwork"
    for extents in ((5,), (100,)) if stem.startswith("sy") else ((5, 3), (40, 90)):
        assert getattr(lapack, name)(*extents) == getattr(scipys, name)(*extents)


def parsed(name: str) -> list[str]:
    """The parameters of SciPy's wrapper, from its docstring."""
    (call,) = re.findall(rf"{name}\((.*)\)", getattr(scipys, name).__doc__)[:1]
    return re.findall(r"\w+", call)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("stem", [*ROWS, *(f"{stem}_lwork" for stem in QUERIES)])
def test_signatures(letter, stem):
    """Parameters come in SciPy's order, defaults are its."""
    base, query, _ = stem.partition("_lwork")
    name = scipys_name(letter, base) + query
    parameters = inspect.signature(getattr(lapack, name)).parameters
    assert list(parameters) == parsed(name)
    defaults = dict(
        re.findall(r"^(\w+) : input .*\n +Default:? +`*([^`\n]+)`*$", getattr(scipys, name).__doc__, re.M)
    )
    for parameter, value in defaults.items():
        if parameter not in ("lwork", "lrwork", "liwork", "iu"):
            assert parameters[parameter].default == literal_eval(value)


@pytest.mark.parametrize("name", ["dsyevd", "zheev", "sgesdd", "syevr"])
def test_functions_have_attributes_of_scipys(name):
    found = getattr(lapack, name)
    assert found.__name__ == name and found.module_name == "pyblasgpu.lapack"
    stem = name[1:] if name != "syevr" else name
    assert lapack.get_lapack_funcs(stem, dtype="z" if name[0] == "z" else "d").__name__[1:] in (stem, "heevr")


A, B = np.eye(3), np.ones((3, 2))
REFUSED = [
    (lambda: lapack.dsyev(B), r"dsyev: a has shape \(3, 2\); a square matrix"),
    (lambda: lapack.dsygv(A, np.eye(2)), r"dsygv: a has shape \(3, 3\) and b \(2, 2\), of another order"),
    (lambda: lapack.dsygv(A, A, itype=4), "dsygv: itype=4 is none of 1, 2, 3"),
    (lambda: lapack.zheevr(A, range="X"), "zheevr: range='X' is none of A, V, I"),
    (lambda: lapack.dsygvx(A, A, jobz=1), "dsygvx: jobz=1 is none of N, V"),
    (lambda: lapack.dsyev(A, lower="x"), "dsyev: lower"),
    (lambda: lapack.dsyev(A, compute_v="yes"), "dsyev: compute_v"),
    (lambda: lapack.dsyev(A, lwork=1), "dsyev: .*lwork"),
    (lambda: lapack.dgesdd(A[:0]), r"dgesdd: a has shape \(0, 3\); LAPACK needs rows"),
    (lambda: lapack.dgesdd_lwork(-1, 3), "dgesdd_lwork: m=-1 is negative"),
    (lambda: lapack.dsygv(np.stack([A] * 2), np.stack([A] * 3)), "do not broadcast"),
]


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_refusals(index):
    call, message = REFUSED[index]
    with pytest.raises(ValueError, match=message):
        call()
    with pytest.raises(TypeError, match="complex"):
        lapack.dsyev(np.eye(2) * 1j)


@pytest.mark.parametrize("stem", [stem for stem in ROWS if not stem.startswith(("syev", "ges"))])
def test_arrays_on_a_device_are_refused(fake, stem):
    a = fake_device.Array(np.eye(3, order="F"))
    with pytest.raises(NotImplementedError, match=f"^{stem}: a is on a device, .* on the CPU alone"):
        getattr(lapack, stem)(*[a] * len(ROWS[stem].arrays.split()))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("stem", ["syev", "syevd"])
@pytest.mark.parametrize("overwrite", [0, 1])
@pytest.mark.parametrize("options", [{}, {"lower": 1}, {"compute_v": 0}], ids=str)
def test_arrays_on_a_device(card, monkeypatch, letter, stem, overwrite, options):
    (a,) = arguments_of(letter, stem, 3)
    function, name = getattr(lapack, scipys_name(letter, stem)), scipys_name(letter, stem)
    for _ in range(3):
        put = fake_device.Array(np.array(a.swapaxes(-1, -2)).swapaxes(-1, -2))
        w, v, info = function(put, overwrite_a=overwrite, **options)
        for index in range(3):
            same([w.host[index]], [getattr(scipys, name)(a[index], **options)[0]])
        if "compute_v" not in options:
            rest = a @ v.host - v.host * w.host[:, None, :]
            assert np.abs(rest).max() <= 1e3 * np.finfo(a.dtype).eps
            assert np.shares_memory(v.host, put.host) == bool(overwrite)
        assert not info.host.any()
    monkeypatch.setattr(syevd, "max_order", lambda dtype, device: 16)
    text = rf"^{name}: a has shape \(17, 17\); eigenvalues of .* to order 16"
    with pytest.raises(NotImplementedError, match=text):
        function(fake_device.Array(np.zeros((17, 17), a.dtype)))


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("zheevd", "jacobi_columns"), ("dgesdd", "jacobi_columns"), ("zgesdd", "jacobi_columns")],
)
@pytest.mark.parametrize("order", "CF")
def test_a_new_result_begins_as_no_copy(card, name, kernel, order):
    (a,) = arguments_of(name[0], "gesdd" if "ge" in name else "syevd", 3)
    put = fake_device.Array(a if order == "C" else np.array(a.swapaxes(-1, -2)).swapaxes(-1, -2))
    given = put.host.copy()
    results = [getattr(lapack, name)(put, 1, 0) for _ in range(3)]
    assert [each for each, *_ in card.launches] == [kernel] * 3
    np.testing.assert_array_equal(put.host, given)
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one.host, other.host)


SOME = [{}, {"range": "I", "il": 2, "iu": 3}, {"range": "I", "il": 2}, {"range": "V", "vl": -1, "vu": 1}]


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("stem", ["syevr", "syevx"])
@pytest.mark.parametrize("options", SOME, ids=str)
@pytest.mark.parametrize("count", [0, 2])
def test_some_eigenvalues_on_a_device(card, letter, stem, options, count):
    (a,) = arguments_of(letter, stem)
    stack = np.stack([a] * count) if count else a
    function, name = getattr(lapack, scipys_name(letter, stem)), scipys_name(letter, stem)
    for lower, vectors in ((0, 1), (1, 1), (1, 0)):
        given = {**options, "lower": lower, "compute_v": vectors}
        expected, _, m, *_ = getattr(scipys, name)(a, **given)
        w, z, found, nothing, info = function(fake_device.Array(np.array(stack, order="F")), **given)
        assert found == m and w.shape == (*stack.shape[:-2], m) and nothing.shape == (*stack.shape[:-2], 0)
        assert z.shape == (*stack.shape[:-2], *((len(a), m) if vectors else (0, 0))) and not info.host.any()
        for index in range(count) if count else [...]:
            same([w.host[index]], [expected[:m]])
        if vectors:
            rest = stack @ z.host - z.host * w.host[..., None, :]
            assert np.abs(rest).max() <= 1e3 * np.finfo(a.dtype).eps
    with pytest.raises(ValueError, match=f"{name}: il=3, iu=2 is no range within 1 ... {len(a)}"):
        function(fake_device.Array(a), range="I", il=3, iu=2)
    others = fake_device.Array(np.stack([0 * a, 9 * a]))
    with pytest.raises(ValueError, match=f"{name}: other eigenvalues of each matrix .* vl=-1, vu=1: pass"):
        function(others, range="V", vl=-1, vu=1)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("stem", ["gesdd", "gesvd"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (1, 3), (3, 1), (1, 1), (2, 5, 3), (2, 2, 3, 4)])
@pytest.mark.parametrize("options", [{}, {"full_matrices": 0}, {"compute_uv": 0}], ids=str)
def test_singular_values_on_a_device(card, letter, stem, shape, options):
    a, name = uniform(letter, *shape), scipys_name(letter, stem)
    put = fake_device.Array(a)
    for _ in range(3):
        u, s, vh, info = getattr(lapack, name)(put, **options)
        ours = u.host, s.host, vh.host
        theirs = [np.asarray(each) for each in getattr(lapack, name)(a, **options)]
        same([ours[1]], [theirs[1]])
        assert not info.host.any()
        if "compute_uv" not in options:
            k = min(shape[-2:])
            assert ours[0].shape == theirs[0].shape and ours[2].shape == theirs[2].shape
            same([(ours[0][..., :k] * ours[1][..., None, :]) @ ours[2][..., :k, :]], [a])
    np.testing.assert_array_equal(put.host, a)


@pytest.mark.parametrize(("name", "shape", "text"), [
    ("dgesdd", (300, 300), r"a has shape \(300, 300\); singular values of float64 with vectors are computed"),
    ("zgesvd", (2, 400, 200), r"a has shape \(2, 400, 200\); singular values of complex128 with vectors"),
])  # fmt: skip
def test_large_matrices_on_a_device_are_refused(fake, name, shape, text):
    with pytest.raises(NotImplementedError, match=f"^{name}: {text} .* is at most "):
        getattr(lapack, name)(fake_device.Array(uniform(name[0], *shape)))


@pytest.mark.parametrize(("stem", "vectors", "letter"), [
    ("syevd", True, "z"), ("gesdd", True, "d"), ("gesdd", True, "z"),
    ("gesdd", False, "d"), ("gesdd", False, "z"),
])  # fmt: skip
def test_the_largest_order_on_a_device_is_served(card, monkeypatch, letter, stem, vectors):
    largest = 90 if stem == "syevd" else largest_order(stem, letter, 0, vectors)
    monkeypatch.setattr(syevd, "max_order", lambda dtype, device: 90)
    fits, larger = (fake_device.Array(np.eye(n, dtype=DTYPES[letter].name)) for n in (largest, largest + 1))
    function = getattr(lapack, scipys_name(letter, stem))
    assert not function(fits, int(vectors))[-1].host.any()
    with pytest.raises(NotImplementedError, match=f" {largest}[,; ]"):
        function(larger, int(vectors))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("stem", ["gesdd", "gesvd", "syev", "syevd", "syevr"])
def test_matrices_that_are_not_finite(stem, value, letter):
    """LAPACK may iterate for ever with them; one of a stack does not spoil the other."""
    a = uniform(letter, 2, N, N)
    a = a + a.swapaxes(1, 2).conj()
    a[1, 4, 2] = a[1, 2, 4] = value
    call = getattr(lapack, scipys_name(letter, stem))
    *results, info = call(a)
    assert info.tolist() == [0, N]
    if not stem.startswith("ge"):  # what is not read does not count
        a[1, 4, 2] = 0
        assert not call(a, lower=1)[-1].any()
    values = next(each for each in results if each.dtype.kind == "f" and each.shape == (2, N))
    assert np.isfinite(values[0]).all() and np.isnan(values[1]).all()


@pytest.fixture
def lapack_is_finite(monkeypatch):
    """LAPACK is called with finite matrices alone: with others it may iterate for ever."""

    def checked(function):
        def call(a, *arguments, **options):
            assert np.isfinite(a).all()
            return function(a, *arguments, **options)

        return call

    for module in (standard, least_squares):
        monkeypatch.setattr(module, "scipys_linalg", lambda name: checked(getattr(scipy.linalg, name)))
    for module, name in (
        (standard, "small_pairs"),
        (standard, "small_triplets"),
        (np.linalg, "eigh"),
        (np.linalg, "svd"),
    ):
        monkeypatch.setattr(module, name, checked(getattr(module, name)))


@pytest.mark.usefixtures("lapack_is_finite")
@pytest.mark.parametrize("shape", [(4, 4), (40, 40), (2, 40, 40)])
@pytest.mark.parametrize("name", ["eigh", "svd", "svdvals", "lstsq"])
def test_special_values_that_are_not_checked(name, shape):
    a = definite_of("d", *shape)
    others = [np.ones(shape[-1])] if name == "lstsq" else []
    run = partial(getattr(linalg, name), a, *others, check_finite=False)
    expected, first = leaves(run()), a.reshape(-1, *shape[-2:])[0]
    first[2, 1] = first[1, 2] = np.inf
    if name != "lstsq":
        for ours, theirs in zip(leaves(run()), expected, strict=True):
            ours, theirs = (each.reshape(a.size // first.size, -1) for each in (ours, theirs))
            assert np.isnan(ours[0]).all()
            np.testing.assert_array_equal(ours[1:], theirs[1:])
        first[2, 1] = first[1, 2] = np.nan
    with pytest.raises(LinAlgError, match=rf"^{name}: .* not converge"):
        run()
