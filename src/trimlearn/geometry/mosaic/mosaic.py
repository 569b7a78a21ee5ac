"""A finished mosaic: the picture, and how each image came into it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.files import replacing
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.images import Deep, eight_bits, full, opencv
from trimlearn.geometry.panorama.pairs import Pairs

__all__ = ["Mosaic", "check_picture_path"]

WITH_ALPHA = (".png", ".tif", ".tiff", ".webp")
SIXTEEN = (".png", ".tif", ".tiff", ".ppm")
OPAQUE = (".jpg", ".jpeg", ".bmp", ".ppm")


@dataclass(frozen=True)
class Mosaic:
    """What `stitch` made.

    Parameters
    ----------
    image : ndarray of shape (h, w, 3)
        RGB, black where no image is; uint16 where an image had 16 bits or was of floats, else uint8.
    mask : ndarray of shape (h, w)
        Where there is one.
    surface : {"plane", "cylinder", "sphere"}
        What it is drawn on.
    homographies : ndarray of shape (n, 3, 3), or None
        On a plane: pixel of image i to pixel of the mosaic, NaN for an image that was left out. None elsewhere. Of an
        image whose lens bends lines (``distortion``) they are for pixels with the lens taken out.
    used : tuple of int
        The images in the mosaic, by their place in the input.
    left_out : tuple of int
        Those that overlap with none of them.
    wraps : bool
        The right end continues at the left: a full turn.
    order : tuple of int
        Image k of ``pairs`` and ``panorama`` is image order[k] of the input.
    pairs : Pairs
        The overlaps among the used images.
    panorama : TrimmedPanorama, or None
        The joint fit; None for two images on a plane, whose only homography is in ``pairs``.
    distortion : tuple of float
        κ of the lens of each image, which the mosaic is drawn without: see `TrimmedPanorama`. 0: none was needed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> mosaic = Mosaic(np.zeros((40, 50, 3), np.uint8), np.ones((40, 50), bool), "plane", None, (0, 1), ())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mosaic.save(Path(folder) / "pano.png").name
    'pano.png'
    """

    image: Deep
    mask: NDArray[np.bool_]
    surface: str
    homographies: Floats | None
    used: tuple[int, ...]
    left_out: tuple[int, ...]
    wraps: bool = False
    order: tuple[int, ...] = ()
    pairs: Pairs | None = field(default=None, repr=False)
    panorama: Any = field(default=None, repr=False)
    distortion: tuple[float, ...] = ()

    @property
    def border(self) -> float:
        """The share of the picture that no image covers.

        >>> Mosaic(np.zeros((4, 5, 3), np.uint8), np.eye(4, 5) > 0, "plane", None, (0, 1), ()).border
        0.8
        """
        return 1.0 - float(np.count_nonzero(self.mask)) / self.mask.size

    def save(self, path: str | os.PathLike[str], *, quality: int = 95) -> Path:
        """Write the picture; PNG, TIFF and WebP are transparent where no image is, PNG, TIFF and PPM keep 16 bits.

        Parameters
        ----------
        path : path
            Its name says the format: .jpg, .png, .tif, .webp, .bmp or .ppm.
        quality : int
            Of JPEG and WebP, 1 to 100.

        Returns
        -------
        Path
            The file written.
        """
        cv2, path = opencv(), check_picture_path(path)
        pixels = self.image if path.suffix.lower() in SIXTEEN else eight_bits(self.image)
        if path.suffix.lower() in WITH_ALPHA and not self.mask.all():
            pixels = np.dstack([pixels, self.mask.astype(pixels.dtype) * full(pixels)])
        order = cv2.COLOR_RGB2BGR if pixels.shape[2] == 3 else cv2.COLOR_RGBA2BGRA
        try:
            done, raw = cv2.imencode(path.suffix, cv2.cvtColor(pixels, order), _options(path, quality))
        except cv2.error as error:
            done, raw = False, error
        if not done:
            h, w = self.image.shape[:2]
            raise ValueError(f"{path}: {w} × {h} pixels do not fit this format; save as .png or .tif.")
        with replacing(path) as temporary:
            raw.tofile(temporary)
        return path


def _options(path: Path, quality: int) -> list[int]:
    cv2 = opencv()
    keys = {".jpg": cv2.IMWRITE_JPEG_QUALITY, ".jpeg": cv2.IMWRITE_JPEG_QUALITY, ".webp": cv2.IMWRITE_WEBP_QUALITY}
    if not 1 <= quality <= 100:
        raise ValueError(f"quality must be from 1 to 100, got {quality!r}.")
    key = keys.get(path.suffix.lower())
    return [] if key is None else [key, int(quality)]


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """The path, where a picture can be written there; a ValueError or FileNotFoundError otherwise.

    >>> check_picture_path("pano.doc")
    Traceback (most recent call last):
        ...
    ValueError: pano.doc: no picture format is called '.doc'; use one of .jpg .jpeg .bmp .ppm .png .tif .tiff .webp.
    """
    path = Path(path)
    if path.suffix.lower() not in OPAQUE + WITH_ALPHA:
        known = " ".join(OPAQUE + WITH_ALPHA)
        raise ValueError(f"{path}: no picture format is called {path.suffix!r}; use one of {known}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist; make it first.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path}: nothing may be written to the folder {path.parent}.")
    return path
