"""The Configs of products for which files have times, and the throughput model made of these."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

from ..database import is_batch, sizes_of, tuned_at
from ..gpu.device import Device
from ..types import DTYPES
from . import portfolio, tuned_files
from .split_k import measured_seconds_per_cycle
from .throughput_model import Measured, Sample, ThroughputModel

__all__ = ["forget", "measured", "throughput_model"]


@lru_cache(maxsize=1 << 10)
def measured(stem: str, dtype: str, layout: str, batched: bool, device: Device) -> tuple[Measured, ...]:
    """The Configs with a time; of batches, which hide latency, there are times only for batches."""
    origins: dict[Any, list[tuple[tuple[int, ...], str]]] = {}
    rates = portfolio.rates_of(stem, dtype, layout, device)
    for size in sizes_of(stem):
        filed = tuned_files.of_class(stem, dtype, layout, size, device)
        if filed and filed.tflops:
            won = tuned_at(stem, size)[-1], f"{filed.origin}, class {size}"
            origins.setdefault(filed.config, []).append(won)
    flops = DTYPES[dtype].flops_per_fma

    def samples(config: Any) -> Iterator[Sample]:
        for size, rate in rates[config].items():
            if batched or not is_batch(size):
                extents = tuned_at(stem, size)[-1]
                seconds = flops * prod(extents) / rate / 1e12
                yield Sample(extents, measured_seconds_per_cycle(config, extents, seconds, device))

    configs = (Measured(config, tuple(won), tuple(samples(config))) for config, won in origins.items())
    return tuple(known for known in configs if known.samples)


@lru_cache(maxsize=1 << 10)
def throughput_model(
    stems: tuple[str, ...], dtype: str, layout: str, batched: bool, device: Device
) -> ThroughputModel | None:
    """Those of several families."""
    tuned = [known for stem in stems for known in measured(stem, dtype, layout, batched, device)]
    return ThroughputModel(tuned) if tuned else None


def forget() -> None:
    """Forget what was read of the files of tuned values."""
    measured.cache_clear()
    throughput_model.cache_clear()
