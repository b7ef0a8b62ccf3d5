"""The table of routines: its rows agree with the functions that they name, and with SciPy's names."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module

import pytest
import scipy.linalg
from import_graph import FILES, PACKAGE

from pyblasgpu import blas, lapack
from pyblasgpu.routine import Matrix, extents
from pyblasgpu.routine_table import ROUTINES, routines, typed_names
from pyblasgpu.types import DTYPES, Side, Trans

ROWS = list(ROUTINES.values())
STEMS = [row.stem for row in ROWS]


def parameters(module: str, function: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(import_module(module, "pyblasgpu"), function)).parameters)


def positional(found: dict[str, inspect.Parameter]) -> list[str]:
    return [name for name, each in found.items() if each.kind is not each.KEYWORD_ONLY]


@pytest.mark.parametrize("row", [row for row in ROWS if row.launches], ids=lambda row: row.stem)
def test_a_launch_list_takes_the_arguments_of_its_row(row):
    module, _, function = row.launches.partition(":")
    found = parameters(module, function or "launch_list")
    if row.group != "level1":  # whose operands are any number
        assert len([name for name in positional(found) if found[name].default is not True]) >= len(
            row.arguments
        )
        scalars = [(i, each) for i, each in enumerate(row.arguments) if not isinstance(each, Matrix)]
        assert all(positional(found)[i] == each for i, each in scalars)
    flags = set(row.flags) - set(row.ops)
    assert flags <= set(found) and (row.hermitian <= ("hermitian" in found))


@pytest.mark.parametrize("row", [row for row in ROWS if row.cpu], ids=lambda row: row.stem)
def test_a_cpu_function_takes_the_arguments_and_flags_of_its_row(row):
    module, _, function = row.cpu.partition(":")
    found = parameters(module, function)
    assert set(row.flags) <= set(found) and (row.hermitian <= ("hermitian" in found))
    scalars = [each for each in row.arguments if not isinstance(each, Matrix)]
    assert [name for name in found if name in ("alpha", "beta")][
        : len(scalars)
    ] == scalars or row.group == "level2"


@pytest.mark.parametrize(("module", "groups"), [(blas, ["level1", "level2", "level3"]), (lapack, ["lapack"])])
def test_names_are_those_of_the_modules(module, groups):
    """Names are those of the row, whose matrices are arguments, and SciPy's too."""
    theirs = getattr(scipy.linalg, module.__name__.rpartition(".")[2])
    for name, (row, dtype) in typed_names(*groups).items():
        function = getattr(module, name)
        assert name in module.__all__ and function.typecode == dtype.letter
        found = inspect.signature(function).parameters
        assert function.__name__ == name and "%(" not in function.__doc__
        assert {matrix.name for matrix in row.inputs} <= set(found)
        assert hasattr(theirs, name) or row.stem in ("gemmtr", "gelqf", "orglq", "ormlq")


@pytest.mark.parametrize("module", [blas, lapack])
def test_parameters_are_scipys(module):
    """In SciPy's order: needed ones, then optional ones; ours are named alone."""
    theirs = getattr(scipy.linalg, module.__name__.rpartition(".")[2])
    names = [name for name in module.__all__ if type(getattr(theirs, name, None)).__name__ == "fortran"]
    assert len(names) > 40
    for name in names:
        function, line = getattr(module, name), getattr(theirs, name).__doc__.splitlines()[0]
        listed = line[line.index("(") + 1 : line.rindex(")")].replace("[", "").replace("]", "")
        found = inspect.signature(function).parameters.values()
        ours = [each.name for each in found if each.kind is each.KEYWORD_ONLY]
        assert ours in ([], ["method"], ["rook"])
        assert [each.name for each in found][: -len(ours) or None] == [
            each for each in listed.split(",") if each
        ]


@pytest.mark.parametrize("stem", STEMS)
def test_a_counterpart_differs_in_conjugation(stem):
    row = ROUTINES[stem]
    if row.counterpart:
        other = ROUTINES[row.counterpart]
        assert other.counterpart == stem and other.hermitian != row.hermitian
        assert other.arguments == row.arguments and other.flags == row.flags and other.fmas == row.fmas


@pytest.mark.parametrize(
    ("stem", "n", "expected"),
    [("gemm", 10, 2000), ("trsm", 10, 1000), ("syrk", 10, 1000), ("her2k", 10, 2000), ("potrf", 12, 576)],
)
def test_operations(stem, n, expected):
    named = extents(n, n, n)
    assert ROUTINES[stem].flops(DTYPES["d"], named) == expected
    assert ROUTINES[stem].flops(DTYPES["z"], named) == 4 * expected


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("gemm", 2 * 4 + 4 * 3 + 2 * 2 * 3),
        ("trsm", 3 + 6),
        ("syrk", 3 * 4 + 2 * 6),
        ("gemv", 6 + 3 + 2 * 2),
        ("ger", 2 + 3 + 2 * 6),
        ("syr", 2 + 2 * 3),
        ("trmv", 3 + 2 + 2),
        ("dot", 2 + 2 + 1),
    ],
)
def test_traffic(stem, expected):
    """Each operand is read once, half of a triangle; an output that is updated counts twice."""
    assert ROUTINES[stem].traffic(extents(2, 3, 4)) == expected


def test_products_and_triangles_have_a_bound():
    for row in ROUTINES.values():
        assert bool(row.bound) == (row.group == "level3")
        assert not row.bound or row.error.__name__.endswith("_error")


def test_extents_follow_the_side():
    (a, b) = ROUTINES["trsm"].matrices
    assert a.shape(extents(3, 5)) == (3, 3) and a.shape(extents(3, 5, side=Side.RIGHT)) == (5, 5)
    assert b.shape(extents(3, 5)) == (3, 5) and ROUTINES["getrf"].matrices[0].shape(extents(3, 5)) == (3, 1)


def test_transposes_of_updates():
    """Complex arrays have one in an update with one op; real ones, and products, have both."""
    for row in routines("level3"):
        for dtype in DTYPES.values():
            for op in row.ops:
                values = row.values(op, dtype)
                one = Trans.CONJ if row.hermitian else Trans.TRANS
                is_limited = dtype.is_complex and row.stem in ("syrk", "herk", "syr2k", "her2k")
                assert values == ((Trans.NO, one) if is_limited else tuple(Trans))


def test_arguments_are_arranged_in_the_order_of_the_launch_list():
    arranged = ROUTINES["gemm"].arranged({"alpha": 2, "beta": 3}, ["a", "b", "c"])
    assert arranged == [2, "a", "b", 3, "c"]


#: Variables and attributes that hold the name of a routine.
HOLDERS = ("routine", "which", "stem", "operation")
CUTS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split"}
PIECES = set(STEMS) | set(typed_names())


def holds_a_name(node: ast.AST) -> bool:
    """Whether an expression is the name of a routine; `options.routine` are several."""
    if ast.unparse(node) == "options.routine":
        return False
    called = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return called in HOLDERS


def is_piece(node: ast.AST) -> bool:
    """Whether a text is a part of a routine's name."""
    text = node.value if isinstance(node, ast.Constant) else None
    return (
        isinstance(text, str) and (len(text) > 1 or text.isdigit()) and any(text in name for name in PIECES)
    )


def cuts(text: str) -> list[str]:
    """The expressions that take a routine's name apart: methods, slices, look-ups of letters, patterns."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value, is_cut = node.func.value, node.func.attr in CUTS
            is_name = isinstance(value, ast.Name | ast.Attribute) and getattr(value, "id", "") != "re"
            named = holds_a_name(value) or (is_name and is_cut and any(map(is_piece, node.args)))
            matched = getattr(value, "id", "") == "re" and any(map(holds_a_name, node.args))
            found += [node] if (named and is_cut) or matched else []
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            is_place = isinstance(node.slice, ast.Slice | ast.UnaryOp) or (
                isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)
            )
            of_call = ast.unparse(node.value) in ("call.name", "name")
            found += [node] if is_place and (holds_a_name(node.value) or of_call) else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            is_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            found += [node] if is_text and holds_a_name(node.comparators[0]) else []
    return [ast.unparse(node) for node in found]


def test_no_name_of_a_routine_is_taken_apart():
    found = {file.relative_to(PACKAGE).as_posix(): cuts(file.read_text()) for file in FILES}
    assert not {file: texts for file, texts in found.items() if texts}


@pytest.mark.parametrize(
    "text",
    [
        "which.startswith('her')",
        "name.endswith('2k')",
        "tiled.routine.startswith(prefix)",
        "call.name[-5:]",
        "which[1:]",
        "'2' in case.routine",
        "re.match('d?gemm', routine)",
        "name.removeprefix('sy')",
    ],
)
def test_a_name_that_is_taken_apart_is_seen(text):
    assert len(cuts(text)) == 1


@pytest.mark.parametrize(
    "text", ["name.startswith('overwrite_')", "ROUTINES[which]", "which in ('trmm', 'trsm')", "path.name[0]"]
)
def test_what_takes_no_name_apart(text):
    assert not cuts(text)
