"""A large search with times from a model: the score knows its form, not its constants.

Seconds are the estimated cycles with other constants than the score's, each off by a log-normal factor of 30
%. They are multiplied by a tile effect (8 %), an effect of the variant (2 %) and noise (0.5 %). Then they are
divided by a clock of 1.7 GHz, and have 6 us for the launch added. On the recorded sweep of an H200 the score
of a product is off by 9 %, so this is not easier than the truth.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.gpu.device import Device
from pyblasgpu.model import block_cost, score
from pyblasgpu.model import gemm as gemm_model
from pyblasgpu.model import leaf as leaf_model
from pyblasgpu.tuning.prune import Guidelines, candidates
from pyblasgpu.tuning.search_problem import Measurement, search_problem_of, tile_key
from tuning.papers.replay import Recording

CONSTANTS = ("READ", "WRITE", "LOAD", "COPY", "BARRIER", "ANSWER", "ROW", "L2_BYTES")


def synthetic(
    stem: str, dtype: str, layout: str, device: Device, seed: int, guidelines: Guidelines
) -> Recording:
    """A recording of all that `guidelines` leave of the normal space, for one (stem, dtype, layout)."""
    rng = np.random.default_rng(seed)
    configs = tuple(candidates(stem, dtype, layout, device, "normal", guidelines).left)
    search = search_problem_of(stem, configs, device)
    tiles: dict = {}
    effect = {}
    for config in configs:
        tile = tiles.setdefault(tile_key(config, search.axes), rng.lognormal(0, 0.08))
        effect[config] = tile * rng.lognormal(0, 0.02)
    seconds = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in CONSTANTS:
            factor = rng.lognormal(0, 0.3)
            for module in (block_cost, gemm_model, leaf_model):
                if hasattr(module, name):
                    patch.setattr(module, name, getattr(module, name) * factor)
        gemm_model.k_tile_cycles.cache_clear()  # what is known by the true constants
        for config in configs:
            for size, extents in search.problems:
                cycles = (
                    score.cycles(stem, config, extents, device) * effect[config] * rng.lognormal(0, 0.005)
                )
                seconds[Measurement(config, size, extents)] = cycles / 1.7e9 + 6e-6
    gemm_model.k_tile_cycles.cache_clear()
    return Recording(search, seconds)
