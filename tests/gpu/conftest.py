"""Kernels on a device: ``pytest tests/gpu``. The first run compiles a few hundred of them, in parallel."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """What the list of runs needs, and products of any views, is compiled."""
    from pyblasgpu.gpu.device import current

    from .precompile import compile_all, every_variant, sources_of
    from .running import RUNS

    needed = {*sources_of(run.start for run in RUNS)}
    for letter in "sdz":
        needed.update(every_variant(letter, 40, 40, 40))
    compile_all([*needed], current().cc)
