"""The ways to call a routine: each takes a `Case` and yields pairs of what a call left and what must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
from agreement import assert_agree
from blas_calls import placed
from routine_cases import Case

import pyblasgpu
from pyblasgpu import linalg
from pyblasgpu.testing.reference import fenced

__all__ = [
    "LINALG",
    "aligned",
    "as_new_array",
    "by_keyword",
    "by_linalg",
    "by_plan",
    "by_scipys_name",
    "check",
    "forms",
]

Pairs = Iterator[tuple[Any, Any]]
NAN = float("nan")
#: Routines with two outputs, and those whose output is an input.
_PAIRS = ("swap", "rot", "rotm")
_IN_PLACE = ("trmm", "trsm", "trmv", "trsv", "axpy", "scal", *_PAIRS)
_LAYOUTS = ("C", "F", "strided", "reversed")


def check(cases: Iterable[Case], face: Callable[[Case, int], Pairs]) -> None:
    """Compare the pairs of each call: to the bit, but for roots and for LAPACK."""
    compared = 0
    for number, case in enumerate(cases):
        for result, wanted in face(case, number):
            rtol, atol = (4e-7, 0) if case.row.stem == "nrm2" else (0, 0)
            if case.row.group == "lapack" and np.result_type(wanted).kind in "fc" and np.size(wanted):
                scale = np.nanmax(np.abs(wanted), initial=0)
                atol = 100 * np.finfo(np.result_type(wanted)).eps * max(1, scale)
            assert_agree(result, wanted, case.__str__, rtol=rtol, atol=atol)
            assert np.shape(result) == np.shape(wanted), case
            compared += 1
    assert compared


def written(case: Case) -> str:
    """The argument that SciPy's function writes."""
    row, stem = case.row, case.row.stem
    if row.group == "level3":
        return row.output.name
    if row.group == "level1":
        return "x" if stem == "scal" else "y"
    return "x" if stem in _IN_PLACE else row.output.name


def keyword_options(case: Case) -> dict[str, Any]:
    """Factors and flags by the names of keyword functions; beta of calls with an output alone."""
    given, row = case.given, case.row
    names = {"alpha": "alpha", "lower": "lower", "diag": "unit_diag", "side": "side"}
    options = {new: given[old] for old, new in names.items() if old in given}
    if row.group == "level1" and "a" in given:
        options["alpha"] = given["a"]
    if "beta" in given and written(case) in given:
        options["beta"] = given["beta"]
    if "side" in options:
        options["side"] = "LR"[given["side"]]
    for name in given:
        if name.startswith("trans"):
            options["trans" if len(row.ops) == 1 else name] = "NTC"[given[name]]
    if row.stem in ("dot", "ger") and case.name in (case.dtype.letter + row.stem + "c",):
        options["conj"] = True
    return options


def _positional(case: Case) -> list[str]:
    """The operands of a keyword function, by SciPy's names."""
    row = case.row
    if row.group == "level1":
        return [name for name in "xy" if name in case.given and not (row.stem == "copy" and name == "y")]
    return ["a", "x"] if row.stem in ("trmv", "trsv") else [matrix.name for matrix in row.inputs]


def forms(stem: str) -> tuple[str, ...]:
    """What a keyword function writes: a new array, another one that is given, an input; or a stack."""
    if stem not in _IN_PLACE:
        return "new", "stack"
    return ("new", "in place", "stack") if stem in _PAIRS else ("new", "out", "in place", "stack")


def _is_served(case: Case) -> bool:
    """Whether a keyword function has the call: SciPy's leave y where the matrix is empty."""
    stem, a = case.row.stem, case.given.get("a", 0)
    if case.row.group == "level2" and "y" in case.row.matrices[-1].name and np.size(a) == 0:
        return False
    return stem != "iamax" or case.count > 0


def by_keyword(case: Case, space: Any, form: str, number: int = 0, **options: Any) -> Pairs:
    """A keyword function on arrays of a memory space; `number` selects how its arrays are laid out."""
    if not _is_served(case):
        return
    row, name, positional = case.row, written(case), _positional(case)
    if form == "stack":  # now and then one of its inputs is broadcast
        is_shared = number % 2 and len(positional) > 1 and row.stem not in _PAIRS
        case = case.stacked(positional[0] if is_shared else "")
    arrays, unharmed = _put(case, space, name, number)
    views = {key: case.part(key, array) if key in "xy" else array for key, array in arrays.items()}
    outputs = ("x", "y") if row.stem in _PAIRS else (name,)
    is_new = name not in arrays or row.result or (name in positional and form != "in place")
    in_place = row.stem == "swap" or not is_new
    numbers = [case.given[key] for key in ("c", "s", "param") if key in case.given and row.group == "level1"]
    call = {**keyword_options(case), **space.options, **options}
    if form == "out":
        call["out"] = space.put(np.full(case.of_results(name)[0].shape, NAN, case.dtype.name))
    elif in_place and row.stem != "swap":
        call["out"] = tuple(views[key] for key in outputs) if row.stem in _PAIRS else views[name]
    found = getattr(pyblasgpu, row.stem)(*(views[key] for key in positional), *numbers, **call)
    results = found if isinstance(found, tuple) else (found,)
    for key, result, wanted in zip(outputs, results, case.of_results(*outputs), strict=True):
        assert not in_place or result is views[key]
        assert form != "out" or result is call["out"]
        yield space.get(result), wanted
    for key, array in arrays.items():
        is_output = in_place and key in outputs
        yield space.get(array), case.results[outputs.index(key)] if is_output else case.given[key]
    yield unharmed(), True


def _put(case: Case, space: Any, name: str, number: int) -> tuple[dict[str, Any], Callable[[], bool]]:
    """The arrays of a call, the matrix that is written amid memory that must not change."""
    arrays, unharmed = {}, lambda: True
    for key, value in case.given.items():
        if isinstance(value, np.ndarray):
            if key == name and np.ndim(value) > 1 and key not in "xy":
                laid, unharmed = fenced(value, "CF"[number % 2])
            else:
                laid = placed(value, _LAYOUTS[number % len(_LAYOUTS)])
            arrays[key] = space.put(laid)
    return arrays, unharmed


def by_plan(case: Case, space: Any, number: int) -> Pairs:
    """A plan, made with some arrays and run twice on others that are laid out alike."""
    row, name = case.row, written(case)
    if row.stem == "gemm" and name not in case.given:
        return
    options, plan = keyword_options(case), None
    for _ in range(3):
        given = {key: value for key, value in case.given.items() if isinstance(value, np.ndarray)}
        order: Literal["C", "F"] = "C" if number % 2 else "F"
        arrays = {key: space.put(aligned(value, order)) for key, value in given.items()}
        operands = [arrays[key] for key in _positional(case)]
        out = arrays[name]
        if name in _positional(case) and number % 2:
            out = space.put(aligned(np.full(given[name].shape, NAN, given[name].dtype), "C"))
        if plan is None:
            plan = getattr(pyblasgpu, f"plan_{row.stem}")(*operands, out, **options)
            yield space.get(arrays[name]), given[name]  # nothing is computed
            continue
        assert plan(*operands, out) is out
        yield space.get(out), case.results[0]
        yield from ((space.get(arrays[key]), given[key]) for key in given if arrays[key] is not out)


def aligned(values: np.ndarray, order: Literal["C", "F"]) -> np.ndarray:
    """A copy at an address that is a multiple of 16."""
    room = np.zeros(values.nbytes + 32, np.uint8)
    start = -room.ctypes.data % 16
    copy = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape, order=order)
    copy[...] = values
    return copy


def by_scipys_name(case: Case, module: Any, space: Any, number: int) -> Pairs:
    """A function of `blas` or `lapack`, or SciPy's own under a patch; it may overwrite arguments."""
    function = getattr(module, case.name)
    given, layout = dict(case.given), _LAYOUTS[number % len(_LAYOUTS)]
    for key, value in case.given.items():
        if isinstance(value, np.ndarray):
            given[key] = space.put(placed(value, layout))
    overwritten = [f"overwrite_{key}" for key in given if f"overwrite_{key}" in case.parameters]
    is_overwriting = number % 3 == 0
    if case.row.group == "lapack" and is_overwriting:
        given |= dict.fromkeys(overwritten, 1)
    found = function(**given)
    results = found if isinstance(found, tuple) else (found,)
    for result, wanted in zip(results, case.results, strict=True):
        if wanted is not None:
            yield _fetched(space, result), wanted
            assert not isinstance(result, np.ndarray) or result.dtype == np.result_type(wanted)
            assert not isinstance(result, np.ndarray) or result.flags.f_contiguous
            assert not isinstance(result, int) or type(wanted) is int
    for key, value in case.given.items():
        is_result = any(result is given[key] for result in results)
        if isinstance(value, np.ndarray) and not is_result and not given.get(f"overwrite_{key}"):
            yield space.get(given[key]), value


def _fetched(space: Any, result: Any) -> Any:
    return space.get(result) if hasattr(result, "shape") else np.asarray(result)


def as_new_array(
    case: Case, module: Any, put: Callable[[np.ndarray], Any], get: Callable[[Any], np.ndarray]
) -> Pairs:
    """A function of Dask's arrays, or of a framework's, which takes C as an input."""
    given, name = case.given, written(case)
    arrays = {key: put(value) for key, value in given.items() if isinstance(value, np.ndarray)}
    options = keyword_options(case)
    if name in given and name not in _positional(case):
        options["c"] = arrays[name]
    result = getattr(module, case.row.stem)(*(arrays[key] for key in _positional(case)), **options)
    assert result.shape == case.results[0].shape and get(result).dtype == case.results[0].dtype
    yield get(result), case.results[0]
    yield from ((get(array), given[key]) for key, array in arrays.items())


def _turned(given: dict[str, Any], name: str, flag: str) -> Any:
    a, trans = given[name], given.get(flag, 0)
    return a if not trans else a.swapaxes(-1, -2).conj() if trans == 2 else a.swapaxes(-1, -2)


def _solved(g: dict[str, Any], diag: str) -> Any:
    flags = {"trans": g.get("trans", g.get("trans_a", 0)), "lower": bool(g.get("lower", 0))}
    return linalg.solve_triangular(
        g["a"], g["b"], **flags, unit_diagonal=bool(g.get(diag, 0)), check_finite=False
    )


#: Functions of `linalg` on the arguments of a routine, by its stem; their results are SciPy's first ones.
LINALG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "gemm": lambda g: linalg.matmul(_turned(g, "a", "trans_a"), _turned(g, "b", "trans_b")),
    "gemv": lambda g: linalg.matvec(_turned(g, "a", "trans"), g["x"]),
    "ger": lambda g: linalg.outer(g["x"], g["y"]),
    "dot": lambda g: linalg.dot(g["x"], g["y"]),
    "trsm": lambda g: _solved(g, "diag"),
    "trtrs": lambda g: _solved(g, "unitdiag"),
    "potrf": lambda g: linalg.cholesky(g["a"], lower=bool(g["lower"]), check_finite=False),
    "potrs": lambda g: linalg.cho_solve((g["c"], bool(g["lower"])), g["b"], check_finite=False),
    "posv": lambda g: linalg.solve(
        g["a"], g["b"], assume_a="pos", lower=bool(g["lower"]), check_finite=False
    ),
    "getrf": lambda g: linalg.lu_factor(g["a"]),
    "getrs": lambda g: linalg.lu_solve((g["lu"], g["piv"]), g["b"], g["trans"]),
    "gesv": lambda g: linalg.solve(g["a"], g["b"]),
    "geqrf": lambda g: linalg.qr(g["a"], mode="raw")[0],
}


def by_linalg(case: Case, space: Any, number: int) -> Pairs:
    """A function with NumPy's or SciPy's signature, of calls with neither factors nor outputs."""
    given, row = case.given, case.row
    has_output = row.group in ("level2", "level3") and written(case) in given and row.stem != "trsm"
    if given.get("alpha", 1) != 1 or has_output or given.get("side") or case.name.endswith("c"):
        return
    if row.stem == "potrf" and not given["clean"]:
        return
    arrays = {
        key: space.put(placed(value, _LAYOUTS[number % len(_LAYOUTS)]))
        for key, value in given.items()
        if isinstance(value, np.ndarray)
    }
    views = {key: case.part(key, array) if key in "xy" else array for key, array in arrays.items()}
    found = LINALG[row.stem](given | views)
    results = found if isinstance(found, tuple) else (found,)
    solutions = {"posv": 1, "gesv": 2}
    wanted_ones = case.of_results("y") if row.stem == "gemv" else case.results[solutions.get(row.stem, 0) :]
    for result, wanted in zip(results, wanted_ones, strict=False):
        yield _fetched(space, result), wanted
    yield from ((space.get(array), given[key]) for key, array in arrays.items())
