"""The sizes from which on calls go to the GPU.

The size of a call is the order of the square problem with as many operations. It is the cube root of m n k
for a product, and n for a factorization. A size counts copies, and is where calls are faster by a third or
more.
"""

from __future__ import annotations

from ..database.policy import Policy, reference
from ..patches.patch import sizes_in
from ..routine_table import ROUTINES

__all__ = ["sizes_of"]


def sizes_of(policy: Policy) -> dict[str, float]:
    """Return the sizes that a policy has, by function, and by routine without the letter of its type.

    Those that are never reached are infinite.
    """
    kinds, functions = policy.routed_min_size, policy.routed_function_min_size
    sizes = {
        **{routine.stem: kinds[routine.crossover] for routine in ROUTINES.values() if routine.crossover},
        **{name: functions[name] for name in reference().routed_function_min_size},
    }
    return sizes_in(sizes)
