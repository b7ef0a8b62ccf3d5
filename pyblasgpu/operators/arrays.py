"""Functions of arrays that formulas use, of the few that each framework offers."""

from __future__ import annotations

from typing import Any

__all__ = ["Arrays"]


class Arrays:
    """Functions of a framework's arrays, and its operators as attributes."""

    def __getattr__(self, name: str) -> Any:
        """Return an operator that was registered."""
        raise AttributeError(f"the table has no operator {name}")

    def tril(self, x: Any, k: int = 0) -> Any:
        """Return what is on the diagonal `k` and below."""
        raise NotImplementedError

    def triu(self, x: Any, k: int = 0) -> Any:
        """Return what is on the diagonal `k` and above."""
        raise NotImplementedError

    def diagonal(self, x: Any) -> Any:
        """Return the diagonals of matrices."""
        raise NotImplementedError

    def embedded(self, diagonal: Any) -> Any:
        """Return diagonal matrices."""
        raise NotImplementedError

    def concatenated(self, arrays: Any, axis: int) -> Any:
        """Return arrays one after the other."""
        raise NotImplementedError

    def zeros(self, shape: Any, like: Any) -> Any:
        """Return real zeros of the precision of `like`."""
        raise NotImplementedError

    def converted(self, x: Any, like: Any) -> Any:
        """Return `x` in the dtype of `like`."""
        raise NotImplementedError

    def is_complex(self, x: Any) -> bool:
        """Whether elements are complex."""
        raise NotImplementedError

    def check_phases(self, name: str, one: Any, other: Any = None) -> None:
        """Raise RuntimeError where a loss depends on phases of vectors, if the framework looks.

        It does not where the imaginary parts of `one` and `other` add up to zero, nearly.
        """

    def adjoint(self, x: Any) -> Any:
        """Return conjugate transposes."""
        return x.mT.conj()

    def triangle(self, x: Any, lower: bool, strict: bool = False) -> Any:
        """Return one triangle, the other one zero."""
        return self.tril(x, -int(strict)) if lower else self.triu(x, int(strict))

    def hermitian_part(self, x: Any) -> Any:
        """Return the mean of matrices and their conjugate transposes."""
        return (x + self.adjoint(x)) / 2

    def real_diagonal(self, x: Any) -> Any:
        """Return the real parts of diagonals, in the dtype of the matrices."""
        return self.converted(self.diagonal(x).real, x)

    def half_triangle(self, x: Any) -> Any:
        """Return the lower triangle with half of the diagonal, which is taken as real."""
        return self.tril(x, -1) + self.embedded(self.real_diagonal(x) / 2)

    def mirrored(self, x: Any) -> Any:
        """Return Hermitian matrices of which the lower triangles are given, with a real diagonal."""
        strict = self.tril(x, -1)
        return strict + self.adjoint(strict) + self.embedded(self.real_diagonal(x))

    def with_real_diagonal(self, x: Any, hermitian: bool) -> Any:
        """Return matrices whose diagonal has lost its imaginary part where they are Hermitian."""
        if not (hermitian and self.is_complex(x)):
            return x
        return x - self.embedded(self.converted(self.diagonal(x).imag * 1j, x))
