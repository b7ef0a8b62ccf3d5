"""Stacks in host memory for routines that SciPy's LAPACK computes, a matrix at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ...arguments import Array, Flag
from ...cpu.scipy.stacks import over_stacks
from ...frontend.arrays.any_array import common_library
from ...frontend.arrays.libraries import integers_of_library
from ...types import Dtype, Trans
from ..blas.arrays import common_dtype_of
from ..processor import on_processor
from .call import as_stack
from .qr_calls import check_op

__all__ = ["HostStacks"]


class HostStacks:
    """Matrices and stacks in host memory, as NumPy arrays of one dtype; results are of their library."""

    def __init__(self, name: str, arrays: Mapping[str, Array], dtype: Dtype | None) -> None:
        with on_processor(name, arrays, "LAPACK"):
            each = [as_stack(name, argument, array, dtype) for argument, array in arrays.items()]
        self.name, self.passed = name, arrays
        self._like, self._library = each[0], common_library(name, tuple(arrays), tuple(each))
        self.dtype = dtype or common_dtype_of(name, tuple(each))
        self.arrays = [self._library.to_numpy(array).astype(self.dtype.name, copy=False) for array in each]
        try:
            np.broadcast_shapes(*(array.shape[:-2] for array in self.arrays))
        except ValueError:
            shapes = ", ".join(
                f"{argument} {array.shape}" for argument, array in zip(arrays, each, strict=True)
            )
            raise ValueError(f"{name}: the leading dimensions of {shapes} do not broadcast") from None

    def op(self, op: Trans, passed: Flag) -> str:
        """LAPACK's letter of an op: the conjugate transpose is the transpose where matrices are real."""
        check_op(self.name, op, passed, self.dtype)
        return "N" if op is Trans.NO else "C" if self.dtype.is_complex else "T"

    def computed(self, run: Callable[..., Any], overwritten: Collection[str] = ()) -> list[Any]:
        """Results of ``run(*matrices)``, as stacks; numbers as int32. Where LAPACK has `overwritten` an
        argument, and no copy of it, a tensor counts that.
        """
        results = over_stacks(lambda *each: tuple(run(*each)), *self.arrays)
        for (argument, passed), array in zip(self.passed.items(), self.arrays, strict=True):
            if argument in overwritten and array.ndim == 2 and array.flags.f_contiguous:
                self._library.written(passed)
        return [self.delivered(each) for each in results]

    def delivered(self, result: Any) -> Any:
        return integers_of_library(self._library, result, self._like)
