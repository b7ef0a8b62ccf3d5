"""Programs of tinygp and NumPyro that call `pyblasgpu.jax` in the place of JAX's functions."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax_programs import OURS, PROGRAMS, THEIRS

jax.config.update("jax_enable_x64", True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("library", PROGRAMS)
def test_results_are_those_of_jaxs_functions(library):
    pytest.importorskip(library)
    found, expected = (PROGRAMS[library](functions) for functions in (OURS, THEIRS))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-7, 1e-9), found, expected)
