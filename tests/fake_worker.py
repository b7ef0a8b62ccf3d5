"""Stand-ins for what surrounds a tuner: bodies of the worker that fail on demand, compilers, a sensor.

The process that runs a body imports this file.
"""

from __future__ import annotations

import os
import time

from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.nvml import State
from pyblasgpu.tuning.worker import DeviceLost
from pyblasgpu.tuning.worker_bench import Failed, Timing

GOOD = Resources(registers=64, stack_bytes=0, spill_stores=0, spill_loads=0, shared_bytes=0)


def answers(worker, job, patience=None):
    """All answers of the worker to a job."""
    worker.send(job, patience)
    received = []
    while worker.busy:
        answer = worker.receive(0.5)
        if answer is not None:
            received.append(answer)
    return received


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


def device(broken=None, pause=0.0):
    """A device on which `broken`, a mapping from blocks to a mishap, takes candidates down.

    It takes `pause` seconds for each.
    """

    def run(job):
        config = job.overrides[0][1] if job.overrides else None
        tile = (config.BLK_M, config.BLK_N) if config is not None and hasattr(config, "BLK_M") else None
        mishap = (broken or {}).get(tile)
        if job.vendor:
            yield Failed("absent", "no cuBLAS")
            return
        time.sleep(pause)
        for number, _ in enumerate(job.problems):
            yield Timing(number, seconds(config))
            if mishap == "exit":
                os._exit(3)
            if mishap == "hang":
                time.sleep(60)
            if mishap in ("wrong", "spoils"):
                yield Failed(mishap, "planted")
                return

    return run


def with_wild_pointer(name):
    """The routine of this name on a device, made to write its result to an invalid address."""
    from pyblasgpu.frontend.calls.call import routine

    def run(alpha, a, b, beta, c, stream):
        routine(name)(alpha, a, b, beta, c._replace(pointer=1 << 20), stream)

    return run


def seconds(config) -> float:
    """The time of a candidate: of gemm_simt, large blocks are fast."""
    if config is None or isinstance(config, int):
        return 4e-3 / (config or 1)
    return 4e-3 / (config.BLK_M * config.BLK_N / (1 + config.BLK_K))


class Compilers:
    """Everything compiles at once and is good."""

    workers = 2

    def __init__(self, report=lambda stem, config: GOOD):
        self.report, self.waiting = report, []

    pending = property(lambda self: len(self.waiting))

    def submit(self, stem, config):
        if (stem, config) not in self.waiting:
            self.waiting.append((stem, config))

    def drop(self):
        self.waiting.clear()

    def finished(self, timeout=None):
        while self.waiting:
            job = self.waiting.pop(0)
            yield job, self.report(*job)


class Sensor:
    def __init__(self, *states):
        self.states = list(states) or [State()]

    def read(self):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


class Watcher:
    def __init__(self):
        self.messages, self.seen = [], []

    def progress(self, done, total, log, best):
        self.seen.append((done, total, best))

    def say(self, text):
        self.messages.append(text)
