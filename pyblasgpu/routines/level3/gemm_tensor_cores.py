"""Products on tensor cores of another precision: of FP16 in float32 and complex64, of INT8 in the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dispatch.overrides import Algorithm
from ...dispatch.tensor import Int8Product, TensorProblem, int8_product, tensor_product
from ...gpu.device import current
from ..launch_list import LaunchList
from .gemm_int8 import emit_int8
from .gemm_tensor import emit_tensor

if TYPE_CHECKING:
    from .gemm import GemmArguments

__all__ = ["emit_on_tensor_cores"]


def emit_on_tensor_cores(launches: LaunchList, product: GemmArguments, layout: str, copied: bool) -> bool:
    """Emit the product on tensor cores; False, and nothing emitted, where it is not for them."""
    region = product.region
    problem = TensorProblem(launches.dtype, layout, product.extents, current(launches.device), copied, region)
    how = (int8_product if launches.dtype.real_size == 8 else tensor_product)(problem)
    if isinstance(how, Algorithm):
        launches.choices.append(how)
        return False
    launches.choices.append(how.choice)
    scaled = product.alpha, product.a, product.b, product.beta, product.c
    if isinstance(how, Int8Product):
        emit_int8(launches, how, *scaled)
    else:
        emit_tensor(launches, how, *scaled, region)
    return True
