"""Timing of one call on the device.

A pass runs the call once on each of several copies of its arrays, used in turn. They are at least three, and
together at least twice the L2 cache. So no call finds its operands there because the last one left them. What
the call overwrites is restored before each pass, outside the timed region, so that calls in place are timed
alone. Events bracket the pass. Reported is the median of five passes after one that is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pyblasgpu.testing.clocks import device_clock, medians_in_turn
from pyblasgpu.testing.problems import Arrays

__all__ = ["Rotation"]

LEAST_CALLS, MOST_CALLS = 3, 256


class Rotation:
    """Copies of one call's arrays in device memory.

    Parameters
    ----------
    data : Arrays
        The arrays, in host memory.
    """

    def __init__(self, data: Arrays):
        import cupy

        self._cupy, self._device = cupy, cupy.cuda.Device()
        # column-major matrices, also of a batch
        first = data.map(lambda x: cupy.array(x.swapaxes(-1, -2), order="C").swapaxes(-1, -2))
        self._original = first.out.copy(order="K")
        copies = [first.map(lambda x: x.copy(order="K")) for _ in range(self._calls(first) - 1)]
        self.sets = [first, *copies]

    def restore(self) -> None:
        """Put back what the calls have overwritten."""
        for x in self.sets:
            self._cupy.copyto(x.out, self._original)

    def seconds(self, call: Callable[[Arrays], object]) -> float:
        """Seconds of one `call`."""
        return self.in_turn({"": call})[""]

    def in_turn(self, calls: Mapping[str, Callable[[Arrays], object]]) -> dict[str, float]:
        """Seconds of one of each of `calls`, a pass of each in turn."""

        def pass_of(call: Callable[[Arrays], object]) -> Callable[[], None]:
            def run() -> None:
                for x in self.sets:
                    call(x)

            return run

        clock = device_clock(self._cupy.cuda.get_current_stream().ptr, self._device.id)
        passes = {name: pass_of(call) for name, call in calls.items()}
        medians = medians_in_turn(passes, clock, self.restore)
        return {name: seconds / len(self.sets) for name, seconds in medians.items()}

    def result(self, call: Callable[[Arrays], object]) -> np.ndarray:
        """Result of a call, in host memory."""
        self.restore()
        call(self.sets[-1])
        computed: np.ndarray = self.sets[-1].out.get(order="A")
        return computed

    def _calls(self, x: Arrays) -> int:
        """Calls of a pass: by the L2 cache, as far as memory goes."""
        size = sum(array.nbytes for array in x if array is not None)
        wanted = -(-2 * self._device.attributes["L2CacheSize"] // size)
        fitting = int(0.8 * self._device.mem_info[0]) // size
        return max(1, min(max(wanted, LEAST_CALLS), fitting, MOST_CALLS))
