"""Random calls of the functions of `pyblasgpu.blas`: arguments that fit one another, exact in every dtype."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg.blas
from agreement import assert_agree
from reference_blas import default_count, expected, length, stem_of

from pyblasgpu import blas
from pyblasgpu.api.blas.host import FUNCTIONS
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

__all__ = [
    "EMPTY",
    "FACTORS",
    "NAMES",
    "ON_DEVICE",
    "PLACES",
    "calls_of",
    "check",
    "check_reference",
    "draw",
    "parameters_of",
    "placed",
    "poisoned",
    "rng_of",
]

#: All functions but those that look functions up, and those whose result is rounded whatever they are given.
NAMES = sorted(
    name
    for name in blas.__all__
    if name not in ("find_best_blas_type", "get_blas_funcs")
    and hasattr(getattr(blas, name), "typecode")
    and not name.endswith(("rotg", "rotmg"))
)
#: Those that have kernels.
ON_DEVICE = [name for name in NAMES if name not in FUNCTIONS]
#: Extents m, n and k, of which one at least is 0.
EMPTY = [extents for extents in product((0, 3), repeat=3) if 0 in extents]
#: How arrays may lie; see `placed`.
PLACES = ("F", "C", "strided", "reversed", "misaligned", "misaligned rows", "uneven", "swapped", "read-only")
#: Factors, among them those for which something is not read.
FACTORS = (0, 1, 2)


class _Draw:
    """The arguments of one call, drawn in the order of the signature's names; `fixed` are not drawn."""

    def __init__(self, rng: np.random.Generator, name: str, extents: tuple[int, ...], fixed: dict[str, Any]):
        self.rng, self.name, self.fixed = rng, name, fixed
        self.letter, self.stem = stem_of(name)
        self.dtype = DTYPES[self.letter]
        self.m, self.n, self.k = extents
        self.parameters = parameters_of(name)
        self.given: dict[str, Any] = {}

    def has(self, *names: str) -> bool:
        return all(name in self.parameters for name in names)

    def pick(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def array(self, *shape: int) -> np.ndarray:
        return np.asfortranarray(integers(self.rng, shape, self.dtype))

    def choose(self, name: str, *values: Any) -> Any:
        """What is fixed for a name, or one of the values."""
        return self.fixed[name] if name in self.fixed else self.pick(*values)

    def factor(self, name: str, real: bool = False) -> Any:
        if name in self.fixed:
            return self.fixed[name]
        value = self.pick(*FACTORS)
        return value * (1 + 1j) if value == 2 and self.dtype.is_complex and not real else value

    def flags(self) -> None:
        for name in self.parameters:
            if name in ("lower", "diag", "side") or name.startswith("overwrite"):
                self.given[name] = self.choose(name, 0, 1)
            elif name.startswith("trans"):
                self.given[name] = self.choose(name, *self.operations())

    def operations(self) -> tuple[int, ...]:
        """The values of `trans` that the routine knows."""
        if not self.dtype.is_complex or self.stem not in ("syrk", "syr2k", "herk", "her2k"):
            return 0, 1, 2
        return (0, 2) if self.stem.startswith("he") else (0, 1)

    def vector(self, which: str, n: int) -> None:
        """An array that holds `n` elements as increments and offset have it, and maybe more."""
        if self.has(f"inc{which}"):
            steps = (1, -1) if self.stem.startswith("ger") else (1, 2, 3, -1, -2)
            self.given[f"inc{which}"] = self.choose(
                f"inc{which}", *(step for step in steps if step > 0 or self.stem != "nrm2")
            )
        if self.has(f"off{which}"):
            self.given[f"off{which}"] = self.pick(0, 1, 2)
        inc, off = self.given.get(f"inc{which}", 1), self.given.get(f"off{which}", 0)
        needed = max(length(n, inc, off), off + 1 if off else 0)
        more = 0 if self.stem.startswith("ger") else self.pick(0, 0, 1, 2)
        self.given[which] = self.array(needed + more)

    def draw(self) -> dict[str, Any]:
        self.flags()
        if self.has("alpha"):
            self.given["alpha"] = self.factor("alpha", real=self.stem in ("her", "hpr", "herk"))
        if self.has("beta"):
            self.given["beta"] = self.factor("beta", real=self.stem in ("herk", "her2k"))
        getattr(self, self.kind())()
        return {
            name: self.given[name] for name in self.parameters if name in self.given and not self.left(name)
        }

    def left(self, name: str) -> bool:
        """Whether to leave an argument to its default, which is that of the reference."""
        value, default = self.given[name], 1 if name[:3] == "inc" else 1 if name == "a" else 0
        is_optional = self.parameters[name].default is not inspect.Parameter.empty
        is_number = np.ndim(value) == 0 and name != "n"
        return is_optional and is_number and value == default and bool(self.pick(0, 1))

    def kind(self) -> str:
        if self.stem in ("syrk", "herk", "syr2k", "her2k"):
            return "rank_k"
        if self.has("a", "b"):
            return "two_matrices"
        if not self.has("alpha") and not self.has("a", "x", "lower") and not self.has("ap"):
            return "level_1"
        if self.has("ap"):
            return "packed"
        return {"gbmv": "general_band", "gemv": "gemv"}.get(
            self.stem, "band" if self.has("k") else "outer" if self.stem.startswith("ger") else "square"
        )

    def level_1(self) -> None:
        self.vector("x", self.n)
        self.count()
        if self.has("y"):
            self.vector("y", self.n)
        if self.has("a"):
            self.given["a"] = self.factor("a", real=self.name[:2] in ("cs", "zd"))
        for name in "cs":
            if self.has(name):
                self.given[name] = self.pick(*FACTORS)
        if self.has("param"):
            self.given["param"] = [self.pick(-2.0, -1.0, 0.0, 1.0), 2.0, 3.0, -1.0, 1.0]

    def count(self) -> None:
        """n, or none: then as many elements as x has by default."""
        if self.pick(0, 1):
            self.given["n"] = self.n
        else:
            self.n = default_count(self.stem, self.given)

    def product(self, m: int, n: int) -> None:
        """x, and y or none."""
        self.vector("x", n)
        self.vector("y", m)
        if not self.choose("output", 1, 1, 0):
            del self.given["y"]

    def swapped(self, m: int, n: int) -> tuple[int, int]:
        return (n, m) if self.given["trans"] else (m, n)

    def gemv(self) -> None:
        self.given["a"] = self.array(self.m, self.n)
        self.product(*self.swapped(self.m, self.n))

    def unread(self, band: np.ndarray, m: int, ku: int) -> np.ndarray:
        """A band, NaN where it has no element of the matrix."""
        row, column = np.ogrid[: band.shape[0], : band.shape[1]]
        i = row - ku + column
        return np.asfortranarray(np.where((i >= 0) & (i < m), band, np.nan).astype(band.dtype))

    def general_band(self) -> None:
        kl, ku = self.pick(0, 1, self.k), self.pick(0, 1, self.k)
        band = self.unread(self.array(kl + ku + 1, self.n), self.m, ku)
        spare = np.full((self.pick(0, 0, 1), self.n), np.nan, band.dtype)
        self.given |= {"m": self.m, "n": self.n, "kl": kl, "ku": ku}
        self.given["a"] = np.asfortranarray(np.concatenate([band, spare]))
        self.product(*self.swapped(self.m, self.n))

    def triangle(self, a: np.ndarray, diagonal: Any) -> np.ndarray:
        """`a`, solvable, NaN in what is not read: a unit diagonal, imaginary parts of a Hermitian one."""
        if self.stem.endswith("sv") or self.stem == "trsm":
            a[diagonal] = self.pick(1, -1)
        if self.given.get("diag"):
            a[diagonal] = np.nan
        return self.unread_diagonal(a, diagonal)

    def band(self) -> None:
        k, n = self.k, self.n
        ku = 0 if self.given["lower"] else k
        band = self.unread(self.array(k + 1, n), n, ku)
        self.given |= {"k": k, "a": self.triangle(band, np.s_[ku])}
        self.on_vectors(n)

    def on_vectors(self, n: int) -> None:
        if self.has("beta"):
            self.product(n, n)
        else:
            self.vector("x", n)

    def packed(self) -> None:
        n = self.n
        ap = self.array(n * (n + 1) // 2 + self.pick(0, 0, 2))
        at = np.cumsum(np.arange(n, 0, -1)) - np.arange(n, 0, -1) if self.given["lower"] else None
        at = np.cumsum(np.arange(1, n + 1)) - 1 if at is None else at
        self.given |= {"n": n, "ap": ap}
        if self.stem in ("tpmv", "tpsv", "hpmv"):
            if self.stem == "tpsv":
                ap[at] = self.pick(1, -1)
            if self.given.get("diag"):
                ap[at] = np.nan
            if self.stem == "hpmv":
                ap.imag[at] = np.nan
        self.on_vectors(n)
        if self.has("y", "ap") and not self.has("beta"):
            self.vector("y", n)

    def half(self, n: int) -> np.ndarray:
        """A square matrix, NaN in the triangle that is not read; solutions of large ones stay small."""
        a = self.array(n, n)
        if n > 8 and self.stem == "trsm":
            a[self.rng.random(a.shape) > 0.1] = 0
        a[np.triu_indices(n, 1) if self.given["lower"] else np.tril_indices(n, -1)] = np.nan
        return self.triangle(a, np.diag_indices(n))

    def square(self) -> None:
        """SYMV, HEMV, TRMV, TRSV; SYR and its kin."""
        n = self.n
        if self.has("beta") or not self.has("alpha"):
            self.given["a"] = self.half(n)
            self.on_vectors(n)
            return
        for name in "xy":
            if self.has(name):
                self.vector(name, n)
        self.count()
        if self.choose("output", 0, 1):
            self.given["a"] = self.updated(self.n)

    def updated(self, n: int) -> np.ndarray:
        """A matrix of which one triangle is written, NaN in what is neither read nor written."""
        a = self.array(n, n)
        a[np.triu_indices(n, 1) if self.given["lower"] else np.tril_indices(n, -1)] = np.nan
        return self.unread_diagonal(a, np.diag_indices(n))

    def unread_diagonal(self, a: np.ndarray, diagonal: Any) -> np.ndarray:
        """`a`, NaN in the imaginary parts of the diagonal where it is of a Hermitian matrix."""
        if self.stem[:2] in ("he", "hb") and self.dtype.is_complex:
            a.imag[diagonal] = np.nan
        return a

    def outer(self) -> None:
        self.vector("x", self.m)
        self.vector("y", self.n)
        if self.choose("output", 0, 1):
            self.given["a"] = self.array(self.m, self.n)

    def matrix(self, *shape: int) -> np.ndarray:
        """A matrix, or a vector where it has one column."""
        return self.array(*shape[: 1 if shape[1] == 1 and self.choose("vectors", 0, 1) else 2])

    def rank_k(self) -> None:
        shape = (self.k, self.n) if self.given["trans"] else (self.n, self.k)
        self.given["a"] = self.matrix(*shape)
        if self.has("b"):
            self.given["b"] = self.matrix(*shape)
        if self.choose("output", 0, 1):
            self.given["c"] = self.updated(self.n)

    def two_matrices(self) -> None:
        m, n, k = self.m, self.n, self.k
        if self.stem in ("trmm", "trsm"):
            self.given |= {"a": self.half(n if self.given["side"] else m), "b": self.matrix(m, n)}
            return
        if self.stem in ("symm", "hemm"):
            self.given |= {"a": self.half(n if self.given["side"] else m), "b": self.matrix(m, n)}
        else:
            m = n if self.stem == "gemmtr" else m
            self.given["a"] = self.matrix(*((k, m) if self.given["trans_a"] else (m, k)))
            self.given["b"] = self.matrix(*((n, k) if self.given["trans_b"] else (k, n)))
        if self.choose("output", 0, 1):
            self.given["c"] = self.updated(n) if self.stem == "gemmtr" else self.matrix(m, n)


def rng_of(name: str) -> np.random.Generator:
    """Return a generator of the same numbers for the same name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def parameters_of(name: str) -> Any:
    """Parameters of a function, or of one in another dtype, where SciPy has none."""
    found = (getattr(blas, letter + name[1:], None) for letter in (name[0], "z", "d"))
    return inspect.signature(next(each for each in found if each)).parameters


def draw(rng: np.random.Generator, name: str, extents: tuple[int, ...], **fixed: Any) -> dict[str, Any]:
    """Arguments of a call with the extents m, n and k, each of which may be 0.

    `fixed` are flags, factors and increments, `output`, whether the call has one, and `vectors`, whether a
    matrix of one column may be a vector.
    """
    return _Draw(rng, name, extents, fixed).draw()


def placed(array: np.ndarray, how: Any) -> np.ndarray:
    """A copy of `array` that lies as one of `PLACES` has it, 'swapped' in its bytes."""
    if how in "CF":
        return np.array(array, order=how)
    if how == "strided":
        wide = np.zeros([2 * extent for extent in array.shape], array.dtype)
        view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    elif how == "reversed":
        view = np.empty_like(array)[tuple(slice(None, None, -1) for _ in array.shape)]
    elif how.startswith("misaligned"):
        strides = np.empty(array.shape, array.dtype, "C" if how.endswith("rows") else "F").strides
        view = np.ndarray(array.shape, array.dtype, np.zeros(array.nbytes + 1, np.uint8), 1, strides)
    elif how == "uneven":  # by columns, with half an element behind each element and each column
        half, steps = array.itemsize // 2, [3 * array.itemsize // 2]
        for extent in array.shape[:-1]:
            steps.append(steps[-1] * extent + half)
        raw = np.zeros(steps[-1] * array.shape[-1] + half, np.uint8)
        view = np.ndarray(array.shape, array.dtype, raw, 0, steps)
    elif how == "swapped":
        view = np.empty(array.shape, array.dtype.newbyteorder(), order="F")
    else:
        view = np.empty_like(array)
    view[...] = array
    view.flags.writeable = how != "read-only"
    return view


def calls_of(name: str, *extents: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Arguments of calls with extents of 0, and with these, the same ones for the same name."""
    rng = rng_of(name)
    return [draw(rng, name, each, vectors=0) for each in (*EMPTY, *extents)]


def poisoned(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, their arrays NaN that a factor of 0 keeps from being read."""
    parameters = parameters_of(name)
    unread: set[str] = set()
    if given.get("alpha") == 0:
        inputs = "a ap b x" if "beta" in parameters else "a b" if "b" in parameters else "x y"
        unread |= set(inputs.split())
    if given.get("beta") == 0:
        unread |= {"y", "c"}
    return {
        key: np.full_like(value, np.nan) if key in unread and isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }


def check_reference(name: str, given: dict[str, Any]) -> None:
    """Compare the reference BLAS with SciPy's on arrays of numbers: values, dtypes and shapes."""
    given = {key: np.nan_to_num(value) if np.ndim(value) else value for key, value in given.items()}
    arguments = {key: value.copy("F") if np.ndim(value) else value for key, value in given.items()}
    results = getattr(scipy.linalg.blas, name)(**arguments)
    results = results if isinstance(results, tuple) else (results,)
    for result, wanted in zip(results, expected(name, **given), strict=True):
        tolerance = 4e-7 if name.endswith("nrm2") else 0
        assert_agree(result, wanted, lambda: f"{name} of {given}", rtol=tolerance)
        assert np.shape(result) == np.shape(wanted), f"{name} of {given}"
        assert np.ndim(wanted) == 0 or result.dtype == wanted.dtype, f"{name} of {given}"


def _is_same(array: Any, result: Any) -> bool:
    """Whether a result is an argument: of a vector as a matrix it is a view."""
    if result is array:
        return True
    array, result = (getattr(each, "host", each) for each in (array, result))  # of a stand-in for CuPy's
    is_vector = np.ndim(array) == 1 and np.ndim(result) > 0  # CuPy has no answer about memory of numbers
    return is_vector and np.shares_memory(array, result)


def _is_ready(array: Any) -> bool:
    """Whether SciPy would write into an array: by columns, aligned, in the processor's order of bytes."""
    if not isinstance(array, np.ndarray) or not array.size:
        return False
    flags = array.flags
    return flags.f_contiguous and flags.writeable and flags.aligned and array.dtype.isnative


def check(
    name: str,
    given: dict[str, Any],
    put: Callable[[np.ndarray], Any],
    host: Callable[[Any], Any] = np.asarray,
) -> None:
    """Compare a call with the reference BLAS, its arrays replaced by ``put(array)``, of which `host` makes
    NumPy's; what is no result must stay as it was.
    """
    given = poisoned(name, given)
    arguments = {key: put(value) if isinstance(value, np.ndarray) else value for key, value in given.items()}
    results = getattr(blas, name)(**arguments)
    results = results if isinstance(results, tuple) else (results,)

    def what() -> str:
        return f"{name} of {given}"

    dtypes = {each.dtype for each in given.values() if isinstance(each, np.ndarray)}
    for result, wanted in zip(results, expected(name, **given), strict=True):
        tolerance = 4e-7 if name.endswith("nrm2") else 0  # of all others the results are exact
        assert_agree(host(result), wanted, what, rtol=tolerance)
        assert np.shape(host(result)) == np.shape(wanted), what()
        assert np.ndim(wanted) == 0 or {host(result).dtype} == dtypes, what()
        assert not isinstance(result, np.ndarray) or result.flags.f_contiguous, f"{what()}: not by columns"
    parameters = parameters_of(name)
    for key, value in given.items():
        if isinstance(value, np.ndarray):
            is_kept = not any(_is_same(arguments[key], result) for result in results)
            overwrite = parameters.get(f"overwrite_{key}")
            assert is_kept or overwrite is None or given.get(overwrite.name), f"{what()}: wrote {key}"
            is_scratch = key in "xy" and "overwrite_a" in parameters  # of SciPy's GER alone, and no result
            if overwrite and given.get(overwrite.name) and _is_ready(arguments[key]) and not is_scratch:
                assert not is_kept, f"{what()}: {key} not written"
            if is_kept:
                assert_agree(host(arguments[key]), value, what)
