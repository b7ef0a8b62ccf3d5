"""Many threads that call on host arrays and on several cards at once: results have the same bits every time.

    python -m benchmarks.engine_threads [--threads 64] [--seconds 60] [--devices 0 1] [--n 3000]

Threads take turns at routines, cards, page-locked and other memory. Exit code 1 where bits differ or a call
raises.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from typing import Any

import cupy
import cupyx
import numpy as np

import pyblasgpu

__all__ = ["main"]

CALLS = {
    "gemm": lambda a, b, **options: pyblasgpu.gemm(a, b, **options),
    "syrk": lambda a, b, **options: pyblasgpu.syrk(a, lower=True, **options),
    "trmm": lambda a, b, **options: pyblasgpu.trmm(a, b, lower=True, **options),
    "trsm": lambda a, b, **options: pyblasgpu.trsm(a, b, lower=True, **options),
}


class Caller:
    """Threads, and what they found.

    Attributes
    ----------
    calls : Counter
        How often each kind of call was made.
    wrong : list of str
    """

    def __init__(self, options: argparse.Namespace):
        self.options, self.end = options, time.perf_counter() + options.seconds
        self.calls: Counter[str] = Counter()
        self.wrong: list[str] = []
        rng = np.random.default_rng(0)
        a, b = (np.asfortranarray(rng.uniform(-1, 1, (options.n, options.n))) for _ in range(2))
        a /= options.n
        np.fill_diagonal(a, 2)
        pinned = [cupyx.empty_pinned(a.shape, order="F") for _ in range(2)]
        for target, source in zip(pinned, (a, b), strict=True):
            target[...] = source
        on_card = [cupy.asarray(x) for x in (a, b)]
        devices, few = options.devices, {"max_device_memory": 64 << 20}
        self.kinds: dict[str, tuple[Any, dict[str, Any]]] = {
            "all cards": ((a, b), {"devices": devices}),
            "all cards, pinned": (pinned, {"devices": devices}),
            "little memory": ((a, b), {"devices": devices[:1], **few}),
            "last card, pinned": (pinned, {"devices": devices[-1:], **few}),
            "arrays on a card": (on_card, {"devices": devices}),
            "whole": (on_card, {}),
        }
        self.expected = {
            (routine, kind): self.call(routine, kind) for routine in CALLS for kind in self.kinds
        }

    def call(self, routine: str, kind: str) -> np.ndarray:
        (a, b), options = self.kinds[kind]
        result = CALLS[routine](a, b, **options)
        return result.get() if isinstance(result, cupy.ndarray) else result

    def run(self, number: int) -> None:
        cases = list(self.expected)
        cupy.cuda.Device(self.options.devices[0]).use()
        while time.perf_counter() < self.end:
            number += 7
            routine, kind = cases[number % len(cases)]
            try:
                result = self.call(routine, kind)
            except Exception as error:
                self.wrong.append(f"{routine}, {kind}: {error!r}")
                return
            if not np.array_equal(result, self.expected[routine, kind]):
                self.wrong.append(f"{routine}, {kind}: other bits")
            self.calls[kind] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--devices", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--n", type=int, default=3000)
    caller = Caller(parser.parse_args())
    threads = [threading.Thread(target=caller.run, args=(i,)) for i in range(caller.options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        while thread.is_alive():
            print(f"{caller.calls.total()} calls, {len(caller.wrong)} wrong", flush=True)
            thread.join(10)
    print(dict(caller.calls), *caller.wrong[:20], f"{len(caller.wrong)} wrong", sep="\n")
    return int(bool(caller.wrong))


if __name__ == "__main__":
    sys.exit(main())
