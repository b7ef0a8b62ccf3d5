"""Tables of what `pyblasgpu bench` has timed, a table a routine and kind, for the page of a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench_cases import KINDS, OUT_OF_PLACE, VENDOR, Case, Groups, commits
from readme_table import mean_and_least

__all__ = ["bench_tables"]


def bench_tables(groups: Groups, device: str) -> Iterator[str]:
    """The lines of the page for a device: its conditions, then the tables."""
    mine = {key: cases for key, cases in groups.items() if key[0] == device}
    runs = [case.run for cases in mine.values() for case in cases]
    if not runs:
        return
    yield from ("", _conditions(max(runs, key=lambda run: run["date"])))
    for (_, routine, kind), cases in mine.items():
        yield from ("", f"## {routine.upper()}, {KINDS[kind]}", "", *_table(routine, kind, cases))
        yield from ("", f"Measured at {commits(cases)}.")


def _conditions(run: dict[str, Any]) -> str:
    version = run["cublas"]
    cublas = f"{version // 10000}.{version // 100 % 100}"
    return (
        f"{run['arch']}, {run['multiprocessors']} multiprocessors, driver {run['driver']}, cuBLAS {cublas}, "
        f"{run['clocks'].get('power.limit', '')} power limit; the newest run is of {run['date'][:10]}."
    )


def _table(routine: str, kind: str, cases: list[Case]) -> Iterator[str]:
    """Lines are dtypes and variants, columns are shapes; of many shapes the other way round."""
    shapes = sorted(dict.fromkeys(case.shape for case in cases), key=_by_size)
    lines = sorted({_call(case) for case in cases}, key=lambda call: ("sdcz".index(call[0]), call))
    cells = {(_call(case), case.shape): case for case in cases}
    means = [_means([case for case in cases if _call(case) == call]) for call in lines]
    if kind in ("batched", "shapes", "few"):
        yield "| | " + " | ".join(lines) + " |"
        yield "|---" * (len(lines) + 1) + "|"
        for shape in shapes:
            row = " | ".join(_cell(cells.get((call, shape))) for call in lines)
            yield f"| {_shape(shape, kind)} | {row} |"
        yield "| **mean** | " + " | ".join(f"**{mean}**" for mean in means) + " |"
        return
    yield "| | " + " | ".join(_shape(shape, kind) for shape in shapes) + " | mean |"
    yield "|---" * (len(shapes) + 2) + "|"
    for call, mean in zip(lines, means, strict=True):
        row = " | ".join(_cell(cells.get((call, shape))) for shape in shapes)
        yield f"| {call} | {row} | **{mean}** |"


def _means(cases: list[Case]) -> str:
    """Over cuBLAS's call, then over its call out of place where that was timed."""
    timed = ([case.ratio(rate) for case in cases if rate in case.record] for rate in (VENDOR, OUT_OF_PLACE))
    return "; ".join(mean_and_least(ratios) for ratios in timed if ratios)


def _call(case: Case) -> str:
    record = case.record
    variant = f" {record['variant']}" if record["routine"] == "gemm" else ""
    return f"{record['dtype']}{record['routine']}{variant}"


def _cell(case: Case | None) -> str:
    if case is None:
        return ""
    return " / ".join(
        f"{case.record[key]:.3g}" for key in ("tflops", VENDOR, OUT_OF_PLACE) if key in case.record
    )


def _by_size(shape: tuple[int, ...]) -> tuple:
    return shape[1], shape[0], shape[2:]


def _shape(shape: tuple[int, ...], kind: str) -> str:
    if kind == "batched":
        return f"{shape[-1]} of {_shape(shape[:-1], 'square')}"
    if kind == "few":
        return f"{shape[0]} × {shape[1]}"
    return str(shape[0]) if len(set(shape)) == 1 else " × ".join(map(str, shape))
