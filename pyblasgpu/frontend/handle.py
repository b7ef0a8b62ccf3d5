"""A call that goes on while its caller does: ``blocking=False`` gives one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from time import monotonic
from typing import Any, Generic, TypeVar, cast

from ..errors import CallCancelled, TileReport
from ..graph_breaks import break_graphs

__all__ = ["Handle", "Report", "watched"]

_Result = TypeVar("_Result")

#: Called with the number of tasks that are done, and of all.
Report = Callable[[int, int], None]
#: Seconds after which a call on a terminal shows a bar.
LATE = 2.0


@break_graphs
class Handle(Generic[_Result]):
    """A call that is under way.

    Its arrays may neither be written nor, but for parts that are known to be final, read before it has ended.
    Calls with ``blocking=False`` make it; it is not made otherwise.

    Parameters
    ----------
    name : str
        The routine.
    work : callable
        ``work(is_cancelled, report)`` computes and returns the result.
    progress : callable, optional
        Called with the number of tasks that are done and the number of all, on the thread of the call.

    See Also
    --------
    pyblasgpu.gemm : Takes ``blocking=False``, and so do the other routines of Level 3.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> handle = pyblasgpu.gemm(2 * np.eye(2), np.eye(2), backend="cpu", blocking=False)
    >>> handle.wait()
    array([[2., 0.],
           [0., 2.]])
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Callable[[], bool], Report], _Result],
        progress: Report | None = None,
    ) -> None:
        self.name = name
        self._cancelled, self._ended = threading.Event(), threading.Event()
        self._counts, self._progress = (0, 0), progress
        self._result: _Result | None = None
        self._error: BaseException | None = None
        self._work = work
        context = copy_context()  # the caller's overrides and backend
        self._thread = threading.Thread(target=context.run, args=(self._run,), name=f"pyblasgpu-{name}")
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._cancelled.is_set():
                error = CallCancelled(f"{self.name}: cancelled before it began; nothing was written")
                error.tiles = TileReport(self.name, (), (), 0)
                raise error
            self._result = self._work(self._cancelled.is_set, self._report)
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # and the arrays with it
            self._ended.set()

    def _report(self, done: int, total: int) -> None:
        self._counts = done, total
        if self._progress is not None:
            self._progress(done, total)

    @property
    def progress(self) -> tuple[int, int]:
        """Number of tasks that are done, and of all; (0, 0) before it is known, and for a call of one task.

        Returns
        -------
        tuple of two int
            The tasks that are done, and all tasks.

        See Also
        --------
        done : Whether all of them are.

        Examples
        --------
        >>> import numpy as np, pyblasgpu
        >>> handle = pyblasgpu.gemm(np.eye(2), np.eye(2), backend="cpu", blocking=False)
        >>> done, total = handle.progress
        >>> done <= total
        True
        """
        return self._counts

    def done(self) -> bool:
        """Return whether the call has ended, well or not.

        Returns
        -------
        bool
            True after the end of the call, without a wait for it.

        See Also
        --------
        wait : Waits for the end.

        Examples
        --------
        >>> import numpy as np, pyblasgpu
        >>> handle = pyblasgpu.gemm(np.eye(2), np.eye(2), backend="cpu", blocking=False)
        >>> x = handle.wait()
        >>> handle.done()
        True
        """
        return self._ended.is_set()

    def cancel(self) -> bool:
        """End the call after the work that is enqueued already.

        `wait` then raises `CallCancelled`, which names the parts that are final, or returns if it was too
        late.

        Returns
        -------
        bool
            False where the call has ended already.

        See Also
        --------
        wait : Raises the error of a cancelled call.

        Examples
        --------
        >>> import numpy as np, pyblasgpu
        >>> handle = pyblasgpu.gemm(np.eye(2), np.eye(2), backend="cpu", blocking=False)
        >>> x = handle.wait()
        >>> handle.cancel()
        False
        """
        self._cancelled.set()
        return not self.done()

    def wait(self, timeout: float | None = None) -> _Result:
        """Wait until the call has ended, and return its result.

        Ctrl-C ends the waiting, not the call.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without end by default.

        Returns
        -------
        array
            The result of the call.

        Raises
        ------
        TimeoutError
            When it has not ended in that time; it goes on.
        CallCancelled
            When it was cancelled.
        Exception
            The error of the call.

        See Also
        --------
        done : Whether it has ended.

        Examples
        --------
        >>> import numpy as np, pyblasgpu
        >>> handle = pyblasgpu.gemm(np.eye(2), np.ones((2, 1)), backend="cpu", blocking=False)
        >>> handle.wait(timeout=60).tolist()
        [[1.0], [1.0]]
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"{self.name} has not ended after {timeout} seconds")
        if self._error is not None:
            raise self._error
        return cast(_Result, self._result)

    def __repr__(self) -> str:
        done, total = self._counts
        state = "ended" if self.done() else f"{done} of {total} tasks done" if total else "under way"
        return f"<{self.name}: {state}>"


@contextmanager
def watched(name: str, progress: Report | bool | None) -> Iterator[Report]:
    """Provide the function that a blocking call reports to: the caller's, a bar on a terminal, or none."""
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not _has_terminal()):
        yield lambda done, total: None
    else:
        bar = _LateBar(name, 0.0 if progress else LATE)
        try:
            yield bar.report
        finally:
            bar.close()


def _has_terminal() -> bool:
    """Whether errors are printed on a terminal; a daemon has no place for them."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # None, or closed
        return False


class _LateBar:
    """A bar that appears once a call has taken some time."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name, self._from = name, monotonic() + seconds
        self._bar: Any = None
        self._task: Any = None

    def report(self, done: int, total: int) -> None:
        if self._bar is None and monotonic() >= self._from:
            from ..terminal import ProgressBar

            self._bar = ProgressBar().__enter__()
            self._task = self._bar.bar.add_task(self._name, total=total)
        if self._bar is not None:
            self._bar.bar.update(self._task, completed=done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__()
