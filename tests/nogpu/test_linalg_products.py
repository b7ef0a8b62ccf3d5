"""NumPy's products of arrays of any number of dimensions: the results, classes and errors are NumPy's."""

from __future__ import annotations

import inspect
from itertools import pairwise, product

import fake_device
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from pyblasgpu import linalg
from pyblasgpu.testing import reference
from pyblasgpu.types import DTYPES


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def numpys(name):
    """NumPy's function of this name; None where this NumPy has none."""
    return getattr(np, name, None) or getattr(np.linalg, name, None)


def arrays(letter, *shapes):
    rng = np.random.default_rng(7)
    return [reference.integers(rng, shape, DTYPES[letter]) for shape in shapes]


def outcome(function, *arguments, **options):
    """The result, or the class of the error."""
    try:
        return function(*arguments, **options)
    except (TypeError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        kinds = np.linalg.LinAlgError, TypeError, IndexError, ValueError
        return next(kind for kind in kinds if isinstance(error, kind))


def compare(name, *arguments, **options):
    actual = outcome(getattr(linalg, name), *arguments, **options)
    expected = outcome(numpys(name), *arguments, **options)
    if isinstance(expected, type) or isinstance(actual, type):
        assert actual is expected
        return
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert type(actual) is type(expected)


@pytest.mark.parametrize("name", ["dot", "inner", "outer", "tensordot", "vdot", "multi_dot", "matrix_power"])
def test_signatures_are_numpys(name):
    ours, theirs = (inspect.signature(f).parameters.values() for f in (getattr(linalg, name), numpys(name)))
    assert [(p.name, p.default, p.kind) for p in ours if p.name not in ("a", "b")] == [
        (p.name, p.default, p.kind) for p in theirs if p.name not in ("a", "b")
    ]


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (4, 3, 2)),
    ((3,), (2, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 3), (3,)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((), ()),
    ((2, 3), (2, 3)),
    ((2, 3, 4), (4, 2)),
]


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("name", ["dot", "inner", "outer", "tensordot", "vdot"])
def test_products_are_numpys(name, letter):
    for shapes in SHAPES:
        compare(name, *arrays(letter, *shapes))


@pytest.mark.parametrize(
    "axes", [0, 1, 2, 3, ([0], [0]), ([1, 0], [0, 1]), (1, 0), (-1, -2), ([0, 0], [0, 0])], ids=str
)
def test_axes_of_tensordot(axes):
    for shapes in [((3, 3), (3, 3)), ((2, 3, 4), (3, 4, 2)), ((3, 2), (2, 3, 5))]:
        compare("tensordot", *arrays("d", *shapes), axes=axes)


@pytest.mark.parametrize("one", ["f4", "F", "f2", [1.5, 2.0]])
def test_dtypes_are_promoted(one):
    x = one if isinstance(one, list) else np.ones(2, one)
    for name in ("dot", "inner", "outer", "vdot"):
        compare(name, x, np.ones(2, "f4"))


def test_strided_views_are_read_where_they_lie():
    a, b = np.arange(60.0).reshape(6, 10), np.arange(60.0).reshape(10, 6)
    compare("dot", a[::2, ::-3], b[::-3, 1::2])
    compare("inner", a.T[::2], b[::2].T[::2, :3].repeat(2, 1))
    compare("tensordot", a[None, ::2], b[:, :3, None], axes=([2, 1], [0, 1]))


@pytest.mark.parametrize(
    ("name", "shapes", "out"),
    [
        ("dot", ((2, 3), (3, 4)), np.ones((2, 4))),
        ("dot", ((2, 3), (3, 4)), np.ones((4, 2)).T),
        ("dot", ((2, 3), (3, 4)), np.ones((2, 4), "f4")),
        ("dot", ((2, 3), (3, 4)), np.ones((3, 4))),
        ("dot", ((2, 3), (2, 3, 4)), np.ones((2, 2, 4))),
        ("dot", ((3,), (3,)), np.ones(())),
        ("dot", ((), (3,)), np.ones(3)),
        ("outer", ((2,), (3,)), np.ones((2, 3))),
        ("outer", ((2,), (3,)), np.ones((3, 3))),
        ("outer", ((2,), (3,)), np.ones((2, 3), "f4")),
        ("outer", ((2,), (3,)), np.ones((2, 3), int)),
    ],
)
def test_out_is_numpys(name, shapes, out):
    ours, theirs = out.copy("K"), out.copy("K")
    pair = arrays("d", *shapes)
    actual, expected = (
        outcome(function, *pair, out=each)
        for function, each in ((getattr(linalg, name), ours), (numpys(name), theirs))
    )
    assert (actual is expected) if isinstance(expected, type) else (actual is ours or not ours.shape)
    if not isinstance(expected, type):
        np.testing.assert_array_equal(ours, theirs)


SHAPES_OF_OUT = [(), *(shape for n in (1, 2, 3) for shape in product((1, 2, 7), repeat=n)), (0,), (2, 0)]


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("matmul", ((1, 2), (2, 1))),
        ("matmul", ((1, 5), (5,))),
        ("matmul", ((5,), (5, 1))),
        ("matmul", ((5,), (5,))),
        ("matmul", ((7, 1, 2), (2, 1))),
        ("matvec", ((1, 5), (5,))),
        ("matvec", ((7, 1, 2), (2,))),
        ("vecmat", ((5,), (5, 1))),
        ("vecmat", ((7, 2), (2, 1))),
        ("vecdot", ((5,), (5,))),
        ("vecdot", ((1, 5), (5,))),
        ("dot", ((1, 2), (2, 1))),
        ("dot", ((1, 5), (5,))),
        ("dot", ((5,), (5,))),
        ("dot", ((), (1,))),
        ("outer", ((1,), (2,))),
        ("outer", ((1,), (1,))),
        ("einsum ij,ij->", ((2, 2), (2, 2))),
        ("einsum ij,i->j", ((2, 1), (2,))),
        ("einsum i,j->ij", ((1,), (2,))),
        ("multi_dot", ((1, 2), (2, 2), (2, 1))),
    ],
    ids=str,
)
def test_shapes_of_out_that_numpy_refuses(name, shapes):
    name, *subscripts = name.split(" ")
    if numpys(name) is None:
        pytest.skip("this NumPy has none")
    operands = arrays("d", *shapes)
    arguments = [operands] if name == "multi_dot" else [*subscripts, *operands]
    for shape in SHAPES_OF_OUT:
        ours, theirs = np.full(shape, 9.0), np.full(shape, 9.0)
        actual, expected = (
            outcome(function, *arguments, out=out)
            for function, out in ((getattr(linalg, name), ours), (numpys(name), theirs))
        )
        if actual is ValueError:  # NumPy takes more: an `out` that lacks dimensions of extent 1, and others
            assert (ours == 9).all() and tuple(np.shape(theirs)) != np.shape(numpys(name)(*arguments))
        else:
            assert not isinstance(expected, type), shape
            np.testing.assert_array_equal(ours, theirs)


def test_out_of_dot_may_be_an_input():
    a = np.arange(9.0).reshape(3, 3)
    expected = a @ a
    assert linalg.dot(a, a, out=a) is a
    np.testing.assert_array_equal(a, expected)


# ---------------------------------------------------------------------------------- vectors with matrices


@pytest.mark.parametrize("name", ["matvec", "vecmat", "vecdot"])
@given(data=st.data())
def test_products_of_vectors_are_numpys(name, data):
    function = numpys(name)
    if function is None:
        pytest.skip("this NumPy has none")
    shapes = data.draw(mutually_broadcastable_shapes(signature=function.signature, max_dims=2, max_side=3))
    compare(name, *arrays(data.draw(st.sampled_from("dz")), *shapes.input_shapes))


def test_errors_of_products_of_vectors():
    if not hasattr(np, "matvec"):
        pytest.skip("NumPy 2.2 brings them")
    for name in ("matvec", "vecmat", "vecdot"):
        for shapes in [((2, 3), (2,)), ((3,), (2, 2)), ((), (3,)), ((3,), (3,)), ((2, 2), (2, 2))]:
            compare(name, *map(np.ones, shapes))


@pytest.mark.parametrize("axis", [0, 1, -1, -2, 2, -3, 1.0, None, "0"])
@pytest.mark.parametrize(
    "shapes",
    [((3, 3), (3, 3)), ((3, 2), (3,)), ((3,), (3, 3)), ((2, 3, 3), (3, 3)), ((), (3,)), ((3, 2), (2, 3))],
)
def test_vecdot_along_an_axis(shapes, axis):
    if not hasattr(np, "vecdot"):
        pytest.skip("NumPy 2.0 brings it")
    compare("vecdot", *arrays("z", *shapes), axis=axis)
    out = np.zeros((2, 3), complex)
    compare("vecdot", *arrays("z", *shapes), axis=axis, out=out)


def test_out_of_matvec():
    a, x, out = np.arange(6.0).reshape(2, 3), np.ones(3), np.zeros(2, "f4")
    assert linalg.matvec(a, x, out=out) is out
    np.testing.assert_array_equal(out, [3, 12])


# --------------------------------------------------------------------------------------- several matrices


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3),),
        ((2, 3), (3, 4)),
        ((2, 3), (3, 5), (5, 4)),
        ((2, 9), (9, 3), (3, 8), (8, 2)),
        ((3,), (3, 4), (4,)),
        ((3,), (3,)),
        ((2, 3), (2, 3)),
        ((2, 3), (3,), (3, 3)),
        ((2, 2, 2), (2, 2)),
    ],
)
def test_multi_dot_is_numpys(shapes):
    compare("multi_dot", arrays("d", *shapes))


def test_out_of_multi_dot():
    a, b, c = arrays("d", (2, 3), (3, 4), (4, 5))
    out = np.empty((2, 5))
    assert linalg.multi_dot([a, b, c], out=out) is out
    np.testing.assert_array_equal(out, a @ b @ c)


@pytest.mark.parametrize(
    ("extents", "products"),
    [
        ((50, 2, 40, 1), [(2, 40, 40, 1), (50, 2, 2, 1)]),
        ((50, 2, 3, 10), [(2, 3, 3, 10), (50, 2, 2, 10)]),
        ((10, 3, 2, 50), [(10, 3, 3, 2), (10, 2, 2, 50)]),
        ((1, 2, 3, 10), [(1, 2, 2, 3), (1, 3, 3, 10)]),
        ((2, 30, 2, 30, 2), [(2, 30, 30, 2), (2, 30, 30, 2), (2, 2, 2, 2)]),
    ],
)
def test_multi_dot_takes_the_cheaper_order(monkeypatch, extents, products):
    seen = []
    multiply = linalg.dot
    monkeypatch.setattr(
        "pyblasgpu.api.linalg.chain.dot", lambda a, b: seen.append(a.shape + b.shape) or multiply(a, b)
    )
    linalg.multi_dot([np.ones(shape) for shape in pairwise(extents)])
    assert seen == products


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 2.5, True, "1"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2), (2, 3), (2,), (0, 0)])
def test_matrix_power_is_numpys(n, shape):
    compare("matrix_power", *arrays("d", shape), n)


# ------------------------------------------------------------------------------------------------- einsum

EINSUMS = [
    "ij,jk->ik",
    "ij,jk",
    "ij,jk->ki",
    "ij,kj->ki",
    "ij,ij->",
    "ij,ij->ij",
    "ij,ij->i",
    "ij,kl->",
    "ij,kl->ljik",
    "ii,ij->j",
    "ii,jj->ij",
    "ij,ji->ij",
    "i...,i...->...",
    "...ij,...jk->...ik",
    "...i,i...",
    " i j , j k -> k i",
    "ba,ac",
    "ij,jk->ii",
    "ij,jk->iz",
    "i,j",
    "ijk,jk",
    "ij",
    "ij,jk,kl->il",
    "i1,1j",
    "...,ij->ij",
]


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum_is_numpys(subscripts):
    for letter in "dz":
        x, y = arrays(letter, (3, 3), (3, 3))
        actual, expected = (outcome(f, subscripts, x, y) for f in (linalg.einsum, np.einsum))
        if isinstance(expected, type):
            assert actual is expected
        else:
            np.testing.assert_array_equal(actual, expected, strict=True)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("bij,bjk->bik", ((4, 2, 3), (4, 3, 5))),
        ("bij,jk->bik", ((4, 2, 3), (3, 5))),
        ("...ij,...jk->...ik", ((4, 1, 2, 3), (5, 3, 2))),
        ("ibj,kjb->bki", ((2, 4, 3), (5, 3, 4))),
        ("...i,...i->...", ((2, 3), (3,))),
        ("i...j,j...->...i", ((2, 4, 5, 3), (3, 4, 5))),
        ("ij,jk->ik", ((2, 3), (1, 4))),
        ("ij,jk->ik", ((2, 3), (2, 4))),
        ("abcd,cdef->abef", ((2, 2, 3, 4), (3, 4, 1, 2))),
        ("ij,jk->ik", ((2, 0), (0, 4))),
        ("aij,aij->a", ((0, 2, 3), (0, 2, 3))),
    ],
)
def test_einsum_of_stacks(subscripts, shapes):
    compare("einsum", subscripts, *arrays("d", *shapes))


class Text(str):
    """Subscripts that are looked at anew."""


@pytest.mark.parametrize("result", ["ik", "ki"])
@pytest.mark.parametrize("right", ["jk", "kj"])
@pytest.mark.parametrize("left", ["ij", "ji"])
@pytest.mark.parametrize("order", "CF")
def test_einsum_of_two_matrices(left, right, result, order):
    """By SciPy's function at once, as by all steps: the same bits in the same order in memory."""
    a, b = (np.array(array, order=order) for array in arrays("d", (3, 3), (3, 3)))
    subscripts = f"{left},{right}->{result}"
    actual = linalg.einsum(subscripts, a, b)
    expected = linalg.einsum(Text(subscripts), a, b)
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert actual.strides == expected.strides and actual.flags.writeable
    np.testing.assert_allclose(actual, np.einsum(subscripts, a, b))


def test_out_of_einsum():
    a, b = arrays("d", (2, 3), (3, 4))
    for out in (np.empty((2, 4)), np.empty((2, 4), "f4"), np.empty((3, 4)), np.empty((4, 2)).T):
        compare("einsum", "ij,jk->ik", a, b, out=out)
    out = np.empty(())
    assert linalg.einsum("ij,ij->", a, a, out=out) is out and out == (a * a).sum()


# ----------------------------------------------------------------------------------------- other libraries


def test_device_arrays_stay_there(fake):
    put = fake_device.Array
    a, b = arrays("d", (2, 3), (3, 4))
    v = np.arange(3.0)
    for actual, expected in [
        (linalg.dot(put(a), put(b)), a @ b),
        (linalg.dot(put(a), put(v)), a @ v),
        (linalg.inner(put(a), put(a)), a @ a.T),
        (linalg.vdot(put(v), put(v)), v @ v),
        (linalg.outer(put(v), put(v)), np.outer(v, v)),
        (linalg.tensordot(put(a), put(b), axes=1), a @ b),
        (linalg.einsum("ij,jk->ki", put(a), put(b)), (a @ b).T),
        (linalg.einsum("ij,jk->k", put(a), put(b)), (a @ b).sum(0)),
        (linalg.matvec(put(a), put(v)), a @ v),
        (linalg.vecmat(put(v), put(b)), v @ b),
        (linalg.vecdot(put(a), put(a), axis=0), (a * a).sum(0)),
        (linalg.multi_dot([put(v), put(b), put(b.T.copy())]), v @ b @ b.T),
        (linalg.matrix_power(put(a[:, :2]), 3), np.linalg.matrix_power(a[:, :2], 3)),
    ]:
        np.testing.assert_array_equal(actual.host, expected)
    with pytest.raises(TypeError, match="one library"):
        linalg.dot(put(a), b)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_libraries_on_the_host(library):
    xp = pytest.importorskip(library)
    a, b = arrays("d", (2, 3), (3, 4))
    x, y = xp.asarray(a), xp.asarray(b)
    for actual, expected in [
        (linalg.dot(x, y), a @ b),
        (linalg.inner(x, x), a @ a.T),
        (linalg.einsum("ij,jk->ki", x, y), (a @ b).T),
        (linalg.vdot(x, x), (a * a).sum()),
        (linalg.multi_dot([x, y]), a @ b),
    ]:
        assert type(actual) is type(x)
        np.testing.assert_array_equal(np.from_dlpack(actual), expected)
