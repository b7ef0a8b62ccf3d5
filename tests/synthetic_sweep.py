"""A large search with times from a model: the score knows its form, not its constants.

Seconds are the estimated cycles with other constants than the score's, each off by a log-normal factor of 30
%. They are multiplied by a tile effect (8 %), an effect of the variant (2 %) and noise (0.5 %). Then they are
divided by a clock of 1.7 GHz, and have 6 us for the launch added. On the recorded sweep of an H200 the score
of a product is off by 9 %, so this is not easier than the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pyblasgpu.gpu.device import Device
from pyblasgpu.model import block_cost, score
from pyblasgpu.model import gemm as gemm_model
from pyblasgpu.model import leaf as leaf_model
from pyblasgpu.model.columns import Columns
from pyblasgpu.model.occupancy import blocks_per_sm
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
    with pytest.MonkeyPatch.context() as patch:
        for name in CONSTANTS:
            factor = rng.lognormal(0, 0.3)
            for module in (block_cost, gemm_model, leaf_model):
                if hasattr(module, name):
                    patch.setattr(module, name, getattr(module, name) * factor)
        gemm_model.k_tile_cycles.cache_clear()  # what is known by the true constants
        cycles = _cycles(stem, configs, [extents for _, extents in search.problems], device)
    gemm_model.k_tile_cycles.cache_clear()
    cycles *= rng.lognormal(0, 0.005, cycles.shape)
    seconds = {
        Measurement(config, *problem): float(cycles_of * effect[config]) / 1.7e9 + 6e-6
        for config, row in zip(configs, cycles, strict=True)
        for problem, cycles_of in zip(search.problems, row, strict=True)
    }
    return Recording(search, seconds)


def _cycles(
    stem: str, configs: Sequence[Any], problems: Sequence[tuple[int, ...]], device: Device
) -> np.ndarray:
    """`score.cycles`: a row a Config, a column a problem."""
    extents = tuple(np.array([(*each, *(1,) * (4 - len(each))) for each in problems]).T)
    cycles = np.empty((len(configs), len(problems)))
    for persistent in (False, True):
        chosen = [at for at, config in enumerate(configs) if config.persistent == persistent]
        if chosen:
            alike = [configs[at] for at in chosen]
            resident = np.array([[blocks_per_sm(config, device)] for config in alike])
            cycles[chosen] = score.cycles(stem, Columns(alike, resident), extents, device)
    return cycles
