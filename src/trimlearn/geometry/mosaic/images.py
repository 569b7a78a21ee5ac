"""Images as they come (a path, an array; grey, colour, with alpha, 8 or 16 bits) made one thing: RGB."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SMALLEST",
    "Deep",
    "ImageLike",
    "Pixels",
    "eight_bits",
    "full",
    "grey",
    "name_of",
    "opencv",
    "read_deep",
    "read_image",
    "sixteen_bits",
]

Pixels: TypeAlias = NDArray[np.uint8]
Deep: TypeAlias = NDArray[np.unsignedinteger[Any]]  # uint8 or uint16
ImageLike: TypeAlias = "str | os.PathLike[str] | NDArray[Any]"

JPEG = b"\xff\xd8"  # how such a file begins (ISO/IEC 10918-1, SOI): it has no alpha to look for
# In a scan 00 is a byte FF, D0 to D7 are restarts (ibid., B.1).
JPEG_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")
SCAN, END = 0xDA, 0xD9  # markers of a scan and of the end of an image (ibid., table B.1)
PNG, PNG_END = b"\x89PNG", b"IEND"  # how a PNG begins, and the name of its last chunk (ISO/IEC 15948, 5.2, 11.2.5)
SMALLEST = 32  # pixels a side: twice the 16 pixels that a SIFT descriptor covers (Lowe 2004, section 6)


def opencv() -> Any:
    """OpenCV's module, or an ImportError that says how to get it."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError('images need OpenCV: pip install "trimlearn[vision]".') from error
    return cv2


def name_of(image: ImageLike, index: int | None = None) -> str:
    """What to call an image in a message: its path, or its number.

    >>> name_of("photos/left.jpg"), name_of(np.zeros((64, 64), np.uint8), 2)
    ('photos/left.jpg', 'image 2')
    """
    if isinstance(image, str | os.PathLike):
        return os.fspath(image)
    return "image" if index is None else f"image {index}"


def read_image(image: ImageLike, name: str | None = None, *, alpha: bool = False) -> Pixels:
    """An image as (h, w, 3) RGB uint8, turned upright as its EXIF orientation says.

    image: a path, or an array (h, w), (h, w, 1), (h, w, 3) RGB or (h, w, 4) RGBA, of uint8, uint16 or floats in [0, 1].
    alpha: give an image that has transparent pixels as (h, w, 4) RGBA; otherwise transparency is dropped. A file that
    is missing is a FileNotFoundError; one that is no image, ends before its picture does, or has a side below 32 pixels
    is a ValueError with its name.

    >>> read_image(np.full((40, 50), 65535, np.uint16))[0, 0]
    array([255, 255, 255], dtype=uint8)
    """
    return eight_bits(read_deep(image, name, alpha=alpha))


def read_deep(image: ImageLike, name: str | None = None, *, alpha: bool = False) -> Deep:
    """The same as deep as it is: uint16 where the image has 16 bits, or is of floats.

    >>> read_deep(np.full((40, 50), 0.5))[0, 0]
    array([32768, 32768, 32768], dtype=uint16)
    """
    name = name_of(image) if name is None else name
    a = _decode(Path(image), name) if isinstance(image, str | os.PathLike) else np.asarray(image)
    pixels = _to_rgba(a, name)
    if min(pixels.shape[:2]) < SMALLEST:
        raise ValueError(
            f"{name} has {pixels.shape[1]} × {pixels.shape[0]} pixels; an image needs at least {SMALLEST} a side."
        )
    transparent = pixels.shape[2] == 4 and bool(np.any(pixels[:, :, 3] < full(pixels)))
    return np.ascontiguousarray(pixels if alpha and transparent else pixels[:, :, :3])


def full(pixels: Deep) -> int:
    """The value of white: 255, or 65535."""
    return int(np.iinfo(pixels.dtype).max)


def eight_bits(pixels: Deep) -> Pixels:
    """The pixels as bytes, rounded: 65535 = 255 · 257.

    >>> eight_bits(np.array([0, 128, 65535], np.uint16))
    array([  0,   0, 255], dtype=uint8)
    """
    if pixels.dtype == np.uint8:
        return np.asarray(pixels, np.uint8)
    return np.asarray(opencv().convertScaleAbs(pixels, alpha=1 / 257), np.uint8).reshape(pixels.shape)


def sixteen_bits(pixels: Deep) -> NDArray[np.uint16]:
    """The pixels as 16-bit numbers.

    >>> sixteen_bits(np.array([0, 255], np.uint8))
    array([    0, 65535], dtype=uint16)
    """
    return np.asarray(pixels if pixels.dtype == np.uint16 else pixels.astype(np.uint16) * 257, np.uint16)


def grey(pixels: Pixels) -> Pixels:
    """The luminance of RGB pixels, (h, w).

    >>> int(grey(np.full((40, 50, 3), 200, np.uint8))[0, 0])
    200
    """
    cv2 = opencv()
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY))


def _decode(path: Path, name: str) -> NDArray[Any]:
    """A file's pixels, RGB or RGBA, as deep as they are stored."""
    cv2 = opencv()
    try:
        raw = np.fromfile(path, np.uint8)  # read here: OpenCV does not say why it could not
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name} does not exist; check the path of the image.") from error
    except OSError as error:
        raise ValueError(f"{name} cannot be read as an image: {error.strerror}.") from error
    _check_whole(raw.tobytes(), name)  # first, as decoders print what they think of it
    decoded = _imdecode(raw, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR)  # applies the EXIF orientation, drops alpha
    if decoded is None:
        raise ValueError(f"{name} is not an image that can be read ({raw.size} bytes); use JPEG, PNG or TIFF.")
    if bytes(raw[:2]) != JPEG:
        whole = _imdecode(raw, cv2.IMREAD_UNCHANGED)
        if whole is not None and whole.ndim == 3 and whole.shape[2] == 4 and whole.shape[:2] == decoded.shape[:2]:
            return np.asarray(cv2.cvtColor(whole, cv2.COLOR_BGRA2RGBA))
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB))


def _check_whole(raw: bytes, name: str) -> None:
    """ValueError for a JPEG or PNG that was cut off: decoders fill what is missing with grey or black, silently."""
    cut = (raw[:2] == JPEG and _jpeg_is_cut(raw)) or (raw[:4] == PNG and raw.rfind(PNG_END) < 0)
    if cut:
        raise ValueError(f"{name} is damaged: its {len(raw)} bytes end before the picture does; copy it again.")


def _jpeg_is_cut(raw: bytes) -> bool:
    """Whether the data of a JPEG end without its end marker: segments have lengths, scans last until a marker."""
    at, scanned = 2, False
    while (found := JPEG_MARKER.search(raw, at)) is not None:
        marker, at = found[1][0], found.end()
        if marker == END:
            return not scanned
        scanned |= marker == SCAN
        at += int.from_bytes(raw[at : at + 2], "big")
    return True


def _imdecode(raw: Pixels, flags: int) -> NDArray[Any] | None:
    cv2 = opencv()
    try:
        return cv2.imdecode(raw, flags) if raw.size else None
    except cv2.error:  # a header that promises more than the file holds, or than memory does
        return None


def _to_rgba(a: NDArray[Any], name: str) -> Deep:
    """RGB or RGBA of an array."""
    if a.ndim == 2:
        a = a[:, :, None]
    if a.ndim != 3 or a.shape[2] not in (1, 3, 4):
        raise ValueError(f"{name} must be (h, w), (h, w, 3) or (h, w, 4), got an array of shape {a.shape}.")
    pixels = _to_whole(a, name)
    return np.repeat(pixels, 3, axis=2) if a.shape[2] == 1 else pixels


def _to_whole(a: NDArray[Any], name: str) -> Deep:
    if a.dtype in (np.uint8, np.uint16):
        return a
    if np.issubdtype(a.dtype, np.floating) and a.size:
        low, high = np.min(a), np.max(a)
        if np.isnan(low):
            raise ValueError(f"{name} holds NaN; give every pixel a number in [0, 1].")
        if low >= 0 and high <= 1:
            return np.asarray(np.rint(a * 65535.0), np.uint16)
        raise ValueError(f"{name} holds floats from {low:g} to {high:g}; they must be in [0, 1], or convert to uint8.")
    raise ValueError(f"{name} must hold uint8, uint16 or floats in [0, 1], got {a.dtype}; convert it first.")
