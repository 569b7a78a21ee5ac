"""Synthetic panoramas: cameras that turn, and matches between what they see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimlearn.geometry.panorama.rotations import rotation_and_jacobian

SIZE = (640, 480)


@dataclass
class Ring:
    """m cameras that look around: rotations (m, 3, 3) world to camera, focals (m,), and (i, j, src, dst) per pair.

    ``right`` says, pair after pair, which matches are right.
    """

    rotations: np.ndarray
    focals: np.ndarray
    correspondences: list[tuple[int, int, np.ndarray, np.ndarray]]
    right: np.ndarray

    @property
    def sizes(self) -> list[tuple[int, int]]:
        return [SIZE] * len(self.focals)

    def homography(self, i: int, j: int) -> np.ndarray:
        """Pixel of i to pixel of j."""
        K = [np.array([[f, 0, (SIZE[0] - 1) / 2], [0, f, (SIZE[1] - 1) / 2], [0, 0, 1]]) for f in self.focals]
        return K[j] @ self.rotations[j] @ self.rotations[i].T @ np.linalg.inv(K[i])

    def turns(self) -> np.ndarray:
        """Rotations relative to the first camera."""
        return self.rotations @ self.rotations[0].T


def seen(H: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points seen through H, and which of them fall into the other image."""
    u = np.column_stack([points, np.ones(len(points))]) @ H.T
    there = u[:, :2] / u[:, 2:]
    return there, (u[:, 2] > 0) & np.all((there >= 0) & (there <= np.array(SIZE) - 1), axis=1)


def ring(
    m: int = 12,
    step: float = 30.0,
    matches: int = 150,
    wrong: float = 0.4,
    noise: float = 0.5,
    focal: float = 600.0,
    spread: float = 0.0,
    closed: bool = True,
    tilt: float = 3.0,
    barrel: float = 0.0,
    false_pairs: tuple[tuple[int, int], ...] = (),
    false_matches: int | None = None,
    seed: int = 0,
) -> Ring:
    """m cameras ``step`` degrees apart, neighbours matched (the last with the first if ``closed``).

    Of each pair a share ``wrong`` is random; a pair of ``false_pairs`` has matches that agree among themselves, on
    a shift that is not there. noise in px; ``spread`` of the log focal lengths; tilts are random, in degrees.
    ``barrel`` is by what share the lens draws in a point 400 px from the centre.
    """
    rng = np.random.default_rng(seed)
    angles = np.radians(step) * np.arange(m)
    up = np.column_stack([np.zeros(m), -angles, np.zeros(m)])
    small = np.radians(tilt) * rng.standard_normal((m, 3))
    rotations = rotation_and_jacobian(small)[0] @ rotation_and_jacobian(up)[0]
    found = Ring(rotations, focal * np.exp(spread * rng.standard_normal(m)), [], np.zeros(0, bool))
    neighbours = [(k, k + 1) for k in range(m - 1)] + ([(m - 1, 0)] if closed else [])
    for i, j in neighbours:
        _add(found, i, j, found.homography(i, j), matches, wrong, noise, rng, real=True)
    for i, j in false_pairs:
        shift = np.array([[1, 0, rng.uniform(150, 250)], [0, 1, rng.uniform(-50, 50)], [0, 0, 1.0]])
        _add(found, i, j, shift, false_matches or matches, wrong, noise, rng, real=False)
    found.correspondences = [(i, j, bent(src, barrel), bent(dst, barrel)) for i, j, src, dst in found.correspondences]
    return found


def bent(points: np.ndarray, barrel: float) -> np.ndarray:
    """The points through a lens: p with p(1 + barrel ‖p‖²/400²) where they were, from the centre."""
    straight = points - (np.array(SIZE) - 1) / 2
    p = straight
    for _ in range(20):
        p = straight / (1 + barrel * np.sum(p**2, axis=1, keepdims=True) / 400**2)
    return p + (np.array(SIZE) - 1) / 2


def _add(
    found: Ring, i: int, j: int, H: np.ndarray, n: int, wrong: float, noise: float, rng: np.random.Generator, real: bool
) -> None:
    points = rng.uniform(0, np.array(SIZE) - 1.0, (200 * n, 2))
    there, inside = seen(H, points)
    src, dst = points[inside][:n], there[inside][:n]
    dst = dst + noise * rng.standard_normal(dst.shape)
    off = rng.random(len(src)) < wrong
    dst[off] = rng.uniform(0, np.array(SIZE) - 1.0, (int(off.sum()), 2))
    found.correspondences.append((i, j, src, dst))
    found.right = np.concatenate([found.right, ~off & real])
