# mypy: ignore-errors
"""φ, its gradient and its curvature for each loss, as functions of the predictions of some rows.

`Phi` of `trimlearn.engines.cuda.phis` names the function; `trimlearn.losses.compiled` says what its numbers are.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, libdevice, tl


@jit
def _softmax(z):
    """softmax(z) by rows, log Σ exp."""
    most = tl.max(z, 1)
    e = tl.exp(z - most[:, None])
    total = tl.sum(e, 1)
    return e / total[:, None], libdevice.log(total) + most


@jit
def _not_below(a, least):
    """The larger one; NaN stays NaN."""
    return tl.maximum(a, least, propagate_nan=tl.PropagateNan.ALL)


@jit
def phi(z, rows, inside, T, A, a, b, K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr):
    """φᵢ(zᵢ) and ∇φᵢ(zᵢ), which is 0 in the columns beyond K."""
    k = tl.arange(0, KP)
    there = (k < K)[None, :]
    at = rows[:, None] * K + k[None, :]
    both = inside[:, None] & there
    if PHI == "labels":
        p, lse = _softmax(tl.where(there, z, float("-inf")))
        hit = k[None, :] == tl.load(T + rows, mask=inside, other=0)[:, None]
        f, r = lse - tl.sum(tl.where(hit, z, 0.0), 1), p - tl.where(hit, 1.0, 0.0)
    elif PHI == "soft":
        p, lse = _softmax(tl.where(there, z, float("-inf")))
        t = tl.load(T + at, mask=both, other=0.0)
        f = lse - tl.sum(t * tl.where(there, z, 0.0), 1) + tl.load(A + rows, mask=inside, other=0.0)
        f, r = _not_below(f, 0.0), p - t
    elif PHI == "mislabelled":
        p, lse = _softmax(tl.where(there, z, float("-inf")))
        t = tl.load(T + rows, mask=inside, other=0)
        shift = tl.load(A + t[:, None] * K + k[None, :], mask=both, other=0.0)
        q, seen = _softmax(tl.where(there, z + shift, float("-inf")))
        f, r = _not_below(lse - seen, 0.0), p - q
    else:
        t = tl.load(T + at, mask=both, other=0.0)
        u = z - t
        if PHI == "squares":
            each, r = 0.5 * u * u, u
        elif PHI == "huber":
            r = -_not_below(-_not_below(u, -a), -a)
            each = r * (u - 0.5 * r)
        elif PHI == "student":
            u = u / b
            each, r = 0.5 * (a + 1) * libdevice.log1p(u * u), (a + 1) / b * u / (1 + u * u)
        elif PHI == "smooth":
            root = tl.sqrt(u * u + a * a)
            each, r = u * (u / (root + a)), u / root
        elif PHI == "logistic":
            e = tl.exp(-tl.abs(z))
            each = libdevice.log1p(e) + tl.where(z >= 0, (1 - t) * z, -t * z)
            each = _not_below(each + tl.load(A + at, mask=both, other=0.0), 0.0)
            r = tl.where(z >= 0, (1 - t) - t * e, (1 - t) * e - t) / (1 + e)
        else:
            tl.static_assert(PHI == "counts" or PHI == "amounts")
            d = z - tl.load(A + at * 2, mask=both, other=0.0)
            if PHI == "counts":
                d = -_not_below(-d, -a)
                excess = libdevice.expm1(d)
                each, r = tl.where(t == 0, excess + 1, t * (excess - d)), tl.where(t == 0, excess + 1, t * excess)
            else:
                d = _not_below(d, -a)
                excess = libdevice.expm1(-d)
                each, r = excess + d, -excess
            each = _not_below(each, 0.0) + tl.load(A + at * 2 + 1, mask=both, other=0.0)
        f, r = tl.sum(tl.where(there, each, 0.0), 1), tl.where(there, r, 0.0)
    return f, r


@jit
def phi_hessp(z, u, rows, inside, T, A, a, b, K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr):
    """∇²φᵢ(zᵢ)uᵢ, 0 in the columns beyond K; robust losses have that of a parabola above φ: see that of each loss."""
    there = (tl.arange(0, KP) < K)[None, :]
    if PHI == "labels" or PHI == "soft" or PHI == "mislabelled":
        p, _ = _softmax(tl.where(there, z, float("-inf")))
        d = p * tl.where(there, u, 0.0)
        d -= p * tl.sum(d, 1)[:, None]
    else:
        at = rows[:, None] * K + tl.arange(0, KP)[None, :]
        t = tl.load(T + at, mask=inside[:, None] & there, other=0.0)
        if PHI == "squares":
            d = u
        elif PHI == "huber":
            d = u * tl.minimum(1.0, a / tl.abs(z - t))
        elif PHI == "student":
            d = u * (a + 1) / (b * b) / (1 + (z - t) / b * ((z - t) / b))
        elif PHI == "smooth":
            d = u / tl.sqrt((z - t) * (z - t) + a * a)
        else:
            _, r = phi(z, rows, inside, T, A, a, b, K, KP, PHI)
            if PHI == "logistic":
                d = u * (r + t) * (1 - r - t)
            elif PHI == "counts":
                d = u * (r + t)
            else:
                d = u * (1 - r)
        d = tl.where(there, d, 0.0)
    return d
