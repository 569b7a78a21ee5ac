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


def phi(z: Any, q: int, i: int, rows: Any, r: Any, to: int) -> float:
    """φᵢ(z); r ← ∇φᵢ(z)."""
    raise NotImplementedError("compiled code only")


def _of(kind: type) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Use the function for rows of this kind."""

    def register(function: Callable[..., float]) -> Callable[..., float]:
        def choose(z: Any, q: Any, i: Any, rows: Any, r: Any, to: Any) -> Callable[..., float] | None:
            named = isinstance(rows, (types.NamedTuple, types.NamedUniTuple))
            return function if named and rows.instance_class is kind else None

        overload(phi, strict=False)(choose)
        return function

    return register


@_of(compiled.SquareRows)
def _square(z, q, i, rows, r, to):
    f = 0.0
    for k in range(z.shape[1]):
        r[to, k] = z[q, k] - rows.t[i, k]
        f += 0.5 * r[to, k] * r[to, k]
    return f


@_of(compiled.HuberRows)
def _huber(z, q, i, rows, r, to):
    f = 0.0
    for k in range(z.shape[1]):
        u = z[q, k] - rows.t[i, k]
        r[to, k] = min(max(u, -rows.delta), rows.delta)
        f += r[to, k] * (u - 0.5 * r[to, k])
    return f


@_of(compiled.StudentRows)
def _student(z, q, i, rows, r, to):
    f = 0.0
    for k in range(z.shape[1]):
        u = (z[q, k] - rows.t[i, k]) / rows.width
        r[to, k] = (rows.nu + 1) / rows.width * u / (1 + u * u)
        f += 0.5 * (rows.nu + 1) * log1p(u * u)
    return f


@_of(compiled.SmoothRows)
def _smooth(z, q, i, rows, r, to):
    f = 0.0
    for k in range(z.shape[1]):
        u = z[q, k] - rows.t[i, k]
        root = sqrt(u * u + rows.eps * rows.eps)
        r[to, k] = u / root
        f += u * (u / (root + rows.eps))
    return f


@_of(compiled.LogisticRows)
def _logistic(z, q, i, rows, r, to):
    t, e = rows.t[i], exp(-abs(z[q, 0]))
    if z[q, 0] >= 0:
        f = log1p(e) + (1 - t) * z[q, 0]
        r[to, 0] = ((1 - t) - t * e) / (1 + e)
    else:
        f = log1p(e) - t * z[q, 0]
        r[to, 0] = ((1 - t) * e - t) / (1 + e)
    return max(f + rows.saturated[i], 0.0)


@register_jitable
def _softmax(z, q, r, to):
    """r ← softmax(z); returns LSE(z)."""
    most = z[q, 0]
    for k in range(1, z.shape[1]):
        most = max(most, z[q, k])
    total = z[q, 0] * 0
    for k in range(z.shape[1]):
        r[to, k] = exp(z[q, k] - most)
        total += r[to, k]
    for k in range(z.shape[1]):
        r[to, k] /= total
    return log(total) + most


@_of(compiled.LabelRows)
def _labels(z, q, i, rows, r, to):
    f = _softmax(z, q, r, to) - z[q, rows.t[i]]
    r[to, rows.t[i]] -= 1
    return f


@_of(compiled.SoftLabelRows)
def _soft_labels(z, q, i, rows, r, to):
    f = _softmax(z, q, r, to) + rows.saturated[i]
    for k in range(z.shape[1]):
        f -= rows.t[i, k] * z[q, k]
        r[to, k] -= rows.t[i, k]
    return max(f, 0.0)


@_of(compiled.MislabelledRows)
def _mislabelled(z, q, i, rows, r, to):
    K = rows.log_T.shape[0]
    row = rows.t[i]
    both = z.shape[1] < K  # one prediction: the log-odds of the second class, the first has 0
    most, most_seen = z[q, 0] * 0 - 1e30, z[q, 0] * 0 - 1e30
    for k in range(K):
        zk = (z[q, 0] if k else z[q, 0] * 0) if both else z[q, k]
        most, most_seen = max(most, zk), max(most_seen, zk + rows.log_T[row, k])
    total, seen = 0.0, 0.0
    for k in range(K):
        zk = (z[q, 0] if k else z[q, 0] * 0) if both else z[q, k]
        total += exp(zk - most)
        seen += exp(zk + rows.log_T[row, k] - most_seen)
    for k in range(1 if both else 0, K):
        zk = z[q, 0] if both else z[q, k]
        r[to, 0 if both else k] = exp(zk - most) / total - exp(zk + rows.log_T[row, k] - most_seen) / seen
    return max(log(total) + most - log(seen) - most_seen, 0.0)


@_of(compiled.CountRows)
def _counts(z, q, i, rows, r, to):
    t, d = rows.t[i], min(z[q, 0] - rows.log_t[i], rows.cap)
    excess = expm1(d)
    if t == 0:
        r[to, 0] = excess + 1
        return max(excess + 1, 0.0) + rows.constant[i]
    r[to, 0] = t * excess
    return max(t * (excess - d), 0.0) + rows.constant[i]


@_of(compiled.AmountRows)
def _amounts(z, q, i, rows, r, to):
    d = max(z[q, 0] - rows.log_t[i], -rows.cap)
    excess = expm1(-d)
    r[to, 0] = -excess
    return max(excess + d, 0.0) + rows.constant[i]


@_of(compiled.SubspaceRows)
def _subspace(z, q, i, rows, r, to):
    f = rows.norms2[i]
    for k in range(z.shape[1]):
        f -= z[q, k] * z[q, k]
        r[to, k] = -z[q, k]
    return 0.5 * f


@_of(compiled.AlgebraicRows)
def _algebraic(z, q, i, rows, r, to):
    b0, b1 = rows.dst[i, 0], rows.dst[i, 1]
    u0, u1 = b0 * z[q, 2] - z[q, 0], b1 * z[q, 2] - z[q, 1]
    r[to, 0], r[to, 1], r[to, 2] = -2 * u0, -2 * u1, 2 * (b0 * u0 + b1 * u1)
    return u0 * u0 + u1 * u1


@_of(compiled.PrintedRows)
def _printed(z, q, i, rows, r, to):
    u0, u1, u2 = z[q, 0] - rows.dst[i, 0], z[q, 1] - rows.dst[i, 1], z[q, 2] - 1
    r[to, 0], r[to, 1], r[to, 2] = 2 * u0, 2 * u1, 2 * u2
    return u0 * u0 + u1 * u1 + u2 * u2
