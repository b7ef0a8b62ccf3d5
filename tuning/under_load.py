"""Times of the tuner, corrected by calls that were timed under load.

The tuner times a product in passes so short that the power limit does not hold the clock down, and the limit
does not treat all Configs alike. Calls of `gather_calls` are timed in rows of products.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from math import exp, log
from typing import Any

from pyblasgpu.database import FAMILIES
from pyblasgpu.tuning.portfolio import kernel_of
from pyblasgpu.tuning.results import Record

LONG = 5e-4  # seconds: shorter products are over before the clock falls


def under_load(records: Iterable[Record], calls: Iterable[dict[str, Any]]) -> list[Record]:
    """`records` of a device with times in the ratios of those of its `calls`.

    Only of long products, at extents of calls, with aligned operands. Of the Configs that both have timed
    there the mean logarithm remains; all others keep their times.
    """
    records, rates = list(records), _rates(calls)
    times: dict[tuple, dict[tuple, float]] = defaultdict(dict)
    for record in filter(_is_long, records):
        place, kernel = _place(record), _kernel(record)
        if kernel in rates.get(place, {}):
            times[place][kernel] = min(record.seconds, times[place].get(kernel, record.seconds))
    factors: dict[tuple, float] = {}
    for place, timed in times.items():
        logs = {kernel: log(seconds * rates[place][kernel]) for kernel, seconds in timed.items()}
        mean = sum(logs.values()) / len(logs)
        factors |= {(place, kernel): exp(mean - value) for kernel, value in logs.items()}
    return [_scaled(r, factors.get((_place(r), _kernel(r)), 1.0)) if _is_long(r) else r for r in records]


def _rates(calls: Iterable[dict[str, Any]]) -> dict[tuple, dict[tuple, float]]:
    """Place -> kernel -> rate, of products with aligned operands that were not copied to another layout."""
    rates = {}
    for call in calls:
        if call["routine"] == "gemm" and not (call.get("pad") or call.get("shift")):
            dtype, layout = call["dtype"], call["flags"].lower()
            batch = (call["batch"],) if "batch" in call else ()
            rates[dtype, layout, (*call["extents"], *batch)] = {
                kernel_of(stem, dtype, layout, parameters): rate
                for stem, own, parameters, rate in call["rates"]
                if own == layout
            }
    return rates


def _is_long(record: Record) -> bool:
    is_product = record.stem in FAMILIES and FAMILIES[record.stem].is_product
    return is_product and record.outcome == "ok" and record.seconds > LONG


def _place(record: Record) -> tuple:
    return record.dtype, record.layout, tuple(record.extents)


def _kernel(record: Record) -> tuple:
    return kernel_of(record.stem, record.dtype, record.layout, record.parameters)


def _scaled(record: Record, factor: float) -> Record:
    return replace(record, seconds=record.seconds * factor, tflops=record.tflops / factor)
