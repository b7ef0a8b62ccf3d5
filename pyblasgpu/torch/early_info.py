"""Info that is on its way to the host while the device computes what follows the factor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["early", "with_info"]


class _Early(threading.local):
    """The transfer of this thread.

    Attributes
    ----------
    is_wanted : bool
        Whether a caller waits for info.
    found : tuple or None
        The values, in host memory, and the event after which they are there.
    """

    is_wanted = False
    found: tuple[Tensor, Any] | None = None

    def begin(self, info: Tensor) -> None:
        """Begin to copy info."""
        values, event = info.to("cpu", non_blocking=True), torch.cuda.Event()
        event.record(torch.cuda.current_stream(info.device))
        self.found = values, event


early = _Early()


def with_info(function: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """Return what a function of matrices does, and info in host memory, for which the call has waited; None
    where it is not there before the rest.
    """
    if not args[0].is_cuda:
        return function(*args), None
    early.is_wanted, early.found = True, None
    try:
        result = function(*args)
    finally:
        early.is_wanted = False
    if early.found is None:
        return result, None
    (values, event), early.found = early.found, None
    event.synchronize()
    return result, values
