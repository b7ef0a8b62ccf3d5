"""pyblasgpu.blas against scipy.linalg.blas: signatures, results, overwriting; and where it raises instead."""

from __future__ import annotations

import ast
import inspect
import re

import fake_device
import numpy as np
import pytest
import scipy.linalg.blas as scipy_blas

from pyblasgpu import blas
from pyblasgpu.testing import reference
from pyblasgpu.types import DTYPES

COMPLEX = ("hemm", "herk", "her2k")
STEMS = ("gemm", "trmm", "trsm", "symm", "syrk", "syr2k", *COMPLEX)
NAMES = [letter + stem for stem in STEMS for letter in ("cz" if stem in COMPLEX else "sdcz")]
GEMMTR = [letter + "gemmtr" for letter in "sdcz"]


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_scipys(name):
    """The parameters, their order and their defaults, as SciPy's docstring has them; then `method`."""
    doc = getattr(scipy_blas, name).__doc__
    required, optional = re.match(r"\w+ = \w+\(([^\[]+)\[(.*)\]\)", doc).groups()
    *parameters, method = inspect.signature(getattr(blas, name)).parameters.values()
    assert ",".join(parameter.name for parameter in parameters) == required + optional
    assert method.name == "method" and method.kind is method.KEYWORD_ONLY
    for parameter in parameters:
        default = re.search(rf"^{parameter.name} : .*optional\n    Default: (.*)$", doc, re.MULTILINE)
        empty = parameter.default is inspect.Parameter.empty
        assert empty == (parameter.name in required.split(","))
        expected = ast.literal_eval(default[1]) if default else None  # SciPy states none for c
        assert empty or parameter.default == (complex(*expected) if isinstance(expected, tuple) else expected)


def test_the_signature_of_gemmtr():
    """SciPy has none; it is that of gemm with the flag of the rank-k updates before the last."""
    parameters = inspect.signature(blas.dgemmtr).parameters.values()
    bare = [str(parameter.replace(annotation=parameter.empty)) for parameter in parameters]
    assert ",".join(bare) == "alpha,a,b,beta=0.0,c=None,trans_a=0,trans_b=0,lower=0,overwrite_c=0"


@pytest.mark.parametrize("name", [*NAMES, *GEMMTR, *STEMS, "gemmtr"])
def test_names_and_docstrings(name):
    function = getattr(blas, name)
    assert function.__name__ == function.__qualname__ == name and function.__module__ == blas.__name__
    assert name in blas.__all__
    parameters = list(inspect.signature(function).parameters)
    assert f"{name}(alpha, {'a, b' if 'b' in parameters else 'a'}, [" in function.__doc__
    assert all(
        re.search(rf"^(\w, )?(\w+, )?{parameter}(, \w+)? : ", function.__doc__, re.MULTILINE)
        for parameter in parameters
    )
    letters = {"{'L"} if "side" in parameters else set()
    letters |= {"{'3" if name.endswith("gemm") else "{'t"} if "method" in parameters else set()
    letters |= {"{'N"} if {"trans", "trans_a"} & set(parameters) else set()
    assert set(re.findall("{..", function.__doc__)) == {"{0,", *letters}


def compare(name, args, options):
    """Call ours and SciPy's with copies; results, shapes, orders and what is overwritten must be the same."""
    operands = [[x.copy(order="K") if isinstance(x, np.ndarray) else x for x in args] for _ in range(2)]
    last = [
        {key: x.copy(order="K") if isinstance(x, np.ndarray) else x for key, x in options.items()}
        for _ in "12"
    ]
    actual = getattr(blas, name)(*operands[0], **last[0])
    expected = getattr(scipy_blas, name)(*operands[1], **last[1])
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert actual.flags.f_contiguous
    for ours, theirs in [*zip(*operands, strict=True), *((last[0][key], last[1][key]) for key in options)]:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("zsyrk", {"trans": 2}, ValueError),
        ("cherk", {"trans": 1}, ValueError),
        ("zherk", {"alpha": 1j}, TypeError),
        ("zherk", {"beta": 1j, "c": np.eye(2, dtype="D")}, TypeError),
        ("zsyrk", {"c": np.eye(3, dtype="D")}, ValueError),
        ("zsyrk", {"c": np.eye(3, dtype="D", order="F"), "overwrite_c": 1}, ValueError),
        ("dsyrk", {}, TypeError),
    ],
)
def test_where_scipy_is_silent(name, options, error):
    with pytest.raises(error, match=name):
        getattr(blas, name)(**{"alpha": 1, "a": np.eye(2, dtype="F"), **options})


@pytest.mark.parametrize("shapes", [((3, 0), (0, 2)), ((0, 3), (3, 2)), ((3, 2), (2, 0))])
def test_empty_products(shapes):
    compare("dgemm", (1, *map(np.ones, shapes)), {})


def test_integers_and_lists_are_cast():
    compare("dgemm", (2, np.arange(4).reshape(2, 2), [[1, 2], [3, 4]]), {})
    compare("sgemm", (1, [[1.5]], np.ones((1, 1), "f2")), {})
    compare("zgemm", (1j, np.eye(2), np.eye(2, dtype="F")), {})


def test_a_larger_triangle():
    a, b = np.arange(1.0, 26).reshape(5, 5), np.ones((3, 2))
    compare("dtrmm", (1, a, b), {"lower": 1})
    with pytest.raises(ValueError, match=r"dtrsm: a has shape \(5, 5\)"):
        blas.dtrsm(1, a, b)
    with pytest.raises(ValueError, match="dtrmm: a has shape"):
        blas.dtrmm(1, a[:2, :2], b)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dgemm", (1, np.eye(2) * 1j, np.eye(2))),
        ("dgemm", (1j, np.eye(2), np.eye(2))),
        ("dgemm", (1, np.eye(2), np.eye(2, dtype="longdouble"))),
        ("dgemm", (1, np.eye(2), np.eye(2), 1, np.eye(2) * 1j)),
        ("dgemm", (1, [[1j]], [[1]])),
        ("dtrsm", (1, np.eye(2), np.eye(2) * 1j)),
        ("sgemm", (1, np.eye(2, dtype="D"), np.eye(2, dtype="f4"))),
        ("dgemm", (1, np.array([["1"]]), [[1]])),
    ],
)
def test_no_imaginary_part_and_no_long_double_is_lost(name, arguments):
    with pytest.raises(TypeError, match=name):
        getattr(blas, name)(*arguments)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones((2, 3)), np.ones((2, 3))), {}, r"dgemm: op\(a\) is 2 by 3 and op\(b\) 2 by 3"),
        ((np.eye(2), np.eye(2)), {"c": np.ones((1, 2))}, r"dgemm: c has shape \(1, 2\)"),
        (
            (np.eye(2), np.eye(2)),
            {"c": np.ones((2, 1), order="F"), "overwrite_c": 1},
            r"dgemm: c has shape \(2, 1\); \(2, 2\) is needed",
        ),
        ((np.eye(2), np.ones((2, 2, 2))), {}, r"dgemm: b has shape \(2, 2, 2\)"),
        ((np.eye(2), np.eye(2)), {"trans_a": 5}, "dgemm: trans_a=5"),
    ],
)
def test_errors_name_the_routine(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        blas.dgemm(1, *arguments, **options)


@pytest.mark.parametrize("flag", ["side", "lower", "trans_a", "diag", "overwrite_b"])
@pytest.mark.parametrize("name", ["dtrmm", "dtrsm"])
def test_errors_name_the_flag(name, flag):
    with pytest.raises(ValueError, match=f"{name}: {flag}=1.5 is "):
        getattr(blas, name)(1, np.eye(2), np.eye(2), **{flag: 1.5})


def test_letters_serve_as_flags():
    a, b = np.array([[2.0, 7], [1, 4]]), np.ones((2, 3))
    np.testing.assert_array_equal(
        blas.dtrsm(1, a, b, "L", "L", "T", "N"), scipy_blas.dtrsm(1, a, b, 0, 1, 1, 0)
    )


def test_generic_functions_take_the_dtype_of_the_arrays():
    chars = [
        blas.gemm(1, np.eye(2, dtype=one), np.eye(2, dtype=two)).dtype.char
        for one, two in ("fd", "ff", "dF", "id")
    ]
    assert "".join(chars) == "dfDd"
    c = np.zeros((2, 2), "D", order="F")
    assert blas.gemm(1, np.eye(2), np.eye(2), 1, c, overwrite_c=1) is c


def test_get_blas_funcs():
    gemm = blas.get_blas_funcs("gemm", (np.eye(2, dtype="F"),))
    assert gemm is blas.cgemm and (gemm.typecode, gemm.prefix, gemm.dtype) == ("c", "c", np.dtype("F"))
    assert blas.get_blas_funcs(["gemm", "trsm"], dtype="f4") == [blas.sgemm, blas.strsm]
    assert blas.get_blas_funcs(("trmm",)) == [blas.dtrmm]
    assert blas.get_blas_funcs("herk", (np.eye(2, dtype="F"),)) is blas.cherk
    with pytest.raises(ValueError, match="BLAS function dherk could not be found"):
        blas.get_blas_funcs("herk", (np.eye(2),))
    with pytest.raises(ValueError, match="BLAS function zsymv could not be found"):
        blas.get_blas_funcs("symv", (np.eye(2) * 1j,))


@pytest.mark.parametrize("types", ["d", "f", "F", "D", "e", "l", "fd", "dF", "fF", "ef", "df"])
def test_find_best_blas_type_is_scipys(types):
    for order in "CF":
        arrays = [np.ones((2, 3), kind, order=order) for kind in types]
        assert blas.find_best_blas_type(arrays) == scipy_blas.find_best_blas_type(arrays)
    assert blas.find_best_blas_type(dtype=types[0])[:2] == scipy_blas.find_best_blas_type(dtype=types[0])[:2]
    assert blas.find_best_blas_type() == scipy_blas.find_best_blas_type()


def test_long_double_has_no_blas_type():
    with pytest.raises(TypeError, match="dtype"):
        blas.find_best_blas_type([np.ones(2, "longdouble")])


def test_device_arrays(fake, rng):
    a, b, c = (reference.integers(rng, (3, 3), DTYPES["d"]) for _ in range(3))
    put = fake_device.Array
    result = blas.dgemm(2, put(a), put(b), 1, put(c), 1)
    np.testing.assert_array_equal(result.host, 2 * a.T @ b + c)
    assert result.host.flags.f_contiguous
    for order in "CF":
        target = put(np.asarray(c, order=order))
        result = blas.dgemm(1, put(a), put(b), 1, target, overwrite_c=1)
        assert (result is target) == (order == "F")
        np.testing.assert_array_equal(result.host, a @ b + c)
    assert blas.dtrmm(1, put(a), put(c[0])).shape == (3,)
    assert blas.find_best_blas_type((put(np.asfortranarray(a)),)) == ("d", np.dtype("d"), True)
