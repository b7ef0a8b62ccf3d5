"""SciPy's own tests of dense linear algebra, run with pyblasgpu's functions in the place of SciPy's.

``python tools/scipy_tests.py [--patched] [FILE ...]``. Every call of a replaced function goes to pyblasgpu on
the CPU backend, whatever its size and dtype, and errors are pyblasgpu's. With ``--patched`` it runs as users
do with ``patch_scipy(numpy=True)``, where SciPy takes what pyblasgpu refuses. Printed are counts by file, and
of the tests that fail the last line of the error.

``python tools/scipy_tests.py --guide`` runs both and writes the table of docs/guide/scipy_programs.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import scipy

from pyblasgpu.database.policy import reference
from pyblasgpu.scipy_patch.switch import ScipyPatch
from pyblasgpu.scipy_patch.thresholds import sizes_of

FILES = (
    "test_basic",
    "test_decomp",
    "test_decomp_cholesky",
    "test_decomp_lu",
    "test_blas",
    "test_fblas",
    "test_lapack",
)
GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "scipy_programs.md"
BEGIN, END = "<!-- made by tools/scipy_tests.py -->", "<!-- end -->"
TEXTS = "SciPy 1.18 has other error messages"
#: Why tests fail, by patterns of a test's name and its error; each is a row of the guide's table.
REASONS = {
    "long double is refused": r"dtype (float|complex)\d\d\d? of",
    "text and times are refused": r"dtype (\||<|datetime|timedelta)\S* of",
    "an object that is an array by `__array__` alone is refused": "_FakeMatrix is not an array",
    "`inv` raises `ValueError`, not `KeyError`, for an unknown `assume_a`": "TestInv::test_wrong_assume_a:",
    TEXTS: "Regex pattern did not match",
}
OTHERS = "others"
#: What the tests do without: a seventh of their time.
WITHOUT = ("cacheprovider", "hypothesispytest", "threadexception", "unraisableexception", "xdist")
#: Tests that do not run. The first takes gigabytes for an error that a row of ours checks without them. The
#: others call nothing that is replaced, and take half of the time.
LEFT_OUT = (
    "test_svd_gesdd_nofegfault",
    "test_gejsv_general",
    "test_orth_memory_efficiency",
    "test_crash_2609",
    "test_lantr",
    "TestLstsq",
    "TestOrdQZWorkspaceSize",
)


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

    def summary(self) -> dict[str, int]:
        """How many tests pass, and how many fail for each reason."""
        found = Counter(reason_of(*failure) for failures in self.failures.values() for failure in failures)
        return {"pass": sum(counts["passed"] for counts in self.counts.values()), **found}


def reason_of(name: str, error: str) -> str:
    """The key of REASONS for a test that fails, or OTHERS."""
    line = f"{name}: {error}"
    return next((reason for reason, pattern in REASONS.items() if re.search(pattern, line)), OTHERS)


def table(own: dict[str, int], patched: dict[str, int]) -> list[str]:
    """The lines of the guide's table from the summaries of both runs."""
    rows = {"pass": "pass", **{reason: f"fail: {reason}" for reason in (*REASONS, OTHERS)}}
    counts = {text: (own.get(row, 0), patched.get(row, 0)) for row, text in rows.items()}
    return [
        f"| tests of SciPy {scipy.__version__} | this library's names | under `patch_scipy(numpy=True)` |",
        "|---|---:|---:|",
        *(f"| {text} | {a:,} | {b:,} |" for text, (a, b) in counts.items() if a or b),
    ]


def write_guide() -> None:
    """Run both ways, each in a process of its own, and write the guide's table."""
    summaries = []
    for options in ([], ["--patched"]):
        command = [sys.executable, __file__, "--summary", *options]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        summaries.append(json.loads(run.stdout.splitlines()[-1]))
    text = GUIDE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    lines = [BEGIN, *table(*summaries), END]
    GUIDE.write_text(head + "\n".join(lines) + rest.partition(END)[2], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/scipy_tests.py", description=__doc__)
    parser.add_argument("files", nargs="*", default=FILES, help=f"of {', '.join(FILES)}")
    parser.add_argument("--patched", action="store_true", help="let SciPy take what pyblasgpu refuses")
    parser.add_argument("-k", dest="chosen", default="", help="as pytest's: tests by parts of their names")
    parser.add_argument("--summary", action="store_true", help="print a last line of JSON: counts by reason")
    parser.add_argument("--guide", action="store_true", help="run all tests both ways, and write the guide")
    options = parser.parse_args()
    if options.guide:
        write_guide()
        return 0
    kind = ScipyPatch if options.patched else Strict
    patch = kind("cpu", dict.fromkeys(sizes_of(reference()), 0.0), numpy=options.patched)
    patch.apply()
    outcomes = Outcomes()
    arguments = [
        "-q",
        "--no-header",
        "--tb=native",
        "--show-capture=no",
        "--assert=plain",
        *(f"-pno:{plugin}" for plugin in WITHOUT),
        "--pyargs",
    ]
    modules = [f"scipy.linalg.tests.{file}" for file in options.files]
    left = f"not ({' or '.join(LEFT_OUT)})"
    chosen = f"({options.chosen}) and {left}" if options.chosen else left
    try:
        # the settings are SciPy's, not those of the folder where this runs
        with TemporaryDirectory() as folder, chdir(folder):
            pytest.main([*arguments, "--disable-warnings", "-k", chosen, *modules], plugins=[outcomes])
    finally:
        patch.undo()
    for file in options.files:
        print(f"{file}: {', '.join(f'{n} {what}' for what, n in sorted(outcomes.counts[file].items()))}")
        for name, error in outcomes.failures[file]:
            print(f"    {name}: {error}")
    print(f"calls taken: {dict(patch.calls)}")
    if options.summary:
        print(json.dumps(outcomes.summary()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
