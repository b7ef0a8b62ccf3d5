"""Solutions of linear systems with SciPy's signature: solve."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.level3 import at_elements
from ...dispatch.algorithms import refinement_pays
from ...dispatch.overrides import in_mode
from ...frontend.calls.factor_chain import repeat_chain
from ...frontend.calls.lazy_routines import keeps_residues, policy_at
from ...types import Diag, Trans, Uplo, tensor_method
from ..lapack import at_once
from ..lapack import names as lapack
from . import refine
from .arrays import Arrays, taken
from .checks import broadcast_batches, check_values, is_checked, raise_singular
from .condition import Conditions
from .docs import documented
from .host import InverseNorms, solve_definite, solve_general
from .host_symmetric import is_symmetric, solve_symmetric
from .structures import STRUCTURES, mirror, mirrored, square, structure_of, with_both_triangles
from .triangular import solve_triangular, substituted

__all__ = ["matrix_solution", "solution_of", "solve"]

_DEFINITE = "definite", "perhaps definite"


@documented
def solve(
    a: Array,
    b: Array,
    lower: Flag = False,
    overwrite_a: Flag = False,
    overwrite_b: Flag = False,
    check_finite: Flag = None,
    assume_a: str | None = None,
    transposed: Flag = False,
    *,
    method: str | None = None,
) -> Array:
    """Solution x of ``a x = b``, as `scipy.linalg.solve`.

    Parameters
    ----------
    lower : bool, default False
        Which triangle of `a` is read if `assume_a` is symmetric, Hermitian or positive definite.
    overwrite_a, overwrite_b : bool, default False
        Whether `a` and `b` may be overwritten: one host `b` by columns then holds the solution.
    check_finite : bool, optional
        Whether to look for Inf and NaN, and at the condition; by default that is done for host arrays alone.
    assume_a : str, optional
        The structure of `a`, by SciPy's names. 'positive definite' ('pos') is solved by Cholesky factors,
        'general' ('gen') by LU factors, 'upper triangular' and 'lower triangular' by substitution, 'diagonal'
        by division; 'symmetric' ('sym') and 'hermitian' ('her') by L D L^H factors on the processor, and on a
        device by LU factors of the whole matrix. 'tridiagonal' and 'banded' are for host arrays, and are
        SciPy's. By default the structure of one host matrix is looked for, and other arrays are general.
    transposed : bool, default False
        Solve ``a.T x = b``; for real `a`.
    method : {'tensor'}, optional
        LU and Cholesky factors by products on tensor cores, see `pyblasgpu.gemm`. For large matrices of
        float64 with few right-hand sides, factors in float32 are refined to float64's accuracy; see Notes.
        SciPy has no such argument.

    Returns
    -------
    array
        The solution, shaped as `b`, with the leading dimensions of both.

    Raises
    ------
    numpy.linalg.LinAlgError
        When a matrix is singular, or not positive definite where that was assumed; the call waits for device
        arrays to know it.
    ValueError
        When shapes do not fit, `assume_a` is unknown, or Inf or NaN was found.
    NotImplementedError
        For banded device arrays, and for complex ones with `transposed`.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        When the reciprocal condition number of a matrix in the 1-norm is estimated below the precision of its
        dtype. Device matrices are looked at with `check_finite` alone. A refined solution has no estimate.

    See Also
    --------
    lu_factor : Factors for several solutions.
    pyblasgpu.dask.solve : Solution with Dask arrays.

    Notes
    -----
    With ``method='tensor'`` a solution of float64 is refined, with residuals in float64, until for each
    right-hand side ``max |b - a x| <= sqrt(n) eps ||a||_inf max |x|``. Here n is the order and eps = 2^-53.
    That is the test of LAPACK's dsgesv and dsposv. There are 30 steps at most (Langou et al., *Exploiting the
    performance of 32 bit floating point arithmetic in obtaining 64 bit accuracy*, SC 2006). It holds where
    the condition is below about 1e7. GMRES with the same factors, in float64, follows where a step brings
    little, as with few singular values beyond float32. Otherwise, and where float32 cannot hold `a`, factors
    in float64 follow. Each step waits for the device. A copy of `a` in float32 is memory on top, and for
    GMRES one in float64.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a, b = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([8.0, 14.0])
    >>> pyblasgpu.linalg.solve(a, b, assume_a="pos")
    array([0.75, 2.5 ])
    """
    name = "solve"
    key = name, lower, overwrite_a, overwrite_b, check_finite, assume_a, transposed, method
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a, b))) is not None:
        return done.results[0]
    if assume_a not in STRUCTURES:
        raise ValueError(f"{name}: {assume_a} is not a recognized matrix structure")
    structure = STRUCTURES[assume_a]
    low = Uplo.parse(lower, name, "lower") is Uplo.LOWER
    swapped = enabled(transposed, name, "transposed")
    arrays = taken(name, {"a": a, "b": b})
    method = tensor_method(method, name)
    if method is None:  # which is set around the calls of routines, not by them
        arrays = arrays.recorded(key, (a, b), check_finite)
    overwrite = (
        arrays.may_overwrite(overwrite_a, name, "overwrite_a", arrays.each[0]),
        arrays.may_overwrite(overwrite_b, name, "overwrite_b", arrays.each[1]),
    )
    if structure == "banded":
        solution, warned = _by_scipy(arrays, assume_a, check_finite, swapped, overwrite)
        for each in warned:
            warnings.warn(each.message, each.category, stacklevel=2)
        return arrays.returned(solution)
    conditions = Conditions(arrays, arrays.library.host or is_checked(arrays, check_finite, name))
    with arrays.silent():
        check_values(arrays, check_finite, name, *arrays.each)
        solution = solution_of(conditions, structure, low, swapped, overwrite, method)
        conditions.warn()
        has_columns = len(arrays.each[1].shape) > 1
        result = arrays.returned(arrays.in_scipys_order(solution, name) if has_columns else solution)
        arrays.kept(result)
        return result


def _singular(arrays: Arrays, matrix: Any) -> Any:
    """Which triangles have a zero on the diagonal."""
    return arrays.xp.any(arrays.xp.linalg.diagonal(matrix) == 0, axis=-1)


def solution_of(
    conditions: Conditions,
    structure: str,
    low: bool = False,
    swapped: bool = False,
    overwrite: tuple[bool, bool] = (False, False),
    method: str | None = None,
) -> Any:
    """x of ``a x = b``, or ``a.T x = b`` if `swapped`, for the arrays of `conditions`; of host arrays by rows
    unless it overwrites b.
    """
    arrays = conditions.arrays
    matrix, right = arrays.each
    right = right if right.shape else arrays.xp.reshape(right, (1,))
    vector = len(right.shape) == 1
    right = right[..., None] if vector else right
    matrix = square(arrays, matrix, "solve")
    if swapped and arrays.dtype.is_complex:
        raise NotImplementedError(
            "scipy.linalg.solve can currently not solve a^T x = b or a^H x = b for complex matrices."
        )
    if matrix.size == 1:
        solution = _divided(arrays, matrix, right)
    else:
        if right.shape[-2] != matrix.shape[-1]:
            raise ValueError(
                f"solve: incompatible shapes: a has shape {tuple(matrix.shape)} and b "
                f"{tuple(arrays.each[1].shape)}"
            )
        flags = structure, low, swapped, overwrite
        solve_all = in_mode(method, matrix_solution)
        solution = solve_all(conditions, matrix, right, *flags, refines=method is not None)
    return solution[..., 0] if vector else solution


def matrix_solution(
    conditions: Conditions,
    matrix: Any,
    right: Any,
    structure: str,
    low: bool,
    swapped: bool,
    overwrite: tuple[bool, bool],
    refines: bool = False,
) -> Any:
    """The solution for right-hand sides that are matrices; `refines` says that float64 may go by factors in
    float32.
    """
    arrays = conditions.arrays
    matrix, right = broadcast_batches(arrays, matrix, arrays.cast(right))
    if 0 in right.shape:
        return arrays.xp.zeros_like(right)
    is_whole = structure == "any"
    if is_whole:
        structure = structure_of(arrays, matrix)
    if structure == "diagonal":
        diagonal = arrays.xp.linalg.diagonal(matrix)[..., None]
        solution = _divided(arrays, diagonal, right)
        conditions.keep_diagonal(diagonal)
        return arrays.placed(solution, arrays.output(right, overwrite[1], matrix))
    if structure in ("upper", "lower"):
        return _triangular_solution(conditions, matrix, right, structure == "lower", swapped, overwrite[1])
    if refines and arrays.dtype.letter == "d" and _refinement_pays(arrays, matrix, right, structure):
        solution = _refined(arrays, matrix, right, structure, low, swapped)
        if solution is not None:
            return arrays.placed(solution, arrays.output(right, overwrite[1], matrix))
    if structure == "definite":
        solution, info = _definite_solution(conditions, matrix, right, low, overwrite)
        raise_singular(arrays, info)
        return solution
    if structure == "perhaps definite":
        solution = _solution_if_definite(conditions, matrix, right, low, overwrite)
        if solution is not None:
            return solution
        structure = "hermitian"
    if is_symmetric(arrays, structure, matrix, right):
        return _symmetric_solution(conditions, matrix, right, structure, low, overwrite)
    structure = "general" if is_whole else structure
    in_place = arrays.output(matrix, overwrite[0], right) is not None
    matrix = with_both_triangles(arrays, matrix, structure, low, in_place)
    solution, info = _general_solution(conditions, matrix, right, swapped, overwrite)
    raise_singular(arrays, info)
    return solution


def _refinement_pays(arrays: Arrays, matrix: Any, right: Any, structure: str) -> bool:
    routine, order, device = "potrf" if structure in _DEFINITE else "getrf", matrix.shape[-1], arrays.device
    if not refinement_pays(routine, order, right.shape[-1], policy_at(device)):
        return False
    # factors in float64 that keep residues take less time than float32's and the steps
    is_definite = routine == "potrf" and len(matrix.shape) == 2
    return not (is_definite and device is not None and keeps_residues("d", order, device))


def _refined(arrays: Arrays, matrix: Any, right: Any, structure: str, low: bool, swapped: bool) -> Any | None:
    """The solution by factors in float32; None where that does not serve."""
    if structure in _DEFINITE:
        return refine.refined_definite(arrays, matrix, right, low)
    matrix = with_both_triangles(arrays, matrix, structure, low)
    return refine.refined_general(arrays, matrix, right, swapped)


def _triangular_solution(
    conditions: Conditions, matrix: Any, right: Any, low: bool, swapped: bool, overwrite: bool
) -> Any:
    """The solution by substitution."""
    arrays, uplo = conditions.arrays, Uplo.LOWER if low else Uplo.UPPER
    trans = Trans.TRANS if swapped else Trans.NO
    if not (arrays.library.host or conditions.wanted or overwrite):
        done = at_once.substitution("solve", matrix, right, arrays.dtype, uplo, trans)
        if done is not None:
            solution, info = done
            raise_singular(arrays, info)
            return solution
    raise_singular(arrays, _singular(arrays, matrix))
    if arrays.library.host:
        conditions.keep_triangle(matrix, uplo)
        out, flags = arrays.output(right, overwrite, matrix), (uplo, trans, Diag.NON_UNIT)
        return substituted(matrix, right, out, arrays.dtype, flags, column_major=False)

    def solve(x: Any, trans: Trans, overwrite_b: bool = False) -> Any:
        return solve_triangular(matrix, x, trans, low, overwrite_b=overwrite_b)

    if conditions.wanted:
        triangle = arrays.xp.tril(matrix) if low else arrays.xp.triu(matrix)
        conditions.keep_solver(conditions.norms(triangle), solve, matrix)
    return solve(right, trans, overwrite)


def _solution_if_definite(
    conditions: Conditions, matrix: Any, right: Any, low: bool, overwrite: tuple[bool, bool]
) -> Any | None:
    """The solution with one Hermitian host matrix; None, and both as they were, if it is not definite."""
    arrays = conditions.arrays
    in_place = arrays.output(matrix, overwrite[0], right) is not None
    diagonal = np.diagonal(matrix).copy() if in_place else None
    solution, info = _definite_solution(conditions, matrix, right, low, (overwrite[0], False))
    if not info:
        return arrays.placed(solution, arrays.output(right, overwrite[1], matrix))
    if diagonal is not None:  # the other triangle is as it was
        mirror(matrix, not low)
        np.fill_diagonal(matrix, diagonal)
    return None


def _definite_solution(
    conditions: Conditions, matrix: Any, right: Any, low: bool, overwrite: tuple[bool, bool]
) -> tuple[Any, Any]:
    """The solution by Cholesky factors, and info."""
    arrays, uplo = conditions.arrays, Uplo.LOWER if low else Uplo.UPPER
    if arrays.library.host:
        norms, estimates = conditions.norms(matrix, uplo), InverseNorms(conditions.wanted)
        out, in_place = _targets(arrays, matrix, right, overwrite)
        stacks = _as_stacks(matrix), _as_stacks(right)
        solution, info = solve_definite(*stacks, arrays.dtype, uplo, out, estimates, in_place)
        conditions.keep(norms, estimates.norms)
        return solution.reshape(right.shape), info
    norms = conditions.norms(mirrored(arrays, matrix, low)) if conditions.wanted else None
    factor, info = lapack.potrf(matrix, low, False, overwrite[0])
    conditions.keep_solver(norms, lambda x, _: lapack.potrs(factor, x, low)[0], factor)
    return lapack.potrs(factor, right, low, overwrite[1])[0], info


def _symmetric_solution(
    conditions: Conditions, matrix: Any, right: Any, structure: str, low: bool, overwrite: tuple[bool, bool]
) -> Any:
    """The solution of host matrices by L D L^H factors."""
    arrays, uplo = conditions.arrays, Uplo.LOWER if low else Uplo.UPPER
    norms, estimates = conditions.norms(matrix, uplo), InverseNorms(conditions.wanted)
    hermitian = structure == "hermitian" and arrays.dtype.is_complex
    out, in_place = _targets(arrays, matrix, right, overwrite)
    stacks = _as_stacks(matrix), _as_stacks(right)
    solution, info = solve_symmetric(*stacks, uplo, hermitian, out, estimates, in_place)
    conditions.keep(norms, estimates.norms)
    raise_singular(arrays, info)
    return solution.reshape(right.shape)


def _general_solution(
    conditions: Conditions, matrix: Any, right: Any, swapped: bool, overwrite: tuple[bool, bool]
) -> tuple[Any, Any]:
    """The solution by LU factors, and info."""
    arrays, trans = conditions.arrays, Trans.TRANS if swapped else Trans.NO
    norms = conditions.norms(matrix)
    if arrays.library.host:
        estimates = InverseNorms(conditions.wanted)
        out, in_place = _targets(arrays, matrix, right, overwrite)
        stacks = _as_stacks(matrix), _as_stacks(right)
        solution, info = solve_general(*stacks, arrays.dtype, trans, out, estimates, in_place)
        conditions.keep(norms, estimates.norms)
        return solution.reshape(right.shape), info
    if not (conditions.wanted or swapped or any(overwrite)):
        done = at_once.solution("solve", matrix, right, arrays.dtype)
        if done is not None:
            return done
    factors, pivots, info = lapack.getrf(matrix, overwrite[0])
    conditions.keep_solver(norms, lambda x, op: lapack.getrs(factors, pivots, x, op)[0], factors)
    return lapack.getrs(factors, pivots, right, trans, overwrite[1])[0], info


def _targets(arrays: Arrays, matrix: Any, right: Any, overwrite: tuple[bool, bool]) -> tuple[Any, bool]:
    """Return the output for one host matrix, None for a new array, and whether factors use it."""
    out = arrays.output(right, overwrite[1], matrix)
    return out, arrays.output(matrix, overwrite[0], right) is not None


def _as_stacks(matrices: Any) -> Any:
    """Host matrices with one leading dimension at most, in the order of the stack."""
    return matrices if matrices.ndim <= 3 else matrices.reshape(-1, *matrices.shape[-2:])


def _divided(arrays: Arrays, diagonal: Any, right: Any) -> Any:
    zeros = arrays.xp.any(diagonal == 0, axis=(-2, -1))
    if arrays.library.host and diagonal.size == 1 and bool(zeros.any()):
        raise LinAlgError("A singular matrix detected.")
    raise_singular(arrays, zeros)
    return arrays.cast(right) / diagonal


def _by_scipy(
    arrays: Arrays, assume_a: Any, check_finite: Any, swapped: bool, overwrite: tuple[bool, bool]
) -> tuple[Any, list[warnings.WarningMessage]]:
    """SciPy's solution for host arrays, and its warnings, which would name this file."""
    if not arrays.library.host:
        raise NotImplementedError(f"solve: assume_a={assume_a!r} is for host arrays, which SciPy solves")
    from scipy.linalg import solve as scipys

    checked = is_checked(arrays, check_finite, "solve")
    matrix, right = map(at_elements, arrays.each)  # SciPy refuses others, or reads wrong elements
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        solution = scipys(matrix, right, False, *overwrite, checked, assume_a, swapped)
    return solution, warned
