"""Kernels on a device: ``pytest tests/gpu``. The first run compiles a few hundred of them, in parallel."""

from __future__ import annotations

import pytest
from filelock import FileLock


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """All that the list of runs needs is in the store of cubins; other workers wait for the first."""
    from pyblasgpu.gpu.device import current
    from pyblasgpu.gpu.store import cache_folder

    from .precompile import compile_all, sources_of
    from .running import RUNS

    cache_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(cache_folder() / "tests.lock"):
        compile_all(sources_of(run.start for run in RUNS), current().cc)
