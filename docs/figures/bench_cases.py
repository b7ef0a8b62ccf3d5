"""Cases that `pyblasgpu bench` has timed: of each the newest measurement, by device, routine and kind.

A kind is 'square', 'few' (TRSM and TRMM with few right-hand sides), 'batched' or 'shapes' (GEMM that is not
square).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyblasgpu.bench.machine import short_commit

__all__ = ["KINDS", "OUT_OF_PLACE", "VENDOR", "Case", "Groups", "commits", "measured", "newest_device"]

ROUTINES = ("gemm", "trsm", "trmm", "syrk", "herk", "syr2k", "her2k", "symm", "hemm", "gemmtr")
KINDS = {
    "square": "square matrices",
    "few": "few right-hand sides",
    "batched": "batches",
    "shapes": "skinny, long and odd shapes",
}
ORDERS = (256, 512, 1024, 2048, 3072, 4096, 8192)
VENDOR, OUT_OF_PLACE = "cublas_tflops", "cublas_out_of_place_tflops"


class Case(NamedTuple):
    """One measurement, and the run that it is from."""

    run: dict[str, Any]
    record: dict[str, Any]

    def ratio(self, rate: str = VENDOR) -> float:
        """Our rate over cuBLAS's."""
        return self.record["tflops"] / self.record[rate]

    @property
    def shape(self) -> tuple[int, ...]:
        """m, n and k, of which a routine has two or three, then the extents of a batch."""
        extents = [self.record[name] for name in "mnk" if name in self.record]
        return (*extents, *self.record.get("batch", ()))


Groups = dict[tuple[str, str, str], list[Case]]


def kind_of(record: dict[str, Any]) -> str | None:
    """The kind of a record; None if no table has it."""
    if record.get("batch"):
        return "batched"
    extents = {record[name] for name in "mnk" if name in record}
    if len(extents) == 1:
        return "square" if record["n"] in ORDERS else None
    if record["routine"] in ("trsm", "trmm"):
        return "few"
    return "shapes" if record["routine"] == "gemm" else None


def measured(results: Path) -> Groups:
    """The cases that count, by device, routine and kind."""
    newest: dict[tuple[str, str, str], dict[tuple, Case]] = {}
    for run in _runs(results):
        for record in run["results"]:
            kind = kind_of(record)
            if VENDOR in record and record["routine"] in ROUTINES and kind:
                case = Case(run, record)
                group = newest.setdefault((run["device"], record["routine"], kind), {})
                group[record["dtype"], record["variant"], case.shape] = case
    return {key: _shown(key, newest[key]) for key in sorted(newest, key=_order)}


def _runs(results: Path) -> list[dict[str, Any]]:
    """Files of `pyblasgpu bench`, oldest first."""
    runs = []
    for path in results.glob("*/*.json"):
        run = json.loads(path.read_text(encoding="utf-8"))
        records = run.get("results") if isinstance(run, dict) else None
        if records and {"routine", "variant", "n"} <= records[0].keys():
            runs.append(run)
    return sorted(runs, key=lambda run: run["date"])


def _shown(key: tuple[str, str, str], cases: dict[tuple, Case]) -> list[Case]:
    """All layouts of a square GEMM; of all else one variant, that of most cases."""
    if key[1:] == ("gemm", "square"):
        return list(cases.values())
    variants = [variant for _, variant, _ in cases]
    most = max(dict.fromkeys(variants), key=variants.count)
    return [case for (_, variant, _), case in cases.items() if variant == most]


def _order(key: tuple[str, str, str]) -> tuple:
    device, routine, kind = key
    return device, ROUTINES.index(routine), list(KINDS).index(kind)


def commits(cases: Iterable[Case]) -> str:
    """The commits that cases were measured at, each once."""
    return ", ".join(dict.fromkeys(short_commit(case.run["commit"]) for case in cases))


def newest_device(groups: Groups, routine: str, kind: str) -> str:
    """The device of the newest run that has these cases."""
    dates = {
        key[0]: max(case.run["date"] for case in cases)
        for key, cases in groups.items()
        if key[1:] == (routine, kind)
    }
    return max(dates, key=dates.__getitem__)
