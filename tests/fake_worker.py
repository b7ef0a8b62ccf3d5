"""Bodies for the worker that misbehave on demand; the process that runs them imports this file."""

from __future__ import annotations

import os
import time

from pyblasgpu.database import FAMILIES
from pyblasgpu.tuning.bench import Failed, Timed
from pyblasgpu.tuning.worker import DeviceLost


def no_device():
    raise RuntimeError("no device here")


def dies():
    os._exit(7)


def commands():
    """Each job is what is to happen."""

    def run(job):
        for what in job:
            if what == "exit":
                os._exit(3)
            if what == "hang":
                time.sleep(60)
            if what == "lost":
                yield Failed("crash", "illegal address")
                raise DeviceLost
            yield what

    return run


def device(broken=None):
    """A device on which `broken`, a mapping from blocks to a mishap, takes candidates down."""

    def run(job):
        config = job.overrides[0][1] if job.overrides else None
        tile = (config.BLK_M, config.BLK_N) if hasattr(config, "BLK_M") else None
        mishap = (broken or {}).get(tile)
        if job.vendor:
            yield Failed("absent", "no cuBLAS")
            return
        for place, _ in enumerate(job.places):
            yield Timed(place, seconds(config))
            if mishap == "exit":
                os._exit(3)
            if mishap == "hang":
                time.sleep(60)
            if mishap in ("wrong", "spoils"):
                yield Failed(mishap, "planted")
                return

    return run


def seconds(config) -> float:
    """What a candidate takes: of gemm_tile, large blocks are fast."""
    if config is None or isinstance(config, int):
        return 1e-3 / (config or 1)
    return 1e-3 / (config.BLK_M * config.BLK_N / (1 + config.BLK_K))


def parameters(stem, config):
    return FAMILIES[stem].parameters_of(config)
