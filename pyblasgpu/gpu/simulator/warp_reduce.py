"""The intrinsics of `warp_reduce` in Python."""

from __future__ import annotations

from .memory import SimulatorError
from .thread import current_thread

__all__ = ["NO_LABEL", "warp_first_max"]

NO_LABEL = 2**31 - 1


def warp_first_max(size, label: int, ok: bool) -> int:
    """The lowest label of those whose `size` is the largest, among the lanes with `ok`."""
    if ok and (not 0 <= label < NO_LABEL or size < 0):
        raise SimulatorError(f"warp_first_max of size {size} and label {label}")
    answer: list[int] = []
    current_thread().meet((size, label, ok, answer), _answer_all)
    return answer[0]


def _answer_all(lanes: list[tuple]) -> None:
    sizes = [(-1.0 if size != size else size, -label) for size, label, ok, _ in lanes if ok]
    first = -max(sizes)[1] if sizes else NO_LABEL
    for _, _, _, answer in lanes:
        answer.append(first)
