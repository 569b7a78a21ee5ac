# mypy: ignore-errors
"""The random numbers of NumPy's Philox, drawn on the device."""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl


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
