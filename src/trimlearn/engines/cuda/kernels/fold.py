# mypy: ignore-errors
"""A model made ready for many rows: columns in the units of V, and split in two where products are in bfloat16."""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl
from trimlearn.engines.cuda.kernels.tile import split


@jit
def fold_kernel(
    X, center, scale, folded, base, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr,
    INTERCEPT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program k: column k of ``folded`` (p, KP), with EXACT two of (p, 2 KP), and ``base[k]``, so that the predictions
    are V·folded + base."""
    k = tl.program_id(0)
    off = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, p, BLOCK):
        j = first + tl.arange(0, BLOCK)
        here = (j < p) & (k < K)
        W = tl.load(X + k * PX + j, mask=here, other=0.0)
        if SCALE:
            W = W / tl.load(scale + j, mask=here, other=1.0)
        if CENTER:
            off += W * tl.load(center + j, mask=here, other=0.0)
        if EXACT:
            high, low = split(W)
            tl.store(folded + j * (2 * KP) + k, high, mask=j < p)
            tl.store(folded + j * (2 * KP) + KP + k, low, mask=j < p)
        else:
            tl.store(folded + j * KP + k, W, mask=j < p)
    bottom = -tl.sum(off, 0)
    if INTERCEPT:
        bottom += tl.load(X + k * PX + p, mask=k < K, other=0.0)
    tl.store(base + k, bottom)
