"""How tests that need a device run: on several cards, and with failures printed when they happen."""

from __future__ import annotations

from collections.abc import MutableMapping

import pytest

VISIBLE, WORKER = "CUDA_VISIBLE_DEVICES", "PYTEST_XDIST_WORKER"


def spread_workers(environ: MutableMapping[str, str], count: int | None = None) -> None:
    """Let worker i of pytest-xdist begin with card i modulo their number; call it before the driver starts.

    All cards stay visible, in rotated order, so that tests of two devices run.

    Parameters
    ----------
    environ : dict
        The environment, which is changed.
    count : int, optional
        Number of cards, where `environ` names none; by default that of NVML, which starts no driver.
    """
    named = environ.get(VISIBLE)
    cards = (
        named.split(",") if named is not None else list(map(str, range(_cards() if count is None else count)))
    )
    first = int(environ.get(WORKER, "gw0").removeprefix("gw")) % len(cards) if cards else 0
    if first:
        environ[VISIBLE] = ",".join(cards[first:] + cards[:first])


def _cards() -> int:
    try:
        from cuda.bindings import nvml

        nvml.init_v2()
        return nvml.device_get_count_v2()
    except Exception:  # of import, driver, or NVML, which have no base in common: then there is no card
        return 0


class PrintedFailures:
    """A plugin that prints each failure when it happens: a run that is cut off has named it."""

    def __init__(self, terminal: pytest.TerminalReporter):
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line(f"\nFAILED {report.nodeid}\n{report.longreprtext}", red=True)
