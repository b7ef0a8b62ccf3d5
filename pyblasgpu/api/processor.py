"""Calls that run on the processor: of routines without kernels, and of small matrices in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from ..arguments import Array
from ..frontend.arrays.any_array import library_of
from ..frontend.backend_status import preferred_backend
from ..frontend.calls.direct import order_on_processor
from ..types import Dtype

__all__ = ["on_processor", "small_on_processor"]


def on_processor(name: str, arrays: Mapping[str, Array], library: str) -> AbstractContextManager[None]:
    """Return the context in which a routine runs on the processor, whatever backend is set.

    Parameters
    ----------
    name : str
        The routine, for messages.
    arrays : mapping of str to array
        The arrays of the call by argument; those that are None are left out.
    library : str
        SciPy's library that computes it.

    Raises
    ------
    NotImplementedError
        When an array is on a device.
    """
    for argument, array in arrays.items():
        if array is not None and not library_of(array, name, argument).host:
            raise NotImplementedError(
                f"{name}: {argument} is on a device, and this routine is computed by SciPy's {library} on "
                "the CPU alone: pass arrays in host memory"
            )
    return preferred_backend("cpu")


def small_on_processor(dtype: Dtype, *arrays: Array) -> AbstractContextManager[None]:
    """Return the context of a call on matrices, in which small ones in host memory run on the processor.

    Stacks do not count as small.
    """
    if all(len(each.shape) == 2 and library_of(each).host for each in arrays):
        largest = max(extent for each in arrays for extent in each.shape)
        if largest < order_on_processor(dtype.letter):
            return preferred_backend("cpu")
    return nullcontext()
