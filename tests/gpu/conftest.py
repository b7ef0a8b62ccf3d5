"""Kernels on a device: ``pytest tests/gpu``. The first run compiles a few hundred of them, in parallel."""

from __future__ import annotations

import pytest
from filelock import FileLock


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """What the list of runs needs, and products of any views, is compiled; other workers wait for one."""
    from pyblasgpu.gpu.device import current
    from pyblasgpu.gpu.store import cache_folder

    from .precompile import compile_all, every_variant, sources_of
    from .running import RUNS

    needed = {*sources_of(run.start for run in RUNS)}
    for letter in "sdz":
        needed.update(every_variant(letter, 40, 40, 40))
    cache_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(cache_folder() / "tests.lock"):
        compile_all([*needed], current().cc)
