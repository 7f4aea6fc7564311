"""Student's t and Fisher's F, by the regularised incomplete beta function (DLMF 8.17)."""

from __future__ import annotations

import math
from collections.abc import Callable

TERMS = 500
"""Of the continued fraction; it takes some tens."""
CLOSE = 1e-15
NEARLY_NOTHING = 1e-300
"""Stands for 0 in a denominator of the continued fraction."""


def beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a and b above 0.

    Raises ValueError for an x outside 0 to 1.
    """
    if not 0 <= x <= 1:
        raise ValueError(f"x is {x}, and not from 0 to 1")
    if x in (0, 1):
        return float(x)
    # The fraction converges quickly on this side only (DLMF 8.17.4, 8.17.22).
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    logarithm += a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / a * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of DLMF 8.17.22, by Lentz's method."""
    whole, above, below = 1.0, 1.0, 0.0
    for number in range(1, TERMS):
        m = number // 2
        if number % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        below = 1 / (1 + term * below or NEARLY_NOTHING)
        above = 1 + term / above or NEARLY_NOTHING
        whole *= above * below
        if abs(above * below - 1) < CLOSE:
            break
    return 1 / whole


def t_probability(t: float, freedom: float) -> float:
    """That a t of so many degrees of freedom is at most `t`."""
    tail = beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


def f_probability(f: float, above: float, below: float) -> float:
    """That an F is more than `f`; degrees of freedom of the numerator and of the denominator."""
    if f <= 0:
        return 1.0
    return beta(below / (below + above * f), below / 2, above / 2)


def t_quantile(probability: float, freedom: float) -> float:
    """The t that is not exceeded with this probability (between 0 and 1)."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    return _where(lambda t: t_probability(t, freedom) >= probability)


def f_quantile(probability: float, above: float, below: float) -> float:
    """The F that is not exceeded with this probability (between 0 and 1)."""
    return _where(lambda f: f_probability(f, above, below) <= 1 - probability)


def _where(reached: Callable[[float], bool]) -> float:
    """From where on, above 0, something that grows has been reached."""
    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
