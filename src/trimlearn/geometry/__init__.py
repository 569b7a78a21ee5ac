"""Homographies from dirty matches, and mosaics of photographs.

What touches images needs OpenCV (``pip install "trimlearn[vision]"``), imported when first used; fitting to point
correspondences does without.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimlearn.geometry.homography import TrimmedHomography
    from trimlearn.geometry.matches import Matches, match_images
    from trimlearn.geometry.mosaic import Mosaic
    from trimlearn.geometry.pairs import match_pairs
    from trimlearn.geometry.panorama import TrimmedPanorama
    from trimlearn.geometry.stitching import stitch

__all__ = ["Matches", "Mosaic", "TrimmedHomography", "TrimmedPanorama", "match_images", "match_pairs", "stitch"]

_HOME = {
    "Matches": "matches",
    "Mosaic": "mosaic",
    "TrimmedHomography": "homography",
    "TrimmedPanorama": "panorama",
    "match_images": "matches",
    "match_pairs": "pairs",
    "stitch": "stitching",
}


def __getattr__(name: str) -> Any:
    """Each name from its module, imported when first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'trimlearn.geometry' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"trimlearn.geometry.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
