"""Eigenvalues, singular values and what `linalg` makes of them, compared with SciPy's and NumPy's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.linalg
from numpy.linalg import LinAlgError
from qr_cases import SETS, matrix_of
from spectra_cases import definite_of, eps_of, hermitian_of, mismatch, same, stack_of

from pyblasgpu import linalg
from pyblasgpu.types import DTYPES

SHAPES = [
    (1, 1),
    (4, 4),
    (30, 30),
    (9, 4),
    (4, 9),
    (0, 3),
    (3, 0),
    (0, 0),
    (2, 5, 3),
    (2, 3, 5),
    (2, 2, 4, 4),
]
ORDERS = [(1,), (5,), (33,), (3, 4), (2, 2, 3)]
NORMS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


# --------------------------------------------------------------------------------------------- eigenvalues


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", ORDERS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lower": False},
        {"UPLO": "U"},
        {"UPLO": "l"},
        {"driver": "ev"},
        {"driver": "evd"},
        {"driver": "evx"},
        {"subset_by_index": (0, 0)},
        {"overwrite_a": True},
    ],
    ids=str,
)
def test_eigenvalues(letter, shape, options):
    whole = hermitian_of(letter, *shape)
    is_low = options.get("lower", True) and options.get("UPLO", "L") in "Ll"
    a = np.tril(whole) + 9 * np.triu(whole, 1) if is_low else np.triu(whole) + 9 * np.tril(whole, -1)
    expected = np.linalg.eigvalsh(whole)
    expected = expected[..., :1] if "subset_by_index" in options else expected
    found = linalg.eigh(a.copy(), **options)
    w, v = found
    assert (
        w is found.eigenvalues
        and v is found.eigenvectors
        and w.dtype.char == letter.lower().translate(str.maketrans("sdcz", "fdfd"))
    )
    bound = 100 * shape[-1] * eps_of(a)
    same(w, expected, 100 * shape[-1])
    assert mismatch(whole, whole) == 0
    rest = whole @ v - v * w[..., None, :]
    assert np.abs(rest).max() <= bound * np.abs(whole).max()
    gram = v.swapaxes(-1, -2).conj() @ v
    assert np.abs(gram - np.eye(gram.shape[-1])).max() <= bound
    same(linalg.eigvalsh(a.copy(), **options), expected, 100 * shape[-1])
    same(linalg.eigh(a.copy(), eigvals_only=True, **options), expected, 100 * shape[-1])


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("driver", [None, "gv", "gvx"])
def test_generalized_problems(letter, kind, lower, driver):
    a, b = hermitian_of(letter, 3, 6), definite_of(letter, 6)
    w, v = linalg.eigh(a, b, type=kind, lower=lower, driver=driver)
    for index in range(3):
        theirs = scipy.linalg.eigh(a[index], b, type=kind, lower=lower, driver=driver)
        same(w[index], theirs[0], 2000)
    left, right = {1: (a @ v, b @ v), 2: (a @ (b @ v), v), 3: (b @ (a @ v), v)}[kind]
    assert mismatch(left, right * w[..., None, :]) <= 1e4 * eps_of(a)
    same(linalg.eigvalsh(a, b, type=kind, lower=lower), w, 2000)


@pytest.mark.parametrize("value", [(-1.0, 1.0), (-np.inf, 0.0), (5.0, 6.0), (-np.inf, np.inf)])
def test_subsets_by_value(value):
    a = np.diag([-2.0, -1.0, 0.5, 1.0, 7.0])
    theirs = scipy.linalg.eigh(a, subset_by_value=value)
    ours = linalg.eigh(a, subset_by_value=value)
    same(ours[0], theirs[0])
    assert ours[1].shape == theirs[1].shape
    with pytest.raises(
        ValueError, match=r"results of the matrices of the stack have the shapes \(1,\), \(2,\)"
    ):
        linalg.eigvalsh(np.stack([a, a + np.eye(5)]), subset_by_value=(-3, -0.5))


# ------------------------------------------------------------------------------------------ singular values


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("driver", ["gesdd", "gesvd"])
def test_singular_values(letter, shape, full, driver):
    a = matrix_of("random", letter, *shape[-2:]) if len(shape) < 3 else stack_of(letter, *shape)
    found = linalg.svd(a, full_matrices=full, lapack_driver=driver)
    u, s, vh = found
    assert found.U is u and found.S is s and found.Vh is vh
    m, n = shape[-2:]
    k = min(m, n)
    assert u.shape == (*a.shape[:-1], m if full else k) and vh.shape == (*a.shape[:-2], n if full else k, n)
    assert s.shape == (*a.shape[:-2], k)
    for each in (linalg.svdvals(a), linalg.svd(a, compute_uv=False, lapack_driver=driver)):
        same(each, np.linalg.svd(a, compute_uv=False))
    bound = 100 * max(m, n, 1) * eps_of(a)
    if k:
        assert mismatch(a, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]) <= bound
    for gram in (u.swapaxes(-1, -2).conj() @ u, vh @ vh.swapaxes(-1, -2).conj()):
        assert gram.size == 0 or np.abs(gram - np.eye(gram.shape[-1])).max() <= bound


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (3, 6), (2, 4, 3)])
@pytest.mark.parametrize("side", ["right", "left"])
def test_polar_factors(letter, shape, side):
    a = stack_of(letter, *shape)
    u, p = linalg.polar(a, side)
    for index in np.ndindex(a.shape[:-2]):
        for one, other in zip((u, p), scipy.linalg.polar(a[index], side), strict=True):
            same(one[index], other, 2000)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", ["random", "nearly dependent", "zero columns", "zeros", "constant"])
@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7)])
def test_ranks(letter, kind, shape):
    """Functions of matrices without full rank too."""
    a = matrix_of(kind, letter, *shape)
    rank = np.linalg.matrix_rank(a)
    assert linalg.matrix_rank(a) == rank
    ours, theirs = (module.pinv(a, rtol=1e-3, return_rank=True) for module in (linalg, scipy.linalg))
    assert ours[1] == theirs[1]
    same(ours[0], theirs[0], 1e5)
    basis, null = linalg.orth(a), linalg.null_space(a)
    assert basis.shape == scipy.linalg.orth(a).shape and null.shape == scipy.linalg.null_space(a).shape
    bound = 1e3 * eps_of(a)
    if rank and kind != "nearly dependent":
        assert mismatch(a, basis @ (basis.conj().T @ a)) <= bound
    assert not null.size or np.abs(a @ null).max() <= bound * max(np.abs(a).max(), 1)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_pseudo_inverses_of_hermitian_matrices(letter, lower):
    a = hermitian_of(letter, 3, 5)
    a[1] = np.diag([1, 0, 2, 0, 3])
    ours = linalg.pinvh(np.tril(a) if lower else np.triu(a), lower=lower, return_rank=True)
    same(ours[1], [5, 3, 5])
    for each, other in zip(ours[0], a, strict=True):
        same(each, scipy.linalg.pinvh(other), 1e4)
    same(linalg.pinv(a, hermitian=True), ours[0], 1e4)
    same(linalg.pinvh(a[1], atol=1.5), np.diag([0, 0, 0.5, 0, 1 / 3]).astype(a.dtype), 1e4)


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ({}, [3, 2]),
        ({"tol": 0.5}, [2, 1]),
        ({"tol": [0.5, 0.0]}, [2, 3]),
        ({"rtol": 0.6}, [1, 1]),
        ({"rtol": np.array([0.6, 1e-3])}, [1, 2]),
        ({"hermitian": True}, [3, 2]),
    ],
    ids=str,
)
def test_ranks_by_tolerances(options, ranks):
    a = np.stack([np.diag([-2.0, 1, 0.1]), np.diag([1.0, 0.1, 1e-30])])
    assert linalg.matrix_rank(a, **options).tolist() == np.linalg.matrix_rank(a, **options).tolist() == ranks
    if "rtol" in options:
        same(linalg.pinv(a, rtol=options["rtol"]), np.linalg.pinv(a, rtol=np.asarray(options["rtol"])))


@pytest.mark.parametrize(("vector", "rank"), [([0.0, 0.0], 0), ([0.0, 2.0], 1), (3.0, 1)])
def test_ranks_of_vectors(vector, rank):
    assert linalg.matrix_rank(vector) == rank


def test_zero_eigenvalues_are_zero():
    a = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    for found in (linalg.pinvh(a), linalg.pinvh(np.stack([a, a]))[1], linalg.pinv(a, hermitian=True)):
        same(found, scipy.linalg.pinvh(a))


# --------------------------------------------------------------------------------------------------- norms


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", NORMS)
def test_norms_of_matrices(letter, order):
    a = stack_of(letter, 2, 3, 4, 5)
    for keeps in (False, True):
        options = {"axis": (-2, -1), "keepdims": keeps}
        expected = np.linalg.norm(a, order, **options)
        same(linalg.norm(a, order, **options), expected)
        same(linalg.norm(a, order, axis=(0, 3), keepdims=keeps), np.linalg.norm(a, order, (0, 3), keeps))
        if order is not None:
            same(linalg.matrix_norm(a, ord=order, keepdims=keeps), expected)
    same(linalg.norm(a[0, 0], order), scipy.linalg.norm(a[0, 0], order))
    if order not in (None, "fro"):
        return
    same(linalg.norm(a), scipy.linalg.norm(a))
    same(linalg.matrix_norm(a), np.linalg.norm(a, axis=(-2, -1)))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, -1, -2, 0.5, np.inf, -np.inf])
def test_norms_of_vectors(letter, order):
    a = stack_of(letter, 2, 3, 4)
    for axis in (None, 0, 1, -1):
        expected = np.linalg.norm(a if axis is not None else a.ravel(), order, axis)
        if axis is not None:
            same(linalg.norm(a, order, axis), expected)
        if order is not None:
            same(linalg.vector_norm(a, ord=order, axis=axis), expected)
            same(
                linalg.vector_norm(a, ord=order, axis=axis, keepdims=True),
                np.linalg.vector_norm(a, ord=order, axis=axis, keepdims=True),
            )
    same(linalg.vector_norm(a, axis=(0, 2)), np.sqrt((np.abs(a) ** 2).sum(axis=(0, 2))))
    same(linalg.norm(a[0, 0], order), scipy.linalg.norm(a[0, 0], order))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", ["huge", "tiny"])
def test_norms_neither_overflow_nor_underflow(letter, kind):
    a = matrix_of(kind, letter, 4, 4)
    scale = np.abs(a).max()
    expected = np.linalg.norm((a / scale).astype(complex)) * float(scale)
    for found in (linalg.norm(a), linalg.matrix_norm(a), linalg.vector_norm(a)):
        np.testing.assert_allclose(float(found), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_norms_of_nothing(shape):
    a = np.zeros(shape)
    assert linalg.norm(a) == linalg.vector_norm(a) == 0
    if shape == (0, 3):
        for order in (-np.inf, np.inf, 2):
            assert linalg.vector_norm(a, axis=1, ord=order).shape == (0,)
    if len(shape) > 1:
        for order in ("fro", "nuc", 1, 2, np.inf):
            assert linalg.matrix_norm(a, ord=order) == 0
        for order in (-2, -1, -np.inf):
            with pytest.raises(ValueError, match=r"matrix_norm: a matrix of shape \(0, 0\) has no such norm"):
                linalg.matrix_norm(np.zeros((0, 0)), ord=order)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", NORMS)
def test_conditions(letter, order):
    a = stack_of(letter, 4, 5, 5) + 2 * np.eye(5, dtype=DTYPES[letter].name)
    if order != "nuc":  # by which NumPy's do not converge
        a[1], a[3] = 0, np.diag([1, 2, 3, 4, 0])
    if order not in (None, 2, -2, "nuc"):
        a[2, 3, 3] = np.nan
    rtol = 1e-3 if letter in "sc" else 1e-11
    np.testing.assert_allclose(linalg.cond(a, order), np.linalg.cond(a, order), rtol=rtol)


# ------------------------------------------------------------------------------------------------ functions


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", ORDERS)
def test_functions_of_matrices(letter, shape):
    a = stack_of(letter, *shape, shape[-1]) / 2 + 2 * np.eye(shape[-1], dtype=DTYPES[letter].name)
    for name, arguments in (("expm", ()), ("sqrtm", ()), ("logm", ()), ("funm", (np.sin,))):
        if name == "funm" and shape[-1] > 10:  # which loses many digits in any case
            continue
        ours = getattr(linalg, name)(a, *arguments)
        for index in np.ndindex(a.shape[:-2]):
            same(ours[index], getattr(scipy.linalg, name)(a[index], *arguments), 1e5)


@pytest.mark.parametrize("letter", DTYPES)
def test_functions_of_hermitian_matrices(letter):
    a = definite_of(letter, 3, 5)
    for name, arguments in (("sqrtm", ()), ("logm", ()), ("funm", (np.cos,))):
        ours = getattr(linalg, name)(np.tril(a), *arguments, hermitian=True)
        for each, other in zip(ours, a, strict=True):
            theirs = getattr(scipy.linalg, name)(other, *arguments)
            same(each, theirs.astype(a.dtype), 1e5)
    turned = linalg.funm(a, lambda w: np.exp(1j * w), hermitian=True)
    same(turned @ turned.swapaxes(-1, -2).conj(), np.stack([np.eye(5, dtype=turned.dtype)] * 3), 1e3)
    singular = np.ones((3, 3), DTYPES[letter].name)
    same(linalg.sqrtm(singular, hermitian=True), singular / np.sqrt(singular.real.dtype.type(3)), 1e3)
    assert np.isnan(linalg.sqrtm(-singular, hermitian=True)).any()
    assert len(linalg.funm(a[0], np.cos, disp=False)) == 2


# ------------------------------------------------------------------------------------------------- elements


@pytest.mark.parametrize("kind", ["float64", "int64", "complex64"])
def test_elements(kind):
    a = np.arange(24).reshape(2, 3, 4).astype(kind)
    for offset in (-2, 0, 1):
        for name in ("diagonal", "trace"):
            ours, theirs = (getattr(module, name)(a, offset=offset) for module in (linalg, np.linalg))
            np.testing.assert_array_equal(ours, theirs, strict=True)
    np.testing.assert_array_equal(linalg.matrix_transpose(a), np.linalg.matrix_transpose(a), strict=True)
    assert linalg.trace(a.real, dtype=np.float32).dtype == np.float32
    b = a[:, :, ::-1] + 1
    np.testing.assert_array_equal(linalg.cross(a, b, axis=1), np.linalg.cross(a, b, axis=1), strict=True)
    np.testing.assert_array_equal(linalg.cross(a[..., 1:], b[0, 0, 1:]), np.cross(a[..., 1:], b[0, 0, 1:]))


# --------------------------------------------------------------------------------------------- all of them

#: The names of the array API's extension.
STANDARD = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


@pytest.mark.parametrize("name", STANDARD)
def test_the_array_api_is_here_whole(name):
    """With the keywords that NumPy has by the standard."""
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (linalg, np.linalg))
    keywords = {each for each, value in theirs.items() if value.kind is value.KEYWORD_ONLY}
    assert keywords <= set(ours)


SCIPYS = [
    "eigh",
    "eigvalsh",
    "svd",
    "svdvals",
    "pinv",
    "pinvh",
    "norm",
    "null_space",
    "orth",
    "polar",
    "expm",
]


@pytest.mark.parametrize("name", SCIPYS)
def test_signatures(name):
    """SciPy's parameters come first, with its defaults."""
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (linalg, scipy.linalg))
    assert list(ours)[: len(theirs)] == list(theirs)
    for parameter in theirs:
        assert ours[parameter].kind == theirs[parameter].kind
        assert ours[parameter].default == theirs[parameter].default or parameter == "check_finite"


@pytest.mark.parametrize("name", ["eigvalsh", "svdvals", "pinv", "pinvh", "norm", "null_space", "expm"])
@pytest.mark.parametrize("a", [[[2, 1], [1, 3]], np.eye(2, dtype="f2"), np.eye(2, dtype=bool)], ids=str)
def test_what_becomes_floating_point(name, a):
    kind = np.float32 if getattr(a, "dtype", None) == np.float16 else np.float64
    same(getattr(linalg, name)(a), getattr(scipy.linalg, name)(np.asarray(a, kind)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", [*SCIPYS[:10], "lstsq"])
def test_special_values(name, value):
    a = np.eye(4)
    a[2, 1] = a[1, 2] = value
    arguments = (a, a) if name == "lstsq" else (a,)
    with pytest.raises(ValueError, match=f"^{name}: array must not contain infs or NaNs"):
        getattr(linalg, name)(*arguments)


A, B = np.ones((5, 3)), np.eye(3)
REFUSED = [
    (lambda: linalg.eigh(A), r"eigh: a has shape \(5, 3\); square matrices are needed"),
    (lambda: linalg.eigvalsh(A[0]), r"eigvalsh: a has shape \(3,\); a matrix"),
    (lambda: linalg.eigh(B, np.eye(4)), r"eigh: a has shape \(3, 3\) and b \(4, 4\), of another order"),
    (lambda: linalg.eigh(B, B, type=4), "eigh: type=4 is none of 1, 2, 3"),
    (lambda: linalg.eigh(B, driver="gvd"), "eigh: driver='gvd' without b is none of ev, evd, evr, evx"),
    (lambda: linalg.eigh(B, B, driver="ev"), "eigh: driver='ev' with b is none of gv, gvd, gvx"),
    (lambda: linalg.eigh(B, driver="evd", subset_by_index=(0, 1)), "driver='evd' computes no subsets"),
    (lambda: linalg.eigh(B, subset_by_index=(1, 3)), r"subset_by_index=\(1, 3\) is no range within 0 ... 2"),
    (lambda: linalg.eigh(B, subset_by_index=2), "subset_by_index=2 is no pair"),
    (lambda: linalg.eigh(B, subset_by_value=(1, 1)), r"subset_by_value=\(1, 1\) is no interval"),
    (lambda: linalg.eigh(B, subset_by_index=(0, 1), subset_by_value=(0, 1)), "exclude each other"),
    (lambda: linalg.eigh(B, UPLO="X"), "eigh: UPLO='X' is none of L, U"),
    (lambda: linalg.svd(A[0]), r"svd: a has shape \(3,\)"),
    (lambda: linalg.svd(A, lapack_driver="gesvx"), "svd: lapack_driver='gesvx' is none of gesdd, gesvd"),
    (lambda: linalg.svd(np.ones((1, 50_000))), "50000 x 50000 would incur integer overflow in LAPACK"),
    (lambda: linalg.polar(A, "up"), "polar: side='up' is none of right, left"),
    (lambda: linalg.pinv(A, rtol=-1), "pinv: rtol=-1 is negative"),
    (lambda: linalg.pinvh(A), r"pinvh: a has shape \(5, 3\); square"),
    (lambda: linalg.matrix_rank(A, 0.1, rtol=0.1), "matrix_rank: tol and rtol exclude each other"),
    (lambda: linalg.orth(np.stack([B, 0 * B])), "orth: the matrices of the stack have the ranks 0, 3"),
    (lambda: linalg.null_space(A, lapack_driver="x"), "null_space: lapack_driver='x' is none"),
    (lambda: linalg.norm(A, "max"), "norm: ord='max' is none of fro, nuc"),
    (lambda: linalg.norm(A[0], "fro"), "norm: ord='fro' is no order of a norm of vectors"),
    (lambda: linalg.norm(np.ones((2, 2, 2)), 1), r"norm: a has shape \(2, 2, 2\); with ord, axis is needed"),
    (lambda: linalg.norm(A, axis=2), "norm: axis=2 does not fit an array of 2 dimensions"),
    (lambda: linalg.norm(A, axis=(0, 0)), r"norm: axis=\(0, 0\) is not one axis"),
    (lambda: linalg.matrix_norm(A[0]), r"matrix_norm: x has shape \(3,\)"),
    (lambda: linalg.vector_norm(A[:0], ord=-np.inf), r"vector_norm: an array of shape \(0, 3\) has no least"),
    (lambda: linalg.cond(A, 1), r"cond: x has shape \(5, 3\); square"),
    (lambda: linalg.cond(A[:0]), r"cond: x has shape \(0, 3\); a matrix with elements"),
    (lambda: linalg.expm(A), r"expm: A has shape \(5, 3\); square"),
    (lambda: linalg.cross(A, A, axis=0), r"cross: x1 has shape \(5, 3\) and x2 \(5, 3\); axis=0 needs three"),
    (lambda: linalg.trace(A[0]), r"trace: x has shape \(3,\)"),
]


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_refusals(index):
    call, message = REFUSED[index]
    with pytest.raises(ValueError, match=message):
        call()


def test_errors_are_scipys():
    for call in (lambda: linalg.expm(A), lambda: linalg.sqrtm(A[0]), lambda: linalg.cond(A[:0])):
        with pytest.raises(LinAlgError):
            call()
    with pytest.raises(TypeError, match=r"svd: lapack_driver=1.0 is no str"):
        linalg.svd(A, lapack_driver=1.0)
    same(linalg.expm(1.0), scipy.linalg.expm(1.0))
    for module in (linalg, scipy.linalg):
        with pytest.raises(LinAlgError, match="leading minor of order 2 of B is not positive definite"):
            module.eigh(np.eye(2), np.diag([1.0, -1]))


@pytest.mark.parametrize("name", ["eigh", "svd", "pinv", "norm", "expm"])
@pytest.mark.parametrize("order", "CF")
def test_arguments_stay(name, order):
    a = np.array(definite_of("d", 5), order=order)
    getattr(linalg, name)(a)
    np.testing.assert_array_equal(a, definite_of("d", 5))


def test_singular_values_of_all_sets():
    for kind in SETS:
        a = matrix_of(kind, "d", 9, 6)
        same(linalg.svdvals(a), np.linalg.svd(a, compute_uv=False))
