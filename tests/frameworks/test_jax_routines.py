"""Products of `pyblasgpu.jax` on the calls that all ways to call a routine share."""

from __future__ import annotations

import jax.numpy as jnp
import jax_cases  # noqa: F401 - sets precisions
import numpy as np
from faces import as_new_array, check
from routine_cases import every

import pyblasgpu.jax as ours


def test_results_are_those_of_the_reference():
    cases = [case for case in every("gemm") if "c" not in case.given or case.given.get("beta", 0) != 0]
    check(cases[::2], lambda case, _: as_new_array(case, ours, jnp.asarray, np.asarray))
