"""Zeros of the rational function of `tridiagonal_merge`: 1/rho + sum of z_i² / (d_i - x) = 0.

A zero is kept as its distance to the nearer pole: so differences to all poles are exact to rounding. A step
takes the nearer pole as it is, and the sum of the others as one at the other end of the interval, of the same
value and slope (the fixed weights of Li, 1994). Where a step leaves the bracket it halves that.
"""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....types import Dtype
from ..cholesky.inverse_root import inverse_root
from ..quotient import quotients

__all__ = ["root_finder", "team_reducer", "weight_finder"]

STEPS = 100  # at most; five are many
HALVING = 8  # steps after which the bracket is halved
SLACK = 16  # roundoffs of the sum of sizes that count as zero


def team_reducer(team: int, number: Callable, multiplies: bool = False) -> Callable:
    """``reduce(x, t)``: the sum, or the product, of the numbers of a team of lanes, all of type `number`."""
    shuffle, int32 = ptx.shuffle, ptx.types.int32

    @device_function
    def reduce(x, t):
        lane, distance = int32(t & 31), int32(1)
        while distance < team:
            y = shuffle(x, int32(lane ^ distance))
            x = number(x * y if multiplies else x + y)
            distance = int32(distance << 1)
        return x

    return reduce


def _evaluator(facts: Dtype, team: int, together: int) -> Callable:
    """``evaluate(sums, poles, weights, origin, tau, m, lane, t)``: value, slope and sum of sizes of all terms
    but that of the pole `origin`, `tau` from it.
    """
    real, int32, divide, total = (
        ptx.REALS[facts.real],
        ptx.types.int32,
        quotients(facts),
        team_reducer(team, ptx.REALS[facts.real]),
    )
    select, STRIDE = ptx.select, team * together

    @device_function
    def add(k, sums, poles, weights, origin, pole, tau, m, i):
        j = int32(i + k * team)
        is_there, at = (j < m) & (j != origin), int32(min(j, m - 1))
        z = select(is_there, weights[at], real(0))
        x = divide(z, select(is_there, (poles[at] - pole) - tau, real(1)))
        sums[0] += z * x
        sums[1] += x * x
        sums[2] += abs(z * x)

    add_all = unrolled(together, add)

    @device_function
    def evaluate(sums, poles, weights, origin, tau, m, lane, t):
        sums[0], sums[1], sums[2], pole = real(0), real(0), real(0), poles[origin]
        i = int32(lane)
        while i < m:
            add_all(0, sums, poles, weights, origin, pole, tau, m, i)
            i = int32(i + STRIDE)
        return total(sums[0], t), total(sums[1], t), total(sums[2], t)

    return evaluate


def _stepper(facts: Dtype) -> Callable:
    """``step(value, weight, own, slope, near, far, is_last)``: how far it is to the zero of a function of two
    poles: one at distance `near` of this weight, whose term is `own`, and one at distance `far`, so that the
    value is this, and the slope of all but the first. It may be no number where that is not near.
    """
    real, divide, (_, inverse, _) = ptx.REALS[facts.real], quotients(facts), inverse_root(facts)
    select = ptx.select

    @device_function
    def step(value, weight, own, slope, near, far, is_last):
        other = slope * far * far
        c = value - own - slope * far
        a = c * (near + far) + weight + other
        b = near * far * value
        square = abs(a * a - real(4) * b * c)
        r = square * inverse(square)
        r = select(is_last, -r, r)
        # the smaller of both solutions in size is stable either way
        is_first = (a <= real(0)) != is_last
        return divide(select(is_first, a - r, b + b), select(is_first, c + c, a + r))

    return step


def _bracket(facts: Dtype, team: int, together: int) -> Callable:
    """``bracket(sums, poles, weights, rho, j, m, lane, t)``: the pole from which zero j is measured, the
    other end of its interval, and the ends of its bracket.
    """
    real, int32, divide, total = (
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.divide,
        team_reducer(team, ptx.REALS[facts.real]),
    )
    evaluate, UP = _evaluator(facts, team, together), 1.0 + 8 * facts.unit_roundoff

    @device_function
    def bracket(sums, poles, weights, rho, j, m, lane, t):
        square, i = real(0), int32(lane)
        while i < m:
            square += weights[i] * weights[i]
            i = int32(i + team)
        square = total(square, t)
        is_last = j == m - 1
        following = int32(min(j + 1, m - 1))
        half = (poles[following] - poles[j]) * real(0.5)
        half = rho * square if is_last else half
        value, _, _ = evaluate(sums, poles, weights, j, half, m, lane, t)
        value = value + divide(real(1), rho) - divide(weights[j] * weights[j], half)
        if is_last:
            return j, int32(max(j - 1, 0)), real(0), half * real(UP)
        if value >= real(0):
            return j, following, real(0), half
        return following, j, -half, real(0)

    return bracket


def root_finder(facts: Dtype, team: int, together: int) -> Callable:
    """``find(poles, weights, rho, j, m, lane, t)``: zero j as its distance to a pole, and the number of that
    pole. Teams of a warp go together.
    """
    real, int32, divide, first_lane = ptx.REALS[facts.real], ptx.types.int32, quotients(facts), ptx.first_lane
    evaluate, step, UNIT = _evaluator(facts, team, together), _stepper(facts), facts.unit_roundoff
    bracket, exactly = _bracket(facts, team, together), ptx.divide

    @device_function
    def find(poles, weights, rho, j, m, lane, t):
        sums = cuda.local.array(3, real)
        origin, other, low, high = bracket(sums, poles, weights, rho, j, m, lane, t)
        is_last, inverse = j == m - 1, exactly(real(1), rho)
        weight, gap = weights[origin] * weights[origin], poles[other] - poles[origin]
        tau, number, is_left = (low + high) * real(0.5), int32(0), True
        while number < STEPS and first_lane(is_left) >= 0:
            rest, slope, size = evaluate(sums, poles, weights, origin, tau, m, lane, t)
            own = divide(weight, -tau)
            value = inverse + rest + own
            whole = slope + divide(own, -tau)
            bound = real(SLACK) * (inverse + size + abs(own)) + abs(tau) * whole
            is_near = abs(value) <= real(UNIT) * bound
            low, high = (tau, high) if value < real(0) else (low, tau)
            far = gap - tau
            change = step(value, weight, own, slope, -tau, far, is_last)
            if m == 1 or not change * value < real(0):
                change = divide(-value, whole)
            following = tau + change
            is_halved = not low < following < high or number % HALVING == HALVING - 1
            following = (low + high) * real(0.5) if is_halved else following
            is_over = is_near or following == tau or not low < following < high
            tau = tau if is_over or not is_left else following
            is_left = is_left and not is_over
            number = int32(number + 1)
        return tau, origin

    return find


def weight_finder(facts: Dtype, team: int, together: int) -> Callable:
    """``find(poles, taus, origins, i, m, lane, t)``: the size of the element of z of pole i for which the
    zeros are exact.
    """
    real, int32, divide, root = ptx.REALS[facts.real], ptx.types.int32, quotients(facts), ptx.square_root
    product, select, STRIDE = team_reducer(team, real, multiplies=True), ptx.select, team * together

    @device_function
    def multiply(k, results, poles, taus, origins, pole, i, m, first):
        j = int32(first + k * team)
        at = int32(min(j, m - 1))
        x = (pole - poles[int32(origins[at])]) - taus[at]
        results[0] *= divide(select(j < m, x, real(1)), select((j < m) & (j != i), pole - poles[at], real(1)))

    multiply_all = unrolled(together, multiply)

    @device_function
    def find(poles, taus, origins, i, m, lane, t):
        results = cuda.local.array(1, real)
        results[0], pole, j = real(1), poles[i], int32(lane)
        while j < m:
            multiply_all(0, results, poles, taus, origins, pole, i, m, j)
            j = int32(j + STRIDE)
        return root(abs(product(results[0], t)))

    return find
