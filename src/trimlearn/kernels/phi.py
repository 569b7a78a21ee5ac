# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
"""φ and ∇φ of every loss for one row, as numba compiles them: phi(z, i, rows, r) puts ∇φᵢ(z) into r, returns φᵢ(z).

Which φ is meant is the type of ``rows`` (`trimlearn.losses.compiled`). The formulas are those of the losses, and the
tests hold both to one another.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1, log, log1p, sqrt
from typing import Any

from numba import types
from numba.extending import overload, register_jitable

from trimlearn.losses import compiled

__all__ = ["phi"]


def phi(z: Any, i: int, rows: Any, r: Any) -> float:
    """φᵢ(z); r ← ∇φᵢ(z)."""
    raise NotImplementedError("compiled code only")


def _of(kind: type) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Use the function for rows of this kind."""

    def register(function: Callable[..., float]) -> Callable[..., float]:
        def choose(z: Any, i: Any, rows: Any, r: Any) -> Callable[..., float] | None:
            named = isinstance(rows, (types.NamedTuple, types.NamedUniTuple))
            return function if named and rows.instance_class is kind else None

        overload(phi, strict=False)(choose)
        return function

    return register


@_of(compiled.SquareRows)
def _square(z, i, rows, r):
    f = 0.0
    for k in range(z.shape[0]):
        r[k] = z[k] - rows.t[i, k]
        f += 0.5 * r[k] * r[k]
    return f


@_of(compiled.HuberRows)
def _huber(z, i, rows, r):
    f = 0.0
    for k in range(z.shape[0]):
        u = z[k] - rows.t[i, k]
        r[k] = min(max(u, -rows.delta), rows.delta)
        f += r[k] * (u - 0.5 * r[k])
    return f


@_of(compiled.StudentRows)
def _student(z, i, rows, r):
    f = 0.0
    for k in range(z.shape[0]):
        u = (z[k] - rows.t[i, k]) / rows.width
        r[k] = (rows.nu + 1) / rows.width * u / (1 + u * u)
        f += 0.5 * (rows.nu + 1) * log1p(u * u)
    return f


@_of(compiled.SmoothRows)
def _smooth(z, i, rows, r):
    f = 0.0
    for k in range(z.shape[0]):
        u = z[k] - rows.t[i, k]
        root = sqrt(u * u + rows.eps * rows.eps)
        r[k] = u / root
        f += u * (u / (root + rows.eps))
    return f


@_of(compiled.LogisticRows)
def _logistic(z, i, rows, r):
    t, e = rows.t[i], exp(-abs(z[0]))
    if z[0] >= 0:
        f = log1p(e) + (1 - t) * z[0]
        r[0] = ((1 - t) - t * e) / (1 + e)
    else:
        f = log1p(e) - t * z[0]
        r[0] = ((1 - t) * e - t) / (1 + e)
    return max(f + rows.saturated[i], 0.0)


@register_jitable
def _softmax(z, r):
    """r ← softmax(z); returns LSE(z)."""
    most = z[0]
    for k in range(1, z.shape[0]):
        most = max(most, z[k])
    total = z[0] * 0
    for k in range(z.shape[0]):
        r[k] = exp(z[k] - most)
        total += r[k]
    for k in range(z.shape[0]):
        r[k] /= total
    return log(total) + most


@_of(compiled.LabelRows)
def _labels(z, i, rows, r):
    f = _softmax(z, r) - z[rows.t[i]]
    r[rows.t[i]] -= 1
    return f


@_of(compiled.SoftLabelRows)
def _soft_labels(z, i, rows, r):
    f = _softmax(z, r) + rows.saturated[i]
    for k in range(z.shape[0]):
        f -= rows.t[i, k] * z[k]
        r[k] -= rows.t[i, k]
    return max(f, 0.0)


@_of(compiled.MislabelledRows)
def _mislabelled(z, i, rows, r):
    K = rows.log_T.shape[0]
    row = rows.t[i]
    both = z.shape[0] < K  # one prediction: the log-odds of the second class, the first has 0
    most, most_seen = z[0] * 0 - 1e30, z[0] * 0 - 1e30
    for k in range(K):
        zk = (z[0] if k else z[0] * 0) if both else z[k]
        most, most_seen = max(most, zk), max(most_seen, zk + rows.log_T[row, k])
    total, seen = 0.0, 0.0
    for k in range(K):
        zk = (z[0] if k else z[0] * 0) if both else z[k]
        total += exp(zk - most)
        seen += exp(zk + rows.log_T[row, k] - most_seen)
    for k in range(1 if both else 0, K):
        zk = z[0] if both else z[k]
        r[0 if both else k] = exp(zk - most) / total - exp(zk + rows.log_T[row, k] - most_seen) / seen
    return max(log(total) + most - log(seen) - most_seen, 0.0)


@_of(compiled.CountRows)
def _counts(z, i, rows, r):
    t, d = rows.t[i], min(z[0] - rows.log_t[i], rows.cap)
    excess = expm1(d)
    if t == 0:
        r[0] = excess + 1
        return max(excess + 1, 0.0) + rows.constant[i]
    r[0] = t * excess
    return max(t * (excess - d), 0.0) + rows.constant[i]


@_of(compiled.AmountRows)
def _amounts(z, i, rows, r):
    d = max(z[0] - rows.log_t[i], -rows.cap)
    excess = expm1(-d)
    r[0] = -excess
    return max(excess + d, 0.0) + rows.constant[i]


@_of(compiled.SubspaceRows)
def _subspace(z, i, rows, r):
    f = rows.norms2[i]
    for k in range(z.shape[0]):
        f -= z[k] * z[k]
        r[k] = -z[k]
    return 0.5 * f


@_of(compiled.AlgebraicRows)
def _algebraic(z, i, rows, r):
    b0, b1 = rows.dst[i, 0], rows.dst[i, 1]
    u0, u1 = b0 * z[2] - z[0], b1 * z[2] - z[1]
    r[0], r[1], r[2] = -2 * u0, -2 * u1, 2 * (b0 * u0 + b1 * u1)
    return u0 * u0 + u1 * u1


@_of(compiled.PrintedRows)
def _printed(z, i, rows, r):
    u0, u1, u2 = z[0] - rows.dst[i, 0], z[1] - rows.dst[i, 1], z[2] - 1
    r[0], r[1], r[2] = 2 * u0, 2 * u1, 2 * u2
    return u0 * u0 + u1 * u1 + u2 * u2
