"""Photographs of a painted world: what a camera that turns, or moves above a plane, would see. Nothing of trimlearn."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2")


@cache
def world(h: int = 1000, w: int = 2000, seed: int = 0) -> np.ndarray:
    """A picture of all directions, longitude −π to π by latitude −π/2 to π/2 (down); its right end meets its left."""
    rng = np.random.default_rng(seed)
    a = np.zeros((h, w, 3), np.float32)
    for k in (8, 16, 32, 64, 128, 256, 512):
        cells = rng.uniform(-1, 1, (k // 2, k, 3)).astype(np.float32)
        wide = cv2.resize(np.hstack([cells] * 3), (3 * w, h), interpolation=cv2.INTER_CUBIC)[:, w : 2 * w]
        a += wide * (8 / k) ** 0.4
    for _ in range(6000):
        x, y = int(rng.integers(0, w - 20)), int(rng.integers(0, h - 20))
        r, colour = int(rng.integers(2, 9)), rng.uniform(-3, 3, 3).tolist()
        if rng.random() < 0.5:
            cv2.circle(a, (x, y), r, colour, -1)
        else:
            cv2.rectangle(a, (x, y), (x + r, y + int(rng.integers(2, 9))), colour, -1)
    a = cv2.GaussianBlur(a, (0, 0), 0.7)
    return np.rint(np.clip(128 + 35 * a, 25, 230)).astype(np.uint8)


def look(yaw: float, pitch: float = 0.0, roll: float = 0.0) -> np.ndarray:
    """The rotation, world to camera, of a camera turned right, up and clockwise by so many degrees."""
    (cy, cp, cr), (sy, sp, sr) = np.cos(np.radians([yaw, pitch, roll])), np.sin(np.radians([yaw, pitch, roll]))
    right = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
    up = np.array([[1, 0, 0], [0, cp, sp], [0, -sp, cp]])
    return np.array([[cr, sr, 0], [-sr, cr, 0], [0, 0, 1]]) @ up @ right


def camera(focal: float, size: tuple[int, int]) -> np.ndarray:
    return np.array([[focal, 0, (size[0] - 1) / 2], [0, focal, (size[1] - 1) / 2], [0, 0, 1]])


def photo(R: np.ndarray, focal: float = 260.0, size: tuple[int, int] = (260, 200)) -> np.ndarray:
    """What a camera with rotation R sees of the world."""
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(camera(focal, size)).T @ R
    return paint(np.arctan2(rays[..., 0], rays[..., 2]), np.arctan2(rays[..., 1], np.hypot(rays[..., 0], rays[..., 2])))


def paint(longitude: np.ndarray, latitude: np.ndarray) -> np.ndarray:
    """The colours of the world in these directions."""
    h, w = world().shape[:2]
    u = np.mod(longitude / (2 * np.pi) + 0.5, 1) * w - 0.5 + 4
    v = (latitude / np.pi + 0.5) * h - 0.5
    padded = np.hstack([world()[:, -4:], world(), world()[:, :4]])
    return cv2.remap(padded, u.astype(np.float32), v.astype(np.float32), cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)


def from_above(x: float, y: float, tilt: tuple[float, float], size: tuple[int, int] = (260, 200)) -> np.ndarray:
    """The world as a flat map, seen from above (x, y) by a camera that moves along it, tilted by so many degrees."""
    R = look(0, tilt[1]) @ look(tilt[0])
    to_pixel = camera(260.0, size) @ np.column_stack([R[:, 0], R[:, 1], R @ [-x, -y, 260.0]])
    return cv2.warpPerspective(world(), to_pixel, size, flags=cv2.INTER_CUBIC)


def through(H: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (n, 2) through a homography."""
    u = np.column_stack([points, np.ones(len(points))]) @ H.T
    return u[:, :2] / u[:, 2:]
