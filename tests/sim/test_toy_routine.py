"""A LAPACK routine of one file: mathematics, CPU function, signature, row. Nothing else has its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyblasgpu import cli, explain
from pyblasgpu.api.blas.functions import functions_of
from pyblasgpu.api.lapack.call import as_stack, dressed, factor_call, order_of, run_by_row
from pyblasgpu.engine.leaves import LeafRun
from pyblasgpu.frontend.calls.factor_replay import call_key, replay_factor
from pyblasgpu.operands import Operand
from pyblasgpu.routine import Matrix, Routine, extents
from pyblasgpu.routine_table import ROUTINES, register, typed_names
from pyblasgpu.routines.copies import emit_scale
from pyblasgpu.routines.launch_list import LaunchList, cached_launch_list
from pyblasgpu.tasks import TileLeaf
from pyblasgpu.testing.leaves_on_host import run_leaf
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Region, Uplo

STEM = "trdbl"
SHAPES = [(5, 5), (2, 3, 3)]


# ------------------------------------------------------------------------------------- routines/: mathematics


def launch_list(a: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Twice a triangle, in place."""
    return None if a.is_empty else cached_launch_list(emit, (a,), (uplo,))


def emit(launches: LaunchList, a: Operand, uplo: Uplo) -> None:
    emit_scale(launches, 2.0, a, zero=False, region=Region.of(uplo))


# ----------------------------------------------------------------------------------- cpu/scipy/: CPU function


def on_cpu(a: np.ndarray, uplo: Uplo) -> None:
    a[...] += np.tril(a) if uplo is Uplo.LOWER else np.triu(a)


# -------------------------------------------------------------------------- api/lapack/: signature, docstring


def make(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
    def trdbl(c: Any, lower: Any = 0, overwrite_c: Any = 0) -> Any:
        """Twice a triangle.

        Returns
        -------
        a : array, shape (n, n) or (..., n, n)
            Twice the triangle; the other one is that of `c`.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lapack.trdbl([[1, 2], [3, 4]], lower=1).tolist()
        [[2.0, 2.0], [6.0, 8.0]]
        """
        uplo = Uplo.parse(lower, name, "lower")
        triangle = as_stack(name, "c", c, dtype)
        order_of(name, "c", triangle)
        key = call_key(name, uplo)
        if (repeated := replay_factor(key, (triangle,), overwrite_c)) is not None:
            return repeated[0]
        call, source = factor_call(name, dtype, {}, "c", triangle, overwrite_c)
        (a,) = run_by_row(call, stem, {"uplo": uplo}, source, counts=(), key=key)
        return a

    return dressed(trdbl, stem, name, dtype)


# ------------------------------------------------------------------------------------- routine_table: its row

ROW = Routine(
    STEM,
    "lapack",
    (Matrix("c", "m", "m", is_half=True),),
    ("uplo",),
    work=("m", "m"),
    fmas=(1, 2),
    launches=__name__,
    cpu=f"{__name__}:on_cpu",
)


@pytest.fixture(autouse=True)
def lapack():
    """The functions of the toy by their names."""
    register(ROW)
    yield functions_of({STEM: make}, generic=True)
    del ROUTINES[STEM]


@pytest.mark.parametrize("backend", ["cpu", "sim"])
@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_computes(lapack, backend, letter, lower, shape, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", backend)
    a = integers(np.random.default_rng(3), shape, DTYPES[letter])
    before, function = a.copy(), lapack[f"{letter}trdbl"]
    expected = before + (np.tril(before) if lower else np.triu(before))
    np.testing.assert_array_equal(function(a, lower=lower), expected)
    np.testing.assert_array_equal(a, before)
    held = np.asfortranarray(a)
    assert function(held, lower, 1) is held or len(shape) > 2


def test_its_errors_name_it(lapack):
    with pytest.raises(ValueError, match=r"dtrdbl: c has shape \(2, 3\); a square matrix"):
        lapack["dtrdbl"](np.ones((2, 3)))
    with pytest.raises(ValueError, match="dtrdbl: lower=5"):
        lapack["dtrdbl"](np.ones((2, 2)), lower=5)


def test_its_docstring_is_completed(lapack):
    function = lapack["ztrdbl"]
    doc = inspect.getdoc(function)
    assert doc.startswith("Twice a triangle, in complex128.\n\n``a = ztrdbl(c, [lower, overwrite_c])``")
    assert "overwrite_c : bool" in doc and function.typecode == "z" and "lapack.ztrdbl(" in doc


def test_it_is_explained(capsys):
    rows = explain(STEM, "d", 96, device="h200")
    assert [what for what, *_ in rows] == ["copy_scaled", "grid of copy_scaled", "workspace"]
    assert cli.main(["explain", "dtrdbl", "96", "--device", "h200"]) == 0
    assert "dtrdbl, 96 x 96" in capsys.readouterr().out
    with pytest.raises(ValueError, match="the matrix of trdbl is square"):
        explain(STEM, "d", 96, 5, device="h200")


def test_its_names_and_operations_are_known(lapack):
    assert list(lapack) == [STEM, "strdbl", "dtrdbl", "ctrdbl", "ztrdbl"]
    assert lapack[STEM](np.ones((2, 2), "F"), 1).tolist() == [[2, 1], [2, 2]]
    assert typed_names("lapack")["ctrdbl"] == (ROW, DTYPES["c"])
    assert ROW.flops(DTYPES["d"], extents(10)) == 100


def test_a_task_may_be_a_call_of_it():
    array = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    operand = Operand(array.ctypes.data, 3, 3, 1, 3, DTYPES["d"])
    before = array.copy()
    run_leaf(LeafRun(TileLeaf.of(STEM, lower=Uplo.LOWER), [operand]))
    np.testing.assert_array_equal(array, before + np.tril(before))
