"""Calls of every routine of the table, with the results that each way to call it must give.

Calls of the BLAS are those of `blas_calls`: small integers, NaN in what is not read, so that the results of
`reference_blas` are exact. Calls of LAPACK have SciPy's results, on arrays without NaN.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg.lapack
from blas_calls import draw, parameters_of, poisoned, rng_of
from reference_blas import default_count, expected, length

from pyblasgpu import blas, lapack
from pyblasgpu.routine import Routine
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.testing.cases import ALPHAS, BETAS, scalars
from pyblasgpu.testing.reference import reals
from pyblasgpu.types import DTYPES, Dtype, Trans

__all__ = ["BLAS", "LAPACK", "Case", "blas_cases", "every", "lapack_cases"]

BLAS = tuple(stem for stem, row in ROUTINES.items() if row.group != "lapack")
LAPACK = tuple(stem for stem, row in ROUTINES.items() if row.group == "lapack")
#: Extents m, n and k of calls with all flags and factors.
SHAPE = (4, 3, 6)
_SWITCHES = ("lower", "side", "diag", "unitdiag", "clean", "compute_v", "compute_uv", "full_matrices")
_WITHOUT_WORK = ("sytrf", "hetrf", "sysv", "hesv")
_TRANS = {Trans.NO: 0, Trans.TRANS: 1, Trans.CONJ: 2}


@dataclass(frozen=True)
class Case:
    """A call by SciPy's arguments.

    Attributes
    ----------
    row : Routine
    name : str
        The letter and the routine: SciPy's name, or that of a Hermitian routine in a real dtype.
    dtype : Dtype
    given : dict
        SciPy's arguments.
    results : tuple
        What SciPy's function returns.
    """

    row: Routine
    name: str
    dtype: Dtype
    given: dict[str, Any]
    results: tuple[Any, ...]

    def __str__(self) -> str:
        shown = {key: np.shape(value) if np.ndim(value) else value for key, value in self.given.items()}
        return f"{self.name} {shown}"

    @cached_property
    def count(self) -> int:
        """The elements of the vectors of a call of Level 1, or of an update by vectors."""
        if "x" not in self.given:
            return 0
        n = self.given.get("n")
        return default_count(self.row.stem, self.given) if n is None else n

    @cached_property
    def lengths(self) -> dict[str, int]:
        """The elements of x and y."""
        row = self.row
        if row.stem == "ger":
            return {name: self.given[name].size for name in "xy"}
        if row.group == "level1" or row.is_update:
            return dict.fromkeys("xy", self.count)
        if "x" not in self.given:
            return {}
        m, n = np.shape(self.given["a"])[:: -1 if self.given.get("trans") else 1]
        return {"x": n, "y": m}

    def part(self, name: str, array: Any) -> Any:
        """The vector in an array, or in a stack of arrays: the elements that increment and offset select."""
        n, step, start = self.lengths[name], self.given.get(f"inc{name}", 1), self.given.get(f"off{name}", 0)
        view = array[..., start : length(n, step, start) : abs(step)]
        return view[..., ::-1] if step < 0 else view

    @property
    def least_extent(self) -> int:
        """The least one of its arrays."""
        return min(extent for value in self.given.values() for extent in np.shape(value))

    @property
    def extents(self) -> tuple[int, ...]:
        """m, and what its operands have of n and k; of squares m is n."""
        found: dict[str, int] = {}
        for matrix in self.row.matrices:
            shape = np.shape(self.given.get(matrix.name, 0))
            if shape:
                rows, cols = (*shape, 1)[:2]
                found = {matrix.cols: cols, matrix.rows: rows} | found
        n = found["n"] if "n" in found else found["m"]
        pair = found.get("m", n), n
        return (*pair, found["k"]) if "k" in found else pair

    @property
    def parameters(self) -> Any:
        """Parameters of SciPy's function."""
        module = lapack if self.row.group == "lapack" else blas
        return inspect.signature(getattr(module, self.name)).parameters

    def of_results(self, *names: str) -> list[Any]:
        """The results, of x and y their vectors alone."""
        is_number = self.row.result or self.row.stem == "dot"
        pairs = zip(names, self.results, strict=True)
        return [self.part(name, each) if name in "xy" and not is_number else each for name, each in pairs]

    def stacked(self, shared: str = "") -> Case:
        """Three of it as a stack, whose arrays are multiples, exact as well; `shared` is one for all."""
        factors = (1, -1, 2)
        arrays = {
            key: value for key, value in self.given.items() if isinstance(value, np.ndarray) and key != shared
        }
        calls = [self.given | {key: each * value for key, value in arrays.items()} for each in factors]
        with np.errstate(invalid="ignore"):
            results = [expected(self.name, **call) for call in calls]
        stacks = {key: np.stack([call[key] for call in calls]) for key in arrays}
        stacked = replace(self, given=self.given | stacks, results=tuple(map(np.stack, zip(*results))))
        vars(stacked).update(count=self.count, lengths=self.lengths)
        return stacked


def _names(row: Routine, letter: str) -> tuple[str, ...]:
    """SciPy's names in a dtype, and one where SciPy has none: of real HEMM, and of complex SYMV."""
    if letter in row.letters:
        return row.scipys(letter)
    return (letter + row.stem,) if row.counterpart else ()


def _crossed(values: dict[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every choice of one value for each name."""
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def _flags(row: Routine, dtype: Dtype, parameters: Any) -> list[dict[str, Any]]:
    values: dict[str, Sequence[Any]] = {each: (0, 1) for each in parameters if each in _SWITCHES}
    ops = [each for each in parameters if each.startswith("trans")]
    for name, flag in zip(ops, row.ops, strict=True):
        values[name] = [_TRANS[value] for value in row.values(flag, dtype)]
    return _crossed(values)


def _factors(row: Routine, name: str, dtype: Dtype) -> dict[str, Sequence[Any]]:
    """The values of alpha and beta, which Level 1 names a."""
    values: dict[str, Sequence[Any]] = {"alpha": ALPHAS, "beta": BETAS, "a": ALPHAS}
    taken = ("alpha", "beta", "a") if row.group == "level1" else ("alpha", "beta")
    is_mixed = row.group == "level1" and name != dtype.letter + row.stem
    return {
        each: scalars(tuple(values[each]), DTYPES["d"] if each in row.real or is_mixed else dtype)
        for each in taken
        if each in parameters_of(name)
    }


@cache
def blas_cases(stem: str, letter: str, shape: tuple[int, int, int] = SHAPE) -> tuple[Case, ...]:
    """Calls of a routine of the BLAS in a dtype.

    Every extent is 0, 1 and 5, all at once and each alone; all flags are crossed at one shape, and so are
    alpha and beta, with an output and without. Increments and offsets are drawn, and 20 calls as a whole.
    """
    return tuple(_blas_cases(ROUTINES[stem], DTYPES[letter], shape))


def _blas_cases(row: Routine, dtype: Dtype, shape: tuple[int, int, int]) -> Iterator[Case]:
    for name in _names(row, dtype.letter):
        rng, factors = rng_of(name), _factors(row, name, dtype)
        always: dict[str, Any] = {"vectors": 0} | ({"incx": 1} if row.result or row.stem == "scal" else {})
        extents: list[tuple[int, ...]] = [(size,) * 3 for size in (0, 1, 5)]
        extents += [(*shape[:axis], size, *shape[axis + 1 :]) for size in (0, 1, 5) for axis in range(3)]
        calls: list[tuple[tuple[int, ...], dict[str, Any]]] = [(each, {}) for each in extents]
        middle = {each: values[-1] for each, values in factors.items()}
        choices = _flags(row, dtype, parameters_of(name))
        calls += [(shape, each | middle | {"output": 1}) for each in choices]
        calls += [(shape, each | {"output": 0}) for each in choices]
        calls += [(shape, each | {"output": 1}) for each in _crossed(factors)]
        calls += [(tuple(rng.integers(0, 8, 3).tolist()), {}) for _ in range(20)]
        for each, fixed in calls:
            given = poisoned(name, draw(rng, name, each, **always, **fixed))
            yield Case(row, name, dtype, given, expected(name, **given))


def _well_conditioned(rng: np.random.Generator, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
    a = reals(rng, shape, dtype)
    return (a + 2 * np.eye(shape[-2], shape[-1], dtype=dtype.name)).astype(dtype.name)


def _indefinite(a: np.ndarray, hermitian: bool) -> np.ndarray:
    """A symmetric or Hermitian matrix of condition 2, with values of both signs, from a general one."""
    q, _ = np.linalg.qr(a)
    values = np.linspace(1, 2, len(a)) * np.where(np.arange(len(a)) % 3, 1, -1)
    product = (q * values) @ (q.conj() if hermitian else q).T
    return ((product + (product.conj() if hermitian else product).T) / 2).astype(a.dtype)


def _lapack_arrays(
    row: Routine, rng: np.random.Generator, dtype: Dtype, n: int, columns: int, lower: int
) -> dict:
    """Arguments of a routine of LAPACK by SciPy's names, without flags; factors are those of a triangle."""
    a, b = _well_conditioned(rng, (n, n), dtype), reals(rng, (n, columns), dtype)
    definite = a @ a.conj().T + np.eye(n, dtype=dtype.name)
    factor = np.where(np.eye(n), a.real, a).astype(dtype.name)
    symmetric = _indefinite(a, row.hermitian)
    right = {"b": b if columns else reals(rng, (n,), dtype)}
    lu, piv, _ = getattr(scipy.linalg.lapack, f"{dtype.letter}getrf")(a)
    tall, wide = reals(rng, (n + 2, n), dtype), reals(rng, (n, n + 2), dtype)
    qr, tau, *_ = getattr(scipy.linalg.lapack, f"{dtype.letter}geqrf")(tall)
    rows, adjoint = n + 2, np.conj(qr.T)
    factors = {}
    if row.stem in ("sytrs", "hetrs", "sytri", "hetri"):
        ldu, ipiv, _ = getattr(scipy.linalg.lapack, f"{dtype.letter}{row.stem[:2]}trf")(symmetric, lower)
        factors = {"a": ldu, "ipiv": ipiv}
    given: dict[str, Any] = {
        "potrf": {"a": definite},
        "posv": {"a": definite, **right},
        "potrs": {"c": factor, **right},
        "trtrs": {"a": a, **right},
        "potri": {"c": factor},
        "trtri": {"c": a},
        "lauum": {"c": factor},
        "getrf": {"a": (a, tall, wide)[columns % 3]},
        "getrs": {"lu": lu, "piv": piv, **right},
        "gesv": {"a": a, **right},
        "getri": {"lu": lu, "piv": piv},
        "laswp": {"a": tall, "piv": piv},
        "geqrf": {"a": (a, tall, wide)[columns % 3]},
        "geqp3": {"a": (a, tall, wide)[columns % 3]},
        "gelqf": {"a": (a, tall, wide)[columns % 3]},
        "orglq": {"a": adjoint, "tau": tau},
        "ormlq": {"a": adjoint, "tau": tau, "c": reals(rng, (rows, rows), dtype), "lwork": rows},
        "sytrf": {"a": symmetric},
        "sytrs": factors | right,
        "sytri": factors,
        "sysv": {"a": symmetric, **right},
        "syevd": {"a": definite},
        "gesdd": {"a": (a, tall, wide)[columns % 3]},
        "orgqr": {"a": qr, "tau": tau},
        "ormqr": {"a": qr, "tau": tau, "c": reals(rng, (rows, rows), dtype), "lwork": rows},
    }
    return given[row.counterpart if row.stem in ("hetrf", "hetrs", "hetri", "hesv") else row.stem]


def _scipys(row: Routine, name: str, dtype: Dtype) -> Callable[..., Any]:
    """SciPy's function; of LQ factors that of QR factors of the adjoint."""
    if "lq" not in row.stem:
        function: Callable[..., Any] = getattr(scipy.linalg.lapack, name)
        return function
    of_qr = getattr(scipy.linalg.lapack, ROUTINES[row.stem.replace("lq", "qr")].scipys(dtype.letter)[0])

    def of_rows(a: np.ndarray, **given: Any) -> tuple[Any, ...]:
        if "trans" in given:
            given["trans"] = "N" if given["trans"] != "N" else "C" if dtype.is_complex else "T"
            return tuple(of_qr(a=np.conj(a.T), **given))
        first, *rest = of_qr(np.conj(a.T), **given)
        return np.conj(first.T), *rest

    return of_rows


def _spoilt(row: Routine, given: dict[str, Any], flags: dict[str, Any]) -> dict[str, np.ndarray]:
    """The triangular matrix of a call, NaN in what is not read: the other triangle and a unit diagonal."""
    if row.half is None:
        return {}
    a = given[row.half.name]
    kept = np.tri(len(a), k=-flags.get("unitdiag", 0), dtype=bool)
    return {row.half.name: np.where(kept if flags.get("lower") else kept.T, a, np.nan).astype(a.dtype)}


@cache
def lapack_cases(stem: str, letter: str) -> tuple[Case, ...]:
    """Calls of a routine of LAPACK in a dtype: all flags, orders of 1 to 9, no, one and three columns."""
    return tuple(_lapack_cases(ROUTINES[stem], DTYPES[letter]))


def _lapack_cases(row: Routine, dtype: Dtype) -> Iterator[Case]:
    if dtype.letter not in row.letters:
        return
    (name,) = row.scipys(dtype.letter)
    function, rng = _scipys(row, name, dtype), rng_of(name)
    parameters = inspect.signature(getattr(lapack, name)).parameters
    for n, columns in product((1, 2, 5, 9), (0, 1, 3)):
        for flags in _lapack_flags(row.stem, dtype, parameters):
            given = _lapack_arrays(row, rng, dtype, n, columns, flags.get("lower", 0))
            results = function(**given, **flags)
            results = results if isinstance(results, tuple) else (results,)
            if "lwork" in parameters and row.stem not in (
                "getri",
                *_WITHOUT_WORK,
            ):  # a workspace, or vectors, whose signs are free
                results = (*results[:-2], None, results[-1])
            if row.stem == "gesdd":
                results = (None, *results[1:])
            spoilt = _spoilt(row, given, flags)
            for key, value in spoilt.items():  # a result there keeps what is not read
                is_same = np.shape(results[0]) == value.shape and (row.output.name == key or row.parts)
                if is_same and not flags.get("clean", 0):
                    results = (np.where(np.isnan(value), value, results[0]), *results[1:])
            yield Case(row, name, dtype, {**given, **spoilt, **flags}, results)


def _lapack_flags(stem: str, dtype: Dtype, parameters: Any) -> list[dict[str, Any]]:
    values: dict[str, Sequence[Any]] = {each: (0, 1) for each in parameters if each in _SWITCHES}
    if stem in ("ormqr", "ormlq"):
        return _crossed({"side": "LR", "trans": "NC" if dtype.is_complex else "NT"})
    if stem == "laswp":
        return [{}, {"inc": -1}, {"k1": 0, "k2": 0}]
    return _crossed(values | ({"trans": (0, 1, 2)} if "trans" in parameters else {}))


def every(stem: str) -> list[Case]:
    """The calls of a routine in all dtypes."""
    cases = blas_cases if stem in BLAS else lapack_cases
    return [case for letter in DTYPES for case in cases(stem, letter)]
