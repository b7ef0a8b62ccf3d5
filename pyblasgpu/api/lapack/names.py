"""scipy.linalg.lapack, name for name as far as it goes, on any arrays.

Parameters, order, defaults and results are SciPy's: results are column-major, ``overwrite_a`` means *may*
overwrite, `info` counts bad pivots, and nothing is raised. Lists, numbers, integers and all floating-point
arrays are cast to the routine's dtype. Beyond SciPy, stacks of matrices of shape (..., n, n) are taken, and
the functions without a prefix take the dtype from the arrays. Small matrices of a stack on a device keep
the order of the argument, by rows or by columns.

`info`, and pivots, are arrays of int32 of the library of the arguments, on their device; `info` of one of
NumPy's matrices is an int. Only a read synchronizes. Device arrays run on their library's current stream, and
``PYBLASGPU_BACKEND`` sends host arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...arguments import Array
from ...routine_table import ROUTINES
from ..blas.functions import named_functions
from ..blas.names import find_best_blas_type
from . import (
    cholesky,
    eigen,
    ldl,
    least_squares,
    lq,
    lu,
    qr,
    queries,
    reflectors,
    singular,
    spectra,
    triangular,
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """One of `FUNCTIONS`."""


FUNCTIONS = {
    **cholesky.FUNCTIONS,
    **lu.FUNCTIONS,
    **ldl.FUNCTIONS,
    **qr.FUNCTIONS,
    **lq.FUNCTIONS,
    **least_squares.FUNCTIONS,
    **triangular.FUNCTIONS,
    **reflectors.FUNCTIONS,
    **queries.FUNCTIONS,
    **spectra.FUNCTIONS,
    **eigen.FUNCTIONS,
    **singular.FUNCTIONS,
}
globals().update(FUNCTIONS)
__all__ = ["get_lapack_funcs", *FUNCTIONS]


def get_lapack_funcs(
    names: str | Sequence[str], arrays: Sequence[Array] = (), dtype: Any = None, ilp64: bool | str = False
) -> Any:
    """Return the functions of this module for the dtype of `arrays`.

    Parameters
    ----------
    names : str or sequence of str
        Names without prefix: 'potrf', 'trtrs', ...
    arrays : sequence of arrays, optional
        Arrays of one library; the functions are of the type that holds them all. By default none.
    dtype : dtype, optional
        The dtype where no arrays are given; by default float64.
    ilp64 : bool or 'preferred', default False
        Accepted; addresses have 64 bits in either case, and orders 32.

    Returns
    -------
    callable or list of callable
        One function for a str, a list for a sequence. Each has the attributes ``typecode``, ``prefix``,
        ``dtype``, ``int_dtype`` and ``module_name``.

    Raises
    ------
    ValueError
        When there is no function of a name.

    See Also
    --------
    pyblasgpu.blas.get_blas_funcs : Returns functions of the BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import lapack
    >>> lapack.get_lapack_funcs("potrf", [np.ones(2, dtype="float32")]).__name__
    'spotrf'
    """
    prefix = find_best_blas_type(arrays, dtype)[0]

    def full_name(name: str) -> str:
        return ROUTINES[name].scipys(prefix)[0] if name in ROUTINES else prefix + name

    return named_functions("LAPACK", FUNCTIONS, names, full_name)
