"""SYMM, HEMM, SYRK, HERK, SYR2K, HER2K and GEMMTR on a device: exact on integers, within their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import scipy.linalg.blas

import pyblasgpu
from pyblasgpu import blas
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import OverlapError
from pyblasgpu.testing.cases import SIZES
from pyblasgpu.testing.problems import Problem, fits
from pyblasgpu.testing.reference import integers
from pyblasgpu.testing.symmetric_cases import (
    RANK_K,
    ROUTINES,
    SymmetricCase,
    algorithms,
    data,
    exact,
    symmetric_cases,
)
from pyblasgpu.types import DTYPES, Uplo

from .precompile import sources_of
from .running import NAN, Placed, cupy, same


@contextmanager
def forced(stop: int | None = None, algorithm: str | None = None) -> Iterator[None]:
    """Diagonal blocks of this order; SYR2K and HER2K by this algorithm; by default as the library has
    them.
    """
    with override("symm", stop), override("syr2k_algorithm", algorithm):
        yield


@dataclass(frozen=True)
class Run:
    """A case: order of C, alignment, and what is `forced`."""

    case: SymmetricCase
    order: str = "F"
    aligned: bool = True
    stop: int | None = None
    algorithm: str | None = None

    def __str__(self):
        kind = f"{self.order}{'' if self.aligned else ', odd'}{f', stop {self.stop}' if self.stop else ''}"
        return f"{self.case} ({kind}{f', {self.algorithm}' if self.algorithm else ''})"

    def start(self) -> tuple[Placed, np.ndarray]:
        """Call the routine; C, not yet fetched, and what it should be."""
        case = self.case
        operands = data(np.random.default_rng(case.n + 3 * case.k), case)
        out = Placed(operands.c, self.order, self.aligned)
        inputs = [Placed(x, "F", self.aligned).array for x in operands.inputs]
        routine = getattr(pyblasgpu, case.routine)
        with forced(self.stop, self.algorithm):
            result = routine(*inputs, alpha=case.alpha, beta=case.beta, out=out.array, **case.options)
        assert result is out.array
        return out, exact(case, operands)

    def check(self) -> None:
        """Run it; raise unless every bit is right and no other was touched."""
        out, expected = self.start()
        same(out.fetch(), expected, self)
        assert out.unharmed(), f"{self}: memory outside the result was written"


def runs(routine: str, letter: str) -> Iterator[Run]:
    """All cases, in one block and in several, by all algorithms; flags also row-major, unaligned; batches."""
    cases = [case for case in symmetric_cases(routine, SIZES) if case.dtype.letter == letter]
    for (number, case), algorithm in product(enumerate(cases), algorithms(routine)):
        many = max(case.extents) > 129
        yield Run(case, stop=256 if many else (None, 16)[number % 2], algorithm=algorithm)
        if case.extents == (65, 33):
            yield Run(case, "C", False, 16, algorithm)
    batches = ((3,), 16), ((2, 3), None), ((300,), None)
    for (batch, stop), algorithm in product(batches, algorithms(routine)):
        case = SymmetricCase(routine, DTYPES[letter], 40, m=40, k=9, alpha=2, beta=-1, batch=batch)
        yield Run(case, stop=stop, algorithm=algorithm)


ALL = [(routine, letter) for routine in ROUTINES for letter in DTYPES]


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    calls = (run.start for which in ALL for run in runs(*which))
    compile_once("symmetric", lambda: sources_of(calls))


@pytest.mark.parametrize(("routine", "letter"), ALL)
def test_exact(routine, letter):
    for run in runs(routine, letter):
        run.check()


@pytest.mark.parametrize(("routine", "letter"), ALL)
def test_a_new_result(routine, letter):
    """With zeros in the other triangle; and the same again, from what is remembered of the call."""
    for uplo, algorithm in product(Uplo, algorithms(routine)):
        case = SymmetricCase(routine, DTYPES[letter], 65, m=65, k=33, uplo=uplo, alpha=2)
        operands = data(np.random.default_rng(1), case)
        operands.c[...] = 0
        inputs = [cupy.asarray(x, order="F") for x in operands.inputs]
        with forced(algorithm=algorithm):
            actual = getattr(pyblasgpu, routine)(*inputs, alpha=2, **case.options)
            same(actual.get(), exact(case, operands), case)
            assert actual.flags.f_contiguous
            for _ in range(3):
                actual[...] = 0
                getattr(pyblasgpu, routine)(*inputs, alpha=2, out=actual, **case.options)
                same(actual.get(), exact(case, operands), case)


@pytest.mark.parametrize(("routine", "letter"), ALL)
def test_negative_steps(routine, letter):
    case = SymmetricCase(routine, DTYPES[letter], 65, m=65, k=33, alpha=2, beta=-1)
    operands = data(np.random.default_rng(2), case)
    inputs = [cupy.asarray(x[::-1, ::-1].copy())[::-1, ::-1] for x in operands.inputs]
    for algorithm in algorithms(routine):
        room = cupy.full((130, 195), NAN, case.dtype.name)
        out = room[::-2, ::3]
        out[...] = cupy.asarray(operands.c)
        with forced(16, algorithm):
            getattr(pyblasgpu, routine)(*inputs, alpha=2, beta=-1, out=out, **case.options)
        same(out.get(), exact(case, operands), case)
        out[...] = NAN
        assert bool(cupy.isnan(room).all())


VARIANTS = {
    **dict.fromkeys(RANK_K, ("LN", "UT", "UC")),
    "symm": ("LL", "RU"),
    "hemm": ("LU", "RL"),
    "gemmtr": ("LNN", "UTC"),
}


def problems(routine: str, letter: str, n: int) -> Iterator[Problem]:
    """Square ones; of a Hermitian routine in a real dtype there is none."""
    for variant in VARIANTS[routine]:
        if fits(routine, DTYPES[letter], variant):
            yield Problem.square(routine, DTYPES[letter], variant, n, alpha=0.7, beta=-1.3)


def on_device(x: np.ndarray):
    return cupy.asarray(x, order="F")


@pytest.mark.parametrize(("routine", "letter"), ALL)
def test_error_bounds(routine, letter):
    """Several diagonal blocks of the order that the library takes by itself."""
    for problem, algorithm in product(problems(routine, letter, 2100), algorithms(routine)):
        operands = problem.data()
        x = operands.map(on_device)
        with forced(algorithm=algorithm):
            problem.ours(x, "cuda")
        assert problem.error(operands, x.out.get(order="A")) < 1, (problem.variant, algorithm)


@pytest.mark.parametrize(("routine", "letter"), ALL)
def test_the_same_bits(routine, letter):
    """On every run, and for a C with a longer leading stride."""
    for problem, algorithm in product(problems(routine, letter, 700), algorithms(routine)):
        x = problem.data().map(on_device)
        results = []
        for room in (700, 700, 704):
            out = cupy.empty((room, 700), x.out.dtype, order="F")[:700]
            out[...] = x.out
            with forced(algorithm=algorithm):
                problem.ours(x._replace(out=out), "cuda")
            results.append(out.get())
        assert all(np.array_equal(result, results[0], equal_nan=True) for result in results[1:])


@pytest.mark.parametrize(("routine", "letter"), ALL)
def test_blas_on_host_arrays_is_scipys(routine, letter, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    name = letter + routine
    if not hasattr(scipy.linalg.blas, name):
        assert routine == "gemmtr" or not hasattr(blas, name)
        return
    dtype, rng = DTYPES[letter], np.random.default_rng(3)
    trans = {"trans": 2 if routine.startswith("he") else 1} if routine in RANK_K else {}
    a, b = (integers(rng, (65, 65), dtype) for _ in "ab")
    inputs = (a,) if routine.endswith("rk") else (a, b)
    c = np.asfortranarray(integers(rng, (65, 65), dtype))
    for lower in range(2):
        options = {"beta": -1, "c": c, "lower": lower, **trans}
        expected = getattr(scipy.linalg.blas, name)(2, *inputs, **options)
        result = getattr(blas, name)(2, *inputs, **options)
        same(result, expected, name)
        same(
            getattr(blas, name)(2, *inputs, lower=lower, **trans),
            getattr(scipy.linalg.blas, name)(2, *inputs, lower=lower, **trans),
            name,
        )
        target = c.copy(order="F")
        assert getattr(blas, name)(2, *inputs, **{**options, "c": target, "overwrite_c": 1}) is target
        same(target, expected, f"{name} overwritten")


def test_overlap_is_refused_and_nothing_written():
    memory = cupy.arange(36.0).reshape(6, 6)
    for routine in ROUTINES:
        inputs = (memory[:3, :3], memory[3:, :3])[: 1 if routine.endswith("rk") else 2]
        with pytest.raises(OverlapError):
            getattr(pyblasgpu, routine)(*inputs, out=memory[2:5, :3])
    same(memory.get(), np.arange(36.0).reshape(6, 6), "memory")
