"""Blocking schemes of the papers on a device. Operands bypass shared memory, a thread has one element, packed
operands have every layout, and factors go by pairs of blocks.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyblasgpu.gpu.device import current, known
from pyblasgpu.kernels.copy.packing import CBL, RBL, ROW
from pyblasgpu.kernels.gemm.simt import STEM
from pyblasgpu.operands import Operand
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES
from tuning.papers import kurzak_timed, plasma, steinsland, textured
from tuning.papers.kurzak import variants

from .running import cupy, exact_by, same


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scheme", steinsland.SCHEMES)
def test_every_scheme(scheme, letter):
    configs = [
        steinsland.candidates(scheme, letter, layout, current())[0] for layout in ("nn", "nt", "tn", "tt")
    ]
    exact_by(STEM, DTYPES[letter], configs)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("scheme", ["A shared", "B shared"])
def test_stripes_that_stay_as_stored(scheme, letter):
    """Beside a private operand."""
    found = [
        next(each for each in steinsland.candidates(scheme, letter, layout, current()) if each.keeps_k_major)
        for layout in ("tt" if scheme == "A shared" else "nn", "tn")
    ]
    exact_by(STEM, DTYPES[letter], found)


@pytest.mark.parametrize("letter", DTYPES)
def test_variants_of_algorithm_1(letter):
    def first(layout):
        space = variants(DTYPES[letter], layout, known("fermi"), kurzak_timed.GUIDELINES[letter])
        return kurzak_timed.config_of(letter, layout, next(space))

    exact_by(STEM, DTYPES[letter], [first(layout) for layout in ("nn", "nt", "tn", "tt")])


def operand(x, dtype) -> Operand:
    row_stride, col_stride = (step // dtype.itemsize for step in x.strides)
    return Operand(x.data.ptr, x.shape[0], x.shape[1], row_stride, col_stride, dtype)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_reads_by_textures(layout, letter):
    """Of columns, or rows, that begin as textures need."""
    dtype, rng = DTYPES[letter], np.random.default_rng(7)
    space = variants(dtype, layout, known("fermi"), kurzak_timed.GUIDELINES[letter])
    config = kurzak_timed.config_of(letter, layout, next(space))
    a, b, c = (integers(rng, shape, dtype) for shape in ((160, 72), (72, 104), (160, 104)))
    placed = [
        cupy.asarray(x, order="F" if order == "n" else "C")
        for x, order in zip((a, b, c), (*layout, "n"), strict=True)
    ]
    left, right, out = (operand(x, dtype) for x in placed)
    with textured.product(config, 2, left, right, -1, out) as enqueue:
        enqueue(cupy.cuda.get_current_stream().ptr)
    same(placed[2].get(), 2 * (a @ b) - c, f"textures {letter} {layout}")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scheme", [scheme for scheme, (_, _, tiled) in steinsland.SCHEMES.items() if tiled])
def test_every_packing_of_each_operand(scheme, letter):
    config = steinsland.candidates(scheme, letter, "nt", current())[0]
    for pair in itertools.product((ROW, CBL, RBL), repeat=2):
        exact_by(STEM, DTYPES[letter], [config.packed_as(*pair)])


@pytest.mark.parametrize(
    "routine, nb, ib", [("potrf", 64, plasma.NONE), ("getrf", 64, 16), ("geqrf", 64, 16)]
)
def test_factors_by_a_pair_of_plasma(routine, nb, ib):
    """It raises where they are wrong."""
    assert plasma.factor_rate(routine, "d", 300, 300, plasma.ROUTINES[routine].overrides("d", nb, ib)) > 0
