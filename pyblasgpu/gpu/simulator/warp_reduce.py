"""The intrinsics of `warp_reduce` in Python."""

from __future__ import annotations

from .block import current_thread
from .memory import SimulatorError

__all__ = ["NO_LABEL", "first_lane", "first_max_lane", "group_first_max", "shuffle", "warp_first_max"]

NO_LABEL = 2**31 - 1


def warp_first_max(size, label: int, ok: bool) -> int:
    """The lowest label of those whose `size` is the largest, among the lanes with `ok`."""
    if ok and (not 0 <= label < NO_LABEL or size < 0):
        raise SimulatorError(f"warp_first_max of size {size} and label {label}")
    answer: list[int] = []
    current_thread().meet((size, label, ok, answer), _answer_all)
    return answer[0]


def _answer_all(lanes: list[tuple]) -> None:
    sizes = [(size != size, 0.0 if size != size else size, -label) for size, label, ok, _ in lanes if ok]
    first = -max(sizes)[2] if sizes else NO_LABEL
    for _, _, _, answer in lanes:
        answer.append(first)


def group_first_max(size, label: int, ok: bool, lanes: int) -> int:
    """Search like `warp_first_max` in a group of 4, 8 or 16 neighbouring lanes; all lanes of the warp take
    part.
    """
    if lanes not in (4, 8, 16) or (ok and (not 0 <= label < NO_LABEL or size < 0)):
        raise SimulatorError(f"group_first_max of size {size} and label {label} among {lanes} lanes")
    answer: list[int] = []
    current_thread().meet((size, label, ok, answer, lanes), _answer_groups)
    return answer[0]


def _answer_groups(lanes: list[tuple]) -> None:
    extent = lanes[0][-1]
    for first in range(0, len(lanes), extent):
        _answer_all([lane[:-1] for lane in lanes[first : first + extent]])


def first_max_lane(size, label: int, ok: bool) -> int:
    """The lane that has the label of `warp_first_max`, -1 where no lane has `ok`."""
    first = warp_first_max(size, label, ok)
    return first_lane(ok and label == first)


def shuffle(value, lane: int):
    """The `value` that another lane of the warp passes; all lanes take part."""
    if not 0 <= lane < 32:
        raise SimulatorError(f"shuffle from lane {lane}")
    answer: list = []
    current_thread().meet((value, int(lane), answer), _give_all)
    return answer[0]


def _give_all(lanes: list[tuple]) -> None:
    for _, lane, answer in lanes:
        answer.append(lanes[lane][0])


def first_lane(ok: bool) -> int:
    """The first lane of the warp with `ok`, -1 where there is none; all lanes take part."""
    answer: list[int] = []
    current_thread().meet((ok, answer), _tell_first)
    return answer[0]


def _tell_first(lanes: list[tuple]) -> None:
    first = next((lane for lane, (ok, _) in enumerate(lanes) if ok), -1)
    for _, answer in lanes:
        answer.append(first)
