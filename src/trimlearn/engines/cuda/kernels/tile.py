# mypy: ignore-errors
"""What a kernel does with a tile of rows, whichever way it goes over their columns.

TABLE says what the d in Σ cᵢ Aᵢᵀ dᵢ is. "subtract": ∇φ(z) − table; "write": ∇φ(z), and table ← d, F ← φ(z);
"predict": the same, without the sum; "read": the table, without predictions; "curve": ∇²φ(z)u.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl
from trimlearn.engines.cuda.kernels.losses import phi, phi_hessp


@jit
def split(a):
    """Two bfloat16 numbers that add up to ``a``, to 17 bits."""
    high = a.to(tl.bfloat16)
    return high, (a - high.to(tl.float32)).to(tl.bfloat16)


@jit
def chosen(first, end, C, rows_of, notes, factor, m, DRAWN: tl.constexpr, BM: tl.constexpr):
    """Rows ``first``, … of m, which of them come before ``end``, and what each counts."""
    i = first + tl.arange(0, BM)
    inside = i < end
    if DRAWN:
        step = tl.load(notes)
        rows = tl.load(rows_of + step.to(tl.int64) * m + i, mask=inside, other=0).to(tl.int64)
        c = tl.load(C + rows, mask=inside, other=0.0) * tl.load(factor + step)
    else:
        rows = i.to(tl.int64)
        c = tl.load(C + rows, mask=inside, other=0.0)
    return rows, inside, c


@jit
def count_draws(rows, alive, notes, stamps, tag, BM: tl.constexpr):
    """How many draws count, and how many rows: of a row that is drawn twice, one is told that it is the first."""
    now = tl.load(tag)
    new = tl.atomic_xchg(stamps + rows, tl.zeros((BM,), tl.int32) + now, mask=alive) != now
    tl.atomic_add(notes + 1, tl.sum((alive & new).to(tl.int32), 0))
    tl.atomic_add(notes + 2, tl.sum(alive.to(tl.int32), 0))


@jit
def remembered(table, rows, inside, K: tl.constexpr, KP: tl.constexpr):
    """The table's rows, 0 in the columns beyond K."""
    k = tl.arange(0, KP)
    return tl.load(table + rows[:, None] * K + k[None, :], mask=inside[:, None] & (k < K)[None, :], other=0.0)


@jit
def differences(
    z, u, old, rows, inside, T, A, a, b, table, F,
    K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr, TABLE: tl.constexpr,
):  # fmt: skip
    """d of each row with predictions z, and u those of a direction; ``old`` is its row of the table."""
    if TABLE == "curve":
        d = phi_hessp(z, u, rows, inside, T, A, a, b, K, KP, PHI)
    else:
        f, d = phi(z, rows, inside, T, A, a, b, K, KP, PHI)
        if TABLE == "subtract":
            d -= old
        else:
            k = tl.arange(0, KP)
            tl.store(table + rows[:, None] * K + k[None, :], d, mask=inside[:, None] & (k < K)[None, :])
            tl.store(F + rows, f, mask=inside)
    return d
