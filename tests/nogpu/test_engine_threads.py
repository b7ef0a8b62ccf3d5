"""Many threads that call by tiles at once, on cards that are not there: results have the same bits.

PYBLASGPU_THREAD_SECONDS=600 lets them run for ten minutes.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import numpy as np
from fake_cards_install import holds_nothing
from threads import at_once

import pyblasgpu

SECONDS = float(os.environ.get("PYBLASGPU_THREAD_SECONDS", "0.5"))
THREADS, ORDER = 64, 20

CALLS = {
    "gemm": lambda a, b, **options: pyblasgpu.gemm(a, b, **options),
    "syrk": lambda a, b, **options: pyblasgpu.syrk(a, lower=True, **options),
    "trmm": lambda a, b, **options: pyblasgpu.trmm(a, b, lower=True, **options),
    "trsm": lambda a, b, **options: pyblasgpu.trsm(a, b, lower=True, **options),
}
#: What is asked for, and whether pages are locked.
KINDS = {
    "two cards": ({"devices": [0, 1]}, False),
    "two cards, locked": ({"devices": [0, 1]}, True),
    "little memory": ({"devices": [0], "max_device_memory": 5000}, False),
    "the other card": ({"devices": [1], "max_device_memory": 5000}, True),
    "three cards": ({"devices": [0, 1, 2]}, False),
}


def test_many_threads(fake_cards, small_tiles):
    driver = fake_cards(seed=3, eagerness=0.5)
    rng = np.random.default_rng(0)
    plain = tuple(np.asfortranarray(rng.uniform(-1, 1, (ORDER, ORDER)) / ORDER) for _ in range(2))
    np.fill_diagonal(plain[0], 2)
    locked = tuple(driver.lock_pages(x.copy(order="F")) for x in plain)
    made: Counter = Counter()

    def call(routine, kind):
        options, is_locked = KINDS[kind]
        return CALLS[routine](*(locked if is_locked else plain), **options)

    expected = {(routine, kind): call(routine, kind) for routine in CALLS for kind in KINDS}
    cases, end = list(expected), time.monotonic() + SECONDS

    def run(number):
        is_late = False
        while not is_late:  # of a busy host too each thread calls once
            number += 7
            case = cases[number % len(cases)]
            assert np.array_equal(call(*case), expected[case]), case
            made[case] += 1
            is_late = time.monotonic() >= end

    at_once(run, [*zip(range(THREADS))])
    print(f"{made.total()} calls of {len(made)} kinds")
    assert made.total() >= THREADS and holds_nothing(driver)
