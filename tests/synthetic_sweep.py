"""A large recorded search that never was: times from a model that the score knows the form of, not the facts.

Seconds are the estimated cycles with other constants than the score's (each off by a factor drawn from a
log-normal distribution of 30 %), times the luck of a tile with the compiler (8 %), of a variant of it (2 %),
and noise (0.5 %), over a clock of 1.7 GHz, plus 6 us of a launch. On the recorded sweep of an H200 the score
of a product is off by 9 %, so this is not easier than the truth.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.gpu.device import Device
from pyblasgpu.model import block, score
from pyblasgpu.model import gemm as gemm_model
from pyblasgpu.model import leaf as leaf_model
from pyblasgpu.tuning.prune import Guidelines, candidates
from pyblasgpu.tuning.replay import Recording
from pyblasgpu.tuning.search_problem import Measurement, search_problem_of, tile_key

CONSTANTS = ("READ", "WRITE", "LOAD", "COPY", "BARRIER", "ANSWER", "ROW", "L2_BYTES")


def synthetic(
    stem: str, dtype: str, layout: str, device: Device, seed: int, guidelines: Guidelines
) -> Recording:
    """A recording of all that `guidelines` leave of the normal space, for one (stem, dtype, layout)."""
    rng = np.random.default_rng(seed)
    found = tuple(candidates(stem, dtype, layout, device, "normal", guidelines).left)
    search = search_problem_of(stem, found, device)
    tiles: dict = {}
    luck = {}
    for config in found:
        tile = tiles.setdefault(tile_key(config, search.axes), rng.lognormal(0, 0.08))
        luck[config] = tile * rng.lognormal(0, 0.02)
    seconds = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in CONSTANTS:
            factor = rng.lognormal(0, 0.3)
            for module in (block, gemm_model, leaf_model):
                if hasattr(module, name):
                    patch.setattr(module, name, getattr(module, name) * factor)
        gemm_model.stripe_cycles.cache_clear()  # what is known by the true constants
        for config in found:
            for size, extents in search.places:
                cycles = score.cycles(stem, config, extents, device) * luck[config] * rng.lognormal(0, 0.005)
                seconds[Measurement(config, size, extents)] = cycles / 1.7e9 + 6e-6
    gemm_model.stripe_cycles.cache_clear()
    return Recording(search, seconds)
