"""Ctrl-C, taken where nothing is half done.

Python raises KeyboardInterrupt between any two instructions. That may be after a job was marked as running
but before it was sent, or with the lock of the records held.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["Interrupts"]


class Interrupts:
    """Within the block Ctrl-C is noted, and the next `check` raises it. A second one before that is raised at
    once.

    Where Ctrl-C is ignored or handled otherwise, and outside the main thread, all stays as it is.
    """

    def __init__(self) -> None:
        self._noted = self._ours = False

    def check(self) -> None:
        """Raise what was noted.

        Raises
        ------
        KeyboardInterrupt
        """
        if self._noted:
            self._noted = False
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        self._ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._ours:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            signal.default_int_handler(number, frame)
        self._noted = True
