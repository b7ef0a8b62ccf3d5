"""Blocking schemes of the papers on a device. Operands bypass shared memory, a thread has one element, packed
operands have every layout, and factors go by pairs of blocks.
"""

from __future__ import annotations

from itertools import chain, product

import numpy as np
import pytest
from covering import pairs

from pyblasgpu.gpu.device import current, known
from pyblasgpu.kernels.copy.packing import CBL, RBL, ROW
from pyblasgpu.kernels.gemm.simt import STEM, GemmSimt
from pyblasgpu.operands import Operand
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES
from tuning.papers import kurzak_timed, plasma, steinsland, textured
from tuning.papers.kurzak import variants

from .precompile import of_products
from .running import cupy, exact_by, same

pytestmark = pytest.mark.slow

LAYOUTS = ("nn", "nt", "tn", "tt")
PACKINGS = (ROW, CBL, RBL)
TILED = [scheme for scheme, (_, _, is_tiled) in steinsland.SCHEMES.items() if is_tiled]
#: The simulator has all pairs of packings of each scheme.
PACKED = pairs(TILED, DTYPES, PACKINGS, PACKINGS)
KEPT = list(product(("A shared", "B shared"), "dz"))


def of_scheme(scheme: str, letter: str) -> list[GemmSimt]:
    return [steinsland.candidates(scheme, letter, layout, current())[0] for layout in LAYOUTS]


def as_stored(scheme: str, letter: str) -> list[GemmSimt]:
    """Stripes that stay as stored, beside a private operand."""
    return [
        next(each for each in steinsland.candidates(scheme, letter, layout, current()) if each.keeps_k_major)
        for layout in ("tt" if scheme == "A shared" else "nn", "tn")
    ]


def of_algorithm_1(letter: str, layout: str) -> GemmSimt:
    space = variants(DTYPES[letter], layout, known("fermi"), kurzak_timed.GUIDELINES[letter])
    return kurzak_timed.config_of(letter, layout, next(space))


def packed_as(scheme: str, letter: str, of_a: int, of_b: int) -> list[GemmSimt]:
    return [steinsland.candidates(scheme, letter, "nt", current())[0].packed_as(of_a, of_b)]


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    def find():
        configs = chain(
            *(of_scheme(*each) for each in product(steinsland.SCHEMES, DTYPES)),
            *(as_stored(*each) for each in KEPT),
            *(packed_as(*each) for each in PACKED),
            (of_algorithm_1(*each) for each in product(DTYPES, LAYOUTS)),
        )
        for config in configs:
            yield from of_products(config)

    compile_once("schemes", find)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scheme", steinsland.SCHEMES)
def test_every_scheme(scheme, letter):
    exact_by(STEM, DTYPES[letter], of_scheme(scheme, letter))


@pytest.mark.parametrize("scheme, letter", KEPT)
def test_stripes_that_stay_as_stored(scheme, letter):
    exact_by(STEM, DTYPES[letter], as_stored(scheme, letter))


@pytest.mark.parametrize("letter", DTYPES)
def test_variants_of_algorithm_1(letter):
    exact_by(STEM, DTYPES[letter], [of_algorithm_1(letter, layout) for layout in LAYOUTS])


def operand(x, dtype) -> Operand:
    row_stride, col_stride = (step // dtype.itemsize for step in x.strides)
    return Operand(x.data.ptr, x.shape[0], x.shape[1], row_stride, col_stride, dtype)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_reads_by_textures(layout, letter):
    """Of columns, or rows, that begin as textures need."""
    dtype, rng = DTYPES[letter], np.random.default_rng(7)
    config = of_algorithm_1(letter, layout)
    a, b, c = (integers(rng, shape, dtype) for shape in ((160, 72), (72, 104), (160, 104)))
    placed = [
        cupy.asarray(x, order="F" if order == "n" else "C")
        for x, order in zip((a, b, c), (*layout, "n"), strict=True)
    ]
    left, right, out = (operand(x, dtype) for x in placed)
    with textured.product(config, 2, left, right, -1, out) as enqueue:
        enqueue(cupy.cuda.get_current_stream().ptr)
    same(placed[2].get(), 2 * (a @ b) - c, f"textures {letter} {layout}")


@pytest.mark.parametrize("scheme, letter, of_a, of_b", PACKED, ids=str)
def test_packings_of_each_operand(scheme, letter, of_a, of_b):
    exact_by(STEM, DTYPES[letter], packed_as(scheme, letter, of_a, of_b))


@pytest.mark.parametrize(
    "routine, nb, ib", [("potrf", 64, plasma.NONE), ("getrf", 64, 16), ("geqrf", 64, 16)]
)
def test_factors_by_a_pair_of_plasma(routine, nb, ib):
    """It raises where they are wrong."""
    assert plasma.factor_rate(routine, "d", 300, 300, plasma.ROUTINES[routine].overrides("d", nb, ib)) > 0
