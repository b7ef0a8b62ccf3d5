"""The leaves of factorizations, compiled: nothing spills, and single precision stays single."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.database import FIXED
from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.types import DTYPES

pytestmark = chosen_kernels.NEEDS_COMPILER

STEMS = ("potrf_leaf", "trtri_leaf", "lauum_leaf", "zero_diagonal")


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("letter", DTYPES)
def test_leaves_keep_everything_in_registers(letter, stem, cc):
    family = FIXED[stem]
    if letter not in family.dtypes:
        pytest.skip("complex elements are reals to it")
    source = family.source(family.fixed_config(letter))
    report = compile_here(source, cc).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    if letter in "sc":
        assert ".f64" not in to_ptx(source, cc)
