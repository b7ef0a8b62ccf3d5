"""Eigenvalues by divide and conquer, by kernels alone: tridiagonal form, leaves, pairs, products."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager, nullcontext

import numpy as np
import pytest
from eigen_cases import check_eigen, hermitian

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.factor.eigen import band_chase, ormtr, sytrd, sytrd_resident, tridiagonal_merge
from pyblasgpu.routines.lapack import (
    band_reduction,
    eigh_divided,
    tridiagonal_by_band,
    tridiagonal_form,
)
from pyblasgpu.routines.launch_list import cache, cached_launch_list

from .test_qr import operand, small_panels

#: The modules that run a kernel.
RUN_BY = {
    "sytrd": tridiagonal_form,
    "sytrd_resident": tridiagonal_form,
    "band_chase": tridiagonal_by_band,
    "ormtr": tridiagonal_form,
    "tridiagonal_merge": eigh_divided,
}


def unrecorded(stepper):
    """Steps whose accesses to the band are not recorded: blocks write it in turn, which the simulator takes
    for a race. Where a turn is wrong, so are the results.
    """

    def of(config):
        step, at = stepper(config), inspect.signature(stepper(config)).parameters
        number = list(at).index("band")

        def run(*arguments):
            band = arguments[number].offset(0)
            band.log = None
            return step(*arguments[:number], band, *arguments[number + 1 :])

        return run

    return of


@contextmanager
def by_bands(letter, blocks, kernels):
    """Matrices become bands of four subdiagonals first, by two panels at a time; groups have three sweeps."""
    module = kernels.get("band_chase", band_chase)
    config = band_chase.BandChase(letter, 64, 4)
    with pytest.MonkeyPatch.context() as patch, small_panels(letter), override(band_chase.STEM, config):
        patch.setattr(module, "stepper", unrecorded(module.stepper))
        patch.setattr(type(config), "grid", lambda *_: blocks)
        patch.setattr(tridiagonal_by_band, "GROUP", 3)
        patch.setattr(band_reduction, "PANELS", 2)
        patch.setattr(eigh_divided, "goes_by_band", lambda *_: True)
        yield


def solve(a, vectors=True, blocks=1, bands=False, spread=False, resident=None, **kernels):
    """Eigenvalues, vectors and info of a stack, of which the upper triangle is not read: by leaves of order
    three at most, and small blocks of threads. Matrices stay in registers where there are `resident` rows of
    a lane, warps and blocks. `kernels` stand in for those of their names.
    """
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    batch, n, _ = a.shape
    given = np.where(np.tri(n, dtype=bool), a, np.nan).astype(a.dtype)
    w = np.zeros((batch, n, 1), a.real.dtype)
    v, info = np.full_like(a, 7), np.full((batch, 1, 1), 7, a.dtype)
    operands = [operand(array) for array in (w, info, v, given)]
    config = sytrd.Sytrd(letter, 64, 64, blocks > 1)
    real = "s" if letter in "sc" else "d"
    kept = sytrd_resident.SytrdResident(letter, *(resident or (1, 1, 1)))
    merge = tridiagonal_merge.TridiagonalMerge(real, 32, 64, blocks > 1, spread)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tridiagonal_form, "LEAF", 3)
        patch.setattr(sytrd, "GROUPS", 4)
        patch.setattr(tridiagonal_merge, "SHARE", 8)
        if not resident:
            for config_class in (sytrd_resident.SytrdResident, ormtr.Ormtr):
                patch.setattr(config_class, "specialize", lambda *_: None)
        if spread:
            patch.setattr(tridiagonal_merge.TridiagonalMerge, "blocks", lambda *_: blocks)
        for name, module in kernels.items():
            patch.setattr(RUN_BY[name], name, module)
        cache.clear()
        way = by_bands(letter, blocks, kernels) if bands else nullcontext()
        back = ormtr.Ormtr(letter, 32, 32 * kept.ROWS, 4)
        chosen = ((sytrd, config), (sytrd_resident, kept), (ormtr, back), (tridiagonal_merge, merge))
        with way, ExitStack() as overrides:
            for kernel, each in chosen:
                overrides.enter_context(override(kernel.STEM, each))
            launches = cached_launch_list(eigh_divided.emit, tuple(operands), (vectors,))
            launches.run([each.pointer for each in operands], 1.0, stream=0)
        cache.clear()
    return w[..., 0], v, info.view(np.int32)[:, 0, 0]


def check(letter="d", n=6, kind="random", batch=1, values=False, **options) -> None:
    """Eigenvalues and vectors; with `values` those alone, too."""
    a = hermitian(kind, letter, batch, n)
    w, v, info = solve(a, **options)
    check_eigen(a, w, v)
    assert not info.any()
    if values:
        w, untouched, _ = solve(a, vectors=False, **options)
        check_eigen(a, w)
        assert (untouched == 7).all()


def mixed(**kernels) -> None:
    """What is not finite stays in its matrix."""
    a = hermitian("random", "c", 2, 6)
    a[0, 4, 2] = np.inf
    w, v, info = solve(a, **kernels)
    assert info.tolist() == [6, 0] and np.isnan(w[0]).all() and np.isnan(v[0]).all()
    check_eigen(a[1:], w[1:], v[1:])


CASES = [("s", 4, 1, 2), ("d", 12, 2, 2), ("c", 7, 1, 2), ("z", 6, 2, 2), ("s", 24, 2, 1)]


@pytest.mark.parametrize(("letter", "n", "blocks", "batch"), CASES)
def test_eigenvalues_and_vectors(letter, n, blocks, batch):
    check(letter, n, batch=batch, blocks=blocks, values=n < 20)


#: Letter, order, and rows of a lane, warps and blocks: a block, one with more rows, a cluster, and one with
#: columns in shared memory.
RESIDENT = [("d", 7, (1, 2, 1)), ("z", 4, (1, 1, 3)), ("s", 33, (2, 1, 1)), ("c", 5, (1, 2, 2, 2, 7))]


@pytest.mark.parametrize(("letter", "n", "resident"), RESIDENT)
def test_matrices_in_registers(letter, n, resident):
    check(letter, n, batch=1 + (letter == "d"), resident=resident)


def values_by_band(letter="d", n=9, kind="random", blocks=2, **kernels) -> None:
    """Eigenvalues alone, by way of a band."""
    a = hermitian(kind, letter, 1, n)
    check_eigen(a, solve(a, vectors=False, blocks=blocks, bands=True, **kernels)[0])


BANDS = [("z", 9, 2, 1), ("s", 15, 3, 1), ("d", 6, 1, 2)]


@pytest.mark.parametrize(("letter", "n", "blocks", "batch"), BANDS)
def test_by_way_of_a_band(letter, n, blocks, batch):
    check(letter, n, batch=batch, blocks=blocks, bands=True)


@pytest.mark.parametrize("kind", ["tiny", "diagonal"])
def test_special_bands(kind):
    values_by_band("c", 7, kind)


@pytest.mark.parametrize(("letter", "n", "blocks", "batch"), [("d", 11, 3, 2), ("c", 6, 2, 1)])
def test_arrays_in_memory(letter, n, blocks, batch):
    check(letter, n, batch=batch, blocks=blocks, spread=True, values=n < 9)


SPECIAL = [("s", "two clusters"), ("z", "signs"), ("d", "graded"), ("c", "ones"), ("s", "tiny")]


@pytest.mark.parametrize(("letter", "kind"), SPECIAL)
def test_special_matrices(letter, kind):
    check(letter, 12, kind)


@pytest.mark.parametrize("bands", [False, True])
def test_what_is_not_finite(bands):
    mixed(bands=bands)
