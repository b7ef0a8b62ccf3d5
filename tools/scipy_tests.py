"""SciPy's own tests of dense linear algebra, run with pyblasgpu's functions in the place of SciPy's.

``python tools/scipy_tests.py [--patched] [FILE ...]``. Every call of a replaced function goes to pyblasgpu on
the CPU backend, whatever its size and dtype, and errors are pyblasgpu's. With ``--patched`` it runs as users
do with `patch_scipy`, where SciPy takes what pyblasgpu refuses. Printed are counts by file, and of the tests
that fail the last line of the error.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pyblasgpu.scipy_patch.switch import ScipyPatch
from pyblasgpu.scipy_patch.thresholds import THRESHOLDS

FILES = ("test_basic", "test_decomp_cholesky", "test_decomp_lu", "test_blas", "test_fblas", "test_lapack")


class Strict(ScipyPatch):
    """A patch that takes every call, and falls back to SciPy never."""

    refusals = ()

    def takes(self, routine: str, size: float) -> bool:
        """Whether a call goes to pyblasgpu: always."""
        return True


class Outcomes:
    """What pytest found, by file."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test."""
        if report.when != "call" and report.outcome == "passed":
            return
        name = report.nodeid.partition("::")[2]
        file = Path(report.location[0]).stem
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self.counts[file][outcome] += 1
        if outcome == "failed":
            lines = str(getattr(report.longrepr, "reprcrash", report.longrepr)).splitlines()
            self.failures[file].append((name, lines[0].rpartition(": ")[2] if lines else ""))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/scipy_tests.py", description=__doc__)
    parser.add_argument("files", nargs="*", default=FILES, help=f"of {', '.join(FILES)}")
    parser.add_argument("--patched", action="store_true", help="let SciPy take what pyblasgpu refuses")
    parser.add_argument("-k", dest="chosen", default="", help="as pytest's: tests by parts of their names")
    options = parser.parse_args()
    kind = ScipyPatch if options.patched else Strict
    patch = kind("cpu", dict.fromkeys(THRESHOLDS, 0.0), numpy=False)
    patch.apply()
    outcomes = Outcomes()
    arguments = ["-q", "--no-header", "--tb=short", "--show-capture=no", "-p", "no:cacheprovider", "--pyargs"]
    modules = [f"scipy.linalg.tests.{file}" for file in options.files]
    try:
        # the settings are SciPy's, not those of the folder where this runs
        with TemporaryDirectory() as folder, chdir(folder):
            pytest.main(
                [*arguments, "--disable-warnings", "-k", options.chosen, *modules], plugins=[outcomes]
            )
    finally:
        patch.undo()
    for file in options.files:
        print(f"{file}: {', '.join(f'{n} {what}' for what, n in sorted(outcomes.counts[file].items()))}")
        for name, error in outcomes.failures[file]:
            print(f"    {name}: {error}")
    print(f"calls taken: {dict(patch.calls)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
