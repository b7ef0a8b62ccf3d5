"""What all tests share: the folders that need a device or the simulator, and hypothesis's settings."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import blas_threads  # noqa: F401 - first of all
import pytest
from hypothesis import HealthCheck, settings

from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.frontend import small_host
from pyblasgpu.frontend.backend_status import backend_status
from pyblasgpu.gpu import backend

TESTS = Path(__file__).parent

# the same examples on every run: a failure in CI is a failure on the desk
settings.register_profile(
    "repository", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repository")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder == "gpu":
            item.add_marker(pytest.mark.gpu)
            reason = no_device()
        elif folder == "sim":
            item.add_marker(pytest.mark.sim)
            reason = "" if backend.SIMULATED else "runs with NUMBA_ENABLE_CUDASIM=1, in a process of its own"
        else:
            reason = ""
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def cards_take_small_matrices():
    """Host matrices go where the backend says, however small they are."""
    # without `monkeypatch`, which would then undo what it has done later than other fixtures expect
    before, small_host.CARD_FROM = small_host.CARD_FROM, dict.fromkeys("sdcz", 0)
    yield
    small_host.CARD_FROM = before


@lru_cache(maxsize=1)
def no_device() -> str:
    """Why the tests under tests/gpu cannot run here; empty where they can."""
    try:
        backend_status("cuda")
    except BackendUnavailable as reason:
        return str(reason)
    return ""
