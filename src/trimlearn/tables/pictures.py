"""Image files as small arrays, and as pictures for a page."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["small_versions", "thumbnail"]

SIDE = 28  # pixels a side of the small versions, as MNIST has them: 784 columns of grey ones
THUMBNAIL = 96  # pixels a side at most of the pictures on a page


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError('images need OpenCV: pip install "trimlearn[vision]".') from error
    return cv2


def _decoded(path: Path | None) -> NDArray[np.uint8] | None:
    """An image as (h, w, 3) BGR, turned upright; None where it cannot be read."""
    cv2 = _opencv()
    if path is None:
        return None
    try:
        raw = np.fromfile(path, np.uint8)
        image = cv2.imdecode(raw, cv2.IMREAD_COLOR) if raw.size else None
    except (OSError, cv2.error):
        return None
    return None if image is None else np.asarray(image, np.uint8)


def small_versions(
    paths: list[Path | None],
) -> tuple[list[int], NDArray[np.float32], tuple[int, int, int], list[str]]:
    """The rows whose images can be read, their small versions, and notes on the others."""
    cv2 = _opencv()
    kept, small, shapes, unreadable = [], [], set(), []
    for i, path in enumerate(paths):
        image = _decoded(path)
        if image is None:
            unreadable += [path.name] if path is not None else []
            continue
        shapes.add(image.shape)
        kept.append(i)
        fits = max(image.shape[:2]) <= SIDE and len(shapes) == 1
        small.append(image if fits else cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA))
    if len(shapes) > 1:
        small = [image if image.shape[:2] == (SIDE, SIDE) else cv2.resize(image, (SIDE, SIDE)) for image in small]
    notes = []
    if unreadable:
        many = f"{len(unreadable):,} images" if len(unreadable) > 1 else "1 image"
        notes.append(f"{many} could not be read and {_were(unreadable)} left out: {', '.join(unreadable[:10])}.")
    if not small:
        return [], np.zeros((0, 0), np.float32), (0, 0, 0), notes
    stack = np.stack(small)
    if np.array_equal(stack[..., 0], stack[..., 1]) and np.array_equal(stack[..., 1], stack[..., 2]):
        stack = stack[..., :1]
    height, width, channels = stack.shape[1:]
    pixels = stack[..., ::-1].reshape(len(stack), -1).astype(np.float32) / np.float32(255)
    return kept, pixels, (height, width, channels), notes


def _were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


def thumbnail(path: Path | None) -> str:
    cv2 = _opencv()
    image = _decoded(path)
    if image is None:
        return ""
    scale = THUMBNAIL / max(image.shape[:2])
    if scale < 1:
        size = tuple(max(1, round(side * scale)) for side in image.shape[1::-1])
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    done, encoded = cv2.imencode(".png", image)
    return "data:image/png;base64," + base64.b64encode(encoded.tobytes()).decode() if done else ""
