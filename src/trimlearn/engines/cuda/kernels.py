# mypy: ignore-errors
"""The fused step on a GPU: every row is read once, predict, residual and gradient in one kernel; a second one sums.

The partial sums lie in scratch memory and are added in a fixed order: the same bits on every run. `Phi` names the
function of a loss; `trimlearn.losses.compiled` says what its numbers are. Products with data that bfloat16 holds
exactly are made in bfloat16, the other factor split into two of them: it keeps 17 bits, and rounding is that of sums in
float32. Others are made of three products in TF32 that are as precise as float32. Totals are in float64.
"""

from __future__ import annotations

try:
    import triton.language as tl
    from triton import jit
    from triton.language.extra import libdevice
except ModuleNotFoundError:  # nobody calls them then: `trimlearn.engines.cuda.fused` asks first

    def jit(function):
        """The function as it is."""
        return function


__all__ = ["draw_kernel", "moments_kernel", "move_kernel", "rows_kernel"]


@jit
def _split(a):
    """Two bfloat16 numbers that add up to ``a``, to 17 bits."""
    high = a.to(tl.bfloat16)
    return high, (a - high.to(tl.float32)).to(tl.bfloat16)


@jit
def _times(a, b, c):
    """a b + c, as precise as float32."""
    return tl.dot(a, b, c, input_precision="tf32x3")


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
def _phi(z, rows, inside, T, A, a, b, K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr):
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
def _bend(z, u, rows, inside, T, A, a, b, K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr):
    """∇²φᵢ(zᵢ)uᵢ, 0 in the columns beyond K; robust losses have that of a parabola above φ: see `phi_hessp` of each."""
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
            _, r = _phi(z, rows, inside, T, A, a, b, K, KP, PHI)
            if PHI == "logistic":
                d = u * (r + t) * (1 - r - t)
            elif PHI == "counts":
                d = u * (r + t)
            else:
                d = u * (1 - r)
        d = tl.where(there, d, 0.0)
    return d


@jit
def _predict(
    Z, off, v, J, X, center, scale, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Z (BM, KP) and what is to be taken off it, with the columns J of v (BM, BP) added."""
    k = tl.arange(0, KP)
    W = tl.load(X + k[None, :] * PX + J[:, None], mask=(J < p)[:, None] & (k < K)[None, :], other=0.0)
    if SCALE:
        W = W / tl.load(scale + J, mask=J < p, other=1.0)[:, None]
    if EXACT:
        high, low = _split(W)
        b = v.to(tl.bfloat16)
        Z = _times(b, low, _times(b, high, Z))
    else:
        Z = _times(v.to(tl.float32), W, Z)
    if CENTER:
        off += tl.sum(W * tl.load(center + J, mask=J < p, other=0.0)[:, None], 0)
    return Z, off


@jit
def _predict_slices(
    v, J, X, center, scale, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """What the columns J of v (S, BM, BP) add to the predictions (BM, KP)."""
    k = tl.arange(0, KP)
    W = tl.load(X + k[None, None, :] * PX + J[:, :, None], mask=(J < p)[:, :, None] & (k < K)[None, None, :], other=0.0)
    if SCALE:
        W = W / tl.load(scale + J, mask=J < p, other=1.0)[:, :, None]
    if EXACT:
        high, low = _split(W)
        b = v.to(tl.bfloat16)
        Z = tl.sum(tl.dot(b, high) + tl.dot(b, low), 0)
    else:
        Z = tl.sum(tl.dot(v.to(tl.float32), W, input_precision="tf32x3"), 0)
    if CENTER:
        Z -= tl.sum(tl.sum(W * tl.load(center + J, mask=J < p, other=0.0)[:, :, None], 1), 0)[None, :]
    return Z


@jit
def _times_slices(spread, v, EXACT: tl.constexpr):
    """spread·v, (S, KP, BP)."""
    if EXACT:
        high, low = _split(spread)
        b = v.to(tl.bfloat16)
        G = tl.dot(high, b) + tl.dot(low, b)
    else:
        G = tl.dot(spread, v.to(tl.float32), input_precision="tf32x3")
    return G


@jit
def rows_kernel(
    V, X, U, center, scale,  # the data (n, p), model and direction (K, PX), intercepts in column p; the transform
    T, A, a, b,  # what φ knows of each row
    table, C, F,  # residuals (n, K), what each row counts (n,), losses (n,)
    rows_of, notes, factor,  # rows drawn (steps, m); see `Steps.notes`; what C is multiplied by in each step
    stamps, tag,  # when each row was drawn last (n,), and now
    parts, sums,  # Σ c d vᵀ (NP, K, PX) and Σ c d (NP, KP) of each program's rows
    m, p, PX, tiles, NP,
    K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr, EXACT: tl.constexpr, INTERCEPT: tl.constexpr,
    CENTER: tl.constexpr, SCALE: tl.constexpr, DRAWN: tl.constexpr, TABLE: tl.constexpr,
    BM: tl.constexpr, BP: tl.constexpr, S: tl.constexpr, AGAIN: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """One program's share of Σ cᵢ Aᵢᵀ dᵢ, over rows that were DRAWN or over all m of them.

    TABLE "subtract": d = ∇φ(z) − table; "write": table ← d = ∇φ(z), F ← φ(z); "read": d = table, without predictions;
    "curve": d = ∇²φ(z)u. Rows are read twice, the second time from the cache. With S > 1 the columns lie in S slices
    of BP, one or more for each warp, so that no warp waits for another's: for few rows at a time. AGAIN: a program has
    several tiles of rows, and its sums begin at 0 in memory.
    """
    pid = tl.program_id(0)
    k = tl.arange(0, KP)
    flat = tl.arange(0, BP)
    slices = tl.arange(0, S)[:, None] * BP + flat[None, :]
    for tile in range(pid, tiles, NP):
        i = tile * BM + tl.arange(0, BM)
        inside = i < m
        if DRAWN:
            step = tl.load(notes)
            rows = tl.load(rows_of + step.to(tl.int64) * m + i, mask=inside, other=0).to(tl.int64)
            c = tl.load(C + rows, mask=inside, other=0.0) * tl.load(factor + step)
        else:
            rows = i.to(tl.int64)
            c = tl.load(C + rows, mask=inside, other=0.0)
        if TABLE != "write":
            inside = inside & (c != 0)
        if TABLE == "subtract":  # of a row that is drawn twice, one is told that it is the first
            now = tl.load(tag)
            new = tl.atomic_xchg(stamps + rows, tl.zeros((BM,), tl.int32) + now, mask=inside) != now
            tl.atomic_add(notes + 1, tl.sum((inside & new).to(tl.int32), 0))
            tl.atomic_add(notes + 2, tl.sum(inside.to(tl.int32), 0))
        cell = table + rows[:, None] * K + k[None, :]
        known = inside[:, None] & (k < K)[None, :]
        if TABLE == "read" or TABLE == "subtract":
            d = tl.load(cell, mask=known, other=0.0)
        if TABLE != "read":
            z = tl.zeros((BM, KP), tl.float32)
            u = tl.zeros((BM, KP), tl.float32)
            if S == 1:
                off = tl.zeros((KP,), tl.float32)
                u_off = tl.zeros((KP,), tl.float32)
                for first in tl.range(0, p, BP, num_stages=STAGES):
                    J = first + flat
                    v = tl.load(V + rows[:, None] * p + J[None, :], mask=inside[:, None] & (J < p)[None, :], other=0)
                    z, off = _predict(z, off, v, J, X, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                    if TABLE == "curve":
                        u, u_off = _predict(u, u_off, v, J, U, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                z -= off[None, :]
                u -= u_off[None, :]
            else:
                for first in range(0, p, S * BP):
                    J = first + slices
                    there = inside[None, :, None] & (J < p)[:, None, :]
                    v = tl.load(V + rows[None, :, None] * p + J[:, None, :], mask=there, other=0)
                    z += _predict_slices(v, J, X, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                    if TABLE == "curve":
                        u += _predict_slices(v, J, U, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
            if INTERCEPT:
                z += tl.load(X + k * PX + p, mask=k < K, other=0.0)[None, :]
                u += tl.load(U + k * PX + p, mask=k < K, other=0.0)[None, :]
            if TABLE == "curve":
                d = _bend(z, u, rows, inside, T, A, a, b, K, KP, PHI)
            else:
                f, r = _phi(z, rows, inside, T, A, a, b, K, KP, PHI)
                if TABLE == "subtract":
                    d = r - d
                else:
                    d = r
                    tl.store(cell, d, mask=known)
                    tl.store(F + rows, f, mask=inside)
        d = tl.where((c != 0)[:, None] & inside[:, None], d * c[:, None], 0.0)
        total = tl.sum(d, 0)
        if AGAIN:
            total += tl.load(sums + pid * KP + k)
        tl.store(sums + pid * KP + k, total)
        d = tl.trans(d)
        if S == 1:
            high, low = _split(d)
            for first in tl.range(0, p, BP, num_stages=STAGES):
                J = first + flat
                v = tl.load(V + rows[:, None] * p + J[None, :], mask=inside[:, None] & (J < p)[None, :], other=0)
                to = parts + (pid * K + k[:, None]) * PX + J[None, :]
                here = (k < K)[:, None] & (J < p)[None, :]
                if AGAIN:
                    G = tl.load(to, mask=here, other=0.0)
                else:
                    G = tl.zeros((KP, BP), tl.float32)
                if EXACT:
                    w = v.to(tl.bfloat16)
                    G = _times(low, w, _times(high, w, G))
                else:
                    G = _times(d, v.to(tl.float32), G)
                tl.store(to, G, mask=here)
        else:
            spread = tl.broadcast_to(d[None, :, :], (S, KP, BM))
            for first in range(0, p, S * BP):
                J = first + slices
                there = inside[None, :, None] & (J < p)[:, None, :]
                v = tl.load(V + rows[None, :, None] * p + J[:, None, :], mask=there, other=0)
                G = _times_slices(spread, v, EXACT)
                to = parts + (pid * K + k[None, :, None]) * PX + J[:, None, :]
                here = (k < K)[None, :, None] & (J < p)[:, None, :]
                if AGAIN:
                    G += tl.load(to, mask=here, other=0.0)
                tl.store(to, G, mask=here)


@jit
def move_kernel(
    parts, sums, center, scale, gradient,  # of `rows_kernel`; where Σ Aᵢᵀ dᵢ goes, (K, PX), where nothing moves
    X, before, mean, inverse, l1, l2, gamma, momentum,  # x, the one before, mean of y; the diagonal of M⁻¹; r2; steps
    notes, tag,  # of `rows_kernel`
    p, PX, NP,
    KP: tl.constexpr, INTERCEPT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr, MOVE: tl.constexpr,
    BN: tl.constexpr, BJ: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The programs' sums added up; with MOVE then, in float64, x ← prox of x + momentum·(x − before) − γ M⁻¹ g."""
    k, block = tl.program_id(1), tl.program_id(0)
    j = block * BJ + tl.arange(0, BJ)
    n = tl.arange(0, BN)
    total = tl.zeros((BJ,), tl.float64)
    through = tl.zeros((BN,), tl.float64)
    for first in range(0, NP, BN):
        part = first + n
        some = tl.load(
            parts + (part[:, None] * K + k) * PX + j[None, :], mask=(part < NP)[:, None] & (j < p)[None, :], other=0.0
        )
        total += tl.sum(some.to(tl.float64), 0)
        through += tl.load(sums + part * KP + k, mask=part < NP, other=0.0).to(tl.float64)
    column = tl.sum(through, 0)
    if CENTER:
        total -= column * tl.load(center + j, mask=j < p, other=0.0)
    if SCALE:
        total /= tl.load(scale + j, mask=j < p, other=1.0)
    size = p
    if INTERCEPT:
        total = tl.where(j == p, column, total)
        size = p + 1
    here, there = j < size, k * PX + j
    if not MOVE:
        tl.store(gradient + there, total.to(tl.float32), mask=here)
    else:
        x = tl.load(X + there, mask=here, other=0.0)
        old = tl.load(before + there, mask=here, other=0.0)
        g = tl.load(mean + there, mask=here, other=0.0) + total.to(tl.float32)
        ahead = x + tl.load(momentum) * (x - old)
        step = tl.load(gamma) * tl.load(inverse + j, mask=here, other=0.0)
        wide = ahead.to(tl.float64) - step * g.to(tl.float64)
        level = step * tl.load(l1 + there, mask=here, other=0.0)
        shrunk = tl.where(wide > level, wide - level, tl.where(wide < -level, wide + level, wide * 0.0))
        new = shrunk / (1.0 + step * tl.load(l2 + there, mask=here, other=0.0))
        tl.store(before + there, x, mask=here)
        tl.store(X + there, new.to(tl.float32), mask=here)
        spoilt = tl.sum(tl.where(here & ~(tl.abs(g) < float("inf")), 1, 0), 0)
        if spoilt > 0:
            tl.store(notes + 3, 1)
        if block + k == 0:
            tl.store(notes, tl.load(notes) + 1)
            tl.store(tag, tl.load(tag) + 1)


@jit
def moments_kernel(
    V, C, center, unit, second, fourth, n, p, PX, per,
    CENTER: tl.constexpr, BM: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """Σ cᵢqᵢⱼ² and Σ cᵢqᵢⱼ⁴ over ``per`` rows, q = (v − center)·unit, into a row of ``second`` and ``fourth``."""
    part = tl.program_id(0)
    j = tl.program_id(1) * BP + tl.arange(0, BP)
    length = tl.load(unit + j, mask=j < p, other=0.0)
    middle = tl.zeros((BP,), tl.float32)
    if CENTER:
        middle = tl.load(center + j, mask=j < p, other=0.0)
    squares = tl.zeros((BP,), tl.float32)
    fourths = tl.zeros((BP,), tl.float32)
    begin = part.to(tl.int64) * per
    for first in range(0, per, BM):
        i = begin + first + tl.arange(0, BM)
        inside = (i < n) & (first + tl.arange(0, BM) < per)
        c = tl.load(C + i, mask=inside, other=0.0)
        there = (inside & (c != 0))[:, None] & (j < p)[None, :]
        q = (tl.load(V + i[:, None] * p + j[None, :], mask=there, other=0).to(tl.float32) - middle) * length
        q = q * q
        squares += tl.sum(c[:, None] * q, 0)
        fourths += tl.sum(c[:, None] * q * q, 0)
    tl.store(second + part * PX + j, squares, mask=j < p)
    tl.store(fourth + part * PX + j, fourths, mask=j < p)


@jit
def draw_kernel(words, out, n, b, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """The uniforms of iterations k, k + 1, …, as NumPy's Philox(key=seed, counter=(stream << 128) + (k << 64)) gives
    them after those to skip; ``words``: seed, k, stream, skip. With ROWS as row numbers ⌊u n⌋."""
    k = tl.program_id(0)
    skip = tl.load(words + 3)
    block = skip // 4 + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    none = tl.zeros((BLOCK,), tl.uint64)
    c0 = (block + 1).to(tl.uint64)
    c1 = none + (tl.load(words + 1) + k).to(tl.uint64)
    c2 = none + tl.load(words + 2).to(tl.uint64)
    c3 = none
    k0 = none + tl.load(words).to(tl.uint64)
    k1 = none
    m0 = tl.full((BLOCK,), 0xD2E7470EE14C6C93, tl.uint64)
    m1 = tl.full((BLOCK,), 0xCA5A826395121157, tl.uint64)
    w0 = tl.full((BLOCK,), 0x9E3779B97F4A7C15, tl.uint64)
    w1 = tl.full((BLOCK,), 0xBB67AE8584CAA73B, tl.uint64)
    for _ in tl.static_range(10):
        h0, l0 = tl.umulhi(m0, c0), m0 * c0
        h1, l1 = tl.umulhi(m1, c2), m1 * c2
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0 += w0
        k1 += w1
    for word in tl.static_range(4):
        if word == 0:
            bits = c0
        elif word == 1:
            bits = c1
        elif word == 2:
            bits = c2
        else:
            bits = c3
        u = (bits >> 11).to(tl.float64) * (1.0 / 9007199254740992.0)
        i = block * 4 + word - skip
        to = out + k.to(tl.int64) * b + i
        if ROWS:
            row = (u * n.to(tl.float64)).to(tl.int64)
            tl.store(to, tl.minimum(row, n - 1).to(tl.int32), mask=(i >= 0) & (i < b))
        else:
            tl.store(to, u, mask=(i >= 0) & (i < b))
