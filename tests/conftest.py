"""What all tests share: the folders that need a device or the simulator, and hypothesis's settings."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import blas_threads  # noqa: F401 - first of all
import pytest
from device_runs import PrintedFailures
from hypothesis import HealthCheck, settings

from pyblasgpu.dispatch import tuned_files
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.frontend.backend_status import backend_status
from pyblasgpu.gpu import backend
from pyblasgpu.testing.policies import deciding_by

TESTS = Path(__file__).parent

# the collector would walk through all tests again and again
gc.set_threshold(20_000)

# the same examples on every run: a failure in CI is a failure on the desk
settings.register_profile(
    "repository", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repository")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if terminal := config.pluginmanager.get_plugin("terminalreporter"):  # a worker has none
        config.pluginmanager.register(PrintedFailures(terminal))


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
    _begin_with_long_files(items)


def _begin_with_long_files(items: list[pytest.Item]) -> None:
    """Order files by their slow tests, then by all tests: workers take one after the other, and end alike."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (-slow[item.path], -tests[item.path]))


def pytest_collection_finish() -> None:
    gc.freeze()


# host matrices go where the backend says, however small they are
tuned_files.policy_changes.append({"host_min_order": dict.fromkeys("sdcz", 0)})


@pytest.fixture
def decide_by():
    """``decide_by(trsv_min_order=1)``: dispatch decides by these values of the policy in the test."""
    with ExitStack() as stack:
        yield lambda **values: stack.enter_context(deciding_by(**values))


@lru_cache(maxsize=1)
def no_device() -> str:
    """Why the tests under tests/gpu cannot run here; empty where they can."""
    try:
        backend_status("cuda")
    except BackendUnavailable as reason:
        return str(reason)
    return ""
