"""SYMM, SYRK and their kin end to end on the simulator: blocks, masks and scratch, exactly."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import cycle, product

import numpy as np
import pytest
from covering import of_precision
from hypothesis import given
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.routine_table import ROUTINES as ROWS
from pyblasgpu.routines.level3 import gemmtr, syr2k, syrk
from pyblasgpu.routines.level3.symm import launch_list as symm_launch_list
from pyblasgpu.testing.reference import fenced
from pyblasgpu.testing.symmetric_cases import (
    ROUTINES,
    SYMMETRIC,
    SymmetricCase,
    algorithms,
    data,
    exact,
    symmetric_cases,
)
from pyblasgpu.types import DTYPES, Uplo

from .test_routines import NAN, SOME, backend, lay, operand, outside, same, small_kernels, stored  # noqa: F401

SIZES = (0, 1, 17)
STOPS = (8, 16, 256)


@contextmanager
def small_blocks(letter: str, stop: int = 8, stages: int = 2, algorithm: str | None = None):
    """Replace what `small_kernels` does, with diagonal blocks of order `stop`; SYR2K by `algorithm`."""
    with small_kernels(letter, stages=stages), override("symm", stop), override("syr2k_algorithm", algorithm):
        yield


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", ROUTINES)
def test_all_cases(routine, letter):
    rng = np.random.default_rng(1)
    cases = [case for case in symmetric_cases(routine, SIZES, (19, 9)) if case.dtype.letter == letter]
    if letter in "sd" and ROWS[routine].hermitian:  # those of symmetric matrices by another name
        cases = cases[::4]
    ways = cycle(algorithms(routine))
    if letter in "dz":
        next(ways)
    for (number, case), algorithm in zip(enumerate(of_precision(letter, cases)), ways):
        matrices = data(rng, case)
        c, unharmed = fenced(matrices.c, "CF"[number // 2 % 2])
        inputs = [np.asarray(x, order="FC"[number % 2]) for x in matrices.inputs]
        with small_blocks(letter, STOPS[number % len(STOPS)], 1 + number % 2, algorithm):
            result = getattr(pyblasgpu, routine)(
                *inputs, out=c, alpha=case.alpha, beta=case.beta, **case.options
            )
        assert result is c
        same(c, exact(case, matrices), case)
        assert unharmed()


@pytest.mark.parametrize("routine", ROUTINES)
def test_a_new_result(routine):
    rng = np.random.default_rng(2)
    for uplo, algorithm in product(Uplo, algorithms(routine)):
        case = SymmetricCase(routine, DTYPES["z"], 19, m=19, k=5, uplo=uplo, alpha=2, batch=(2,))
        matrices = data(rng, case)
        matrices.c[...] = 0
        with small_blocks("z", algorithm=algorithm):
            same(
                getattr(pyblasgpu, routine)(*matrices.inputs, alpha=2, **case.options),
                exact(case, matrices),
                case,
            )


def launch_list_of(case: SymmetricCase, operands: list):
    """The launch list of a case without transpositions."""
    *inputs, c = operands
    if case.routine in SYMMETRIC:
        flags = {"side": case.side, "uplo": case.uplo, "hermitian": case.hermitian}
        return symm_launch_list(case.alpha, *inputs, case.beta, c, **flags)
    if case.routine == "gemmtr":
        return gemmtr.launch_list(case.alpha, *inputs, case.beta, c, uplo=case.uplo)
    module = syr2k if "2" in case.routine else syrk
    return module.launch_list(case.alpha, *inputs, case.beta, c, uplo=case.uplo, hermitian=case.hermitian)


@SOME
@given(st.data())
def test_any_strides(draw):
    routine = draw.draw(st.sampled_from(ROUTINES))
    letter = draw.draw(st.sampled_from("sdcz"))
    dtype, rng = DTYPES[letter], np.random.default_rng(draw.draw(st.integers(0, 99)))
    m, n, k, batch = (draw.draw(st.integers(1, limit)) for limit in (26, 26, 10, 2))
    kind = SymmetricCase(routine, dtype, n, m=m, k=k)
    uplo, side = draw.draw(st.sampled_from(Uplo)), draw.draw(st.sampled_from(type(kind.side)))
    alpha, beta = draw.draw(st.sampled_from([1, 2])), draw.draw(st.sampled_from([0, 1, -1]))
    case = SymmetricCase(
        routine, dtype, n, m=m, k=k, uplo=uplo, side=side, alpha=alpha, beta=beta, batch=(batch,)
    )
    matrices = data(rng, case)
    conj = dtype.is_complex and draw.draw(st.booleans())
    seen = matrices._replace(inputs=tuple([x.conj() for x in matrices.inputs])) if conj else matrices
    inputs = [lay(x, draw.draw(stored(batch=True))) for x in matrices.inputs]
    first = seen._replace(
        inputs=tuple([x[:1] if len(y) < len(x) else x for x, y in zip(seen.inputs, inputs)])
    )
    c = lay(matrices.c, draw.draw(stored()))
    before = outside(c)
    operands = [operand(x, conj)._replace(batch=batch) for x in inputs]
    operands = [
        x._replace(batch_stride=0) if len(y) == 1 else x for x, y in zip(operands, inputs, strict=True)
    ]
    operands.append(operand(c))
    stop, algorithm = draw.draw(st.sampled_from(STOPS)), draw.draw(st.sampled_from(algorithms("syr2k")))
    with small_blocks(letter, stop, algorithm=algorithm), override("splits", 1):
        launches = launch_list_of(case, operands)
        if launches is not None:
            launches.run([x.pointer for x in operands], alpha, beta, stream=0)
    same(c, exact(case, first), case)
    assert outside(c) == before


@pytest.mark.parametrize("routine", ROUTINES)
def test_a_nan_reaches_what_depends_on_it_and_no_more(routine):
    """One in row 12, column 5 of the first input."""
    n = 21
    a = np.where(np.tri(n, dtype=bool), 1.0, NAN) if routine in SYMMETRIC else np.ones((n, n))
    a[12, 5] = NAN
    spoilt = np.zeros((n, n), bool)
    spoilt[12] = True
    if routine in SYMMETRIC:
        spoilt[5] = True  # its mirror image
    elif routine != "gemmtr":
        spoilt[:, 12] = True
    inputs = (a,) if "rk" in routine else (a, np.ones((n, n)))
    for algorithm in algorithms(routine):
        with small_blocks("d", algorithm=algorithm):
            result = getattr(pyblasgpu, routine)(*inputs, lower=True)
        same(np.isnan(result), spoilt if routine in SYMMETRIC else np.tril(spoilt), routine)
