"""The coins of many iterations at once: how many x-steps lie ahead of the next w-step."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.move_laws import Coin

# Philox 4x64 with 10 rounds: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011), table 2.
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)  # of its rounds (ibid.)
BUMPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # of its keys: the golden ratio and √3 − 1 (ibid.)
ROUNDS = 10  # (ibid.)
TOSSED = 2048  # at a time: those of ten stretches over 10⁷ rows, or of 50 of MNIST, in a millisecond
HALF = np.uint64(32)  # bits of half a word
LOW = np.uint64(0xFFFFFFFF)  # the lower half

Words = NDArray[np.uint64]


def tails_ahead(run: Algorithm1, k: int, most: int) -> int:
    """How many iterations from k on are x-steps, up to ``most``."""
    assert isinstance(run.j, Coin), "others are left to Algorithm 1"
    found = 0
    while found < most:
        block, begin = divmod(k + found, TOSSED)
        left = _w_steps(run.seed, run.j.chance, run.j.restart, block)[begin:]
        if left.any():
            return min(most, found + int(np.argmax(left)))
        found += len(left)
    return most


@lru_cache(maxsize=2)
def _w_steps(seed: int, q: float, restart: int | None, block: int) -> NDArray[np.bool_]:
    """Which iterations of a block of them are w-steps."""
    first = block * TOSSED
    heads = first_uniforms(seed, first, TOSSED) < q
    if restart is not None:
        heads |= (np.arange(first, first + TOSSED) + 1) % restart == 0
    return heads


def first_uniforms(seed: int, first: int, count: int) -> NDArray[np.float64]:
    """What `Draws(seed, k, n).uniform()` gives first, for ``count`` iterations k from ``first``.

    >>> import numpy as np
    >>> from trimlearn.smart.row_laws import Draws
    >>> bool(np.all(first_uniforms(7, 100, 3) == [Draws(7, k, 10).uniform() for k in (100, 101, 102)]))
    True
    """
    zero = np.zeros(count, dtype=np.uint64)
    c = [zero + np.uint64(1), np.arange(first, first + count, dtype=np.uint64), zero, zero]
    key = [seed, 0]
    for _ in range(ROUNDS):
        (high0, low0), (high1, low1) = _product(MULTIPLIERS[0], c[0]), _product(MULTIPLIERS[1], c[2])
        c = [high1 ^ c[1] ^ np.uint64(key[0]), low1, high0 ^ c[3] ^ np.uint64(key[1]), low0]
        key = [(k + bump) % (1 << 64) for k, bump in zip(key, BUMPS, strict=True)]
    return np.asarray((c[0] >> np.uint64(11)) * (1.0 / (1 << 53)))


def _product(m: int, c: Words) -> tuple[Words, Words]:
    """The upper and the lower word of m·c."""
    a, b = np.uint64(m >> 32), np.uint64(m & 0xFFFFFFFF)
    high, low = c >> HALF, c & LOW
    middle, other = a * low, b * high
    carry = ((b * low) >> HALF) + (middle & LOW) + (other & LOW)
    return a * high + (middle >> HALF) + (other >> HALF) + (carry >> HALF), np.uint64(m) * c
