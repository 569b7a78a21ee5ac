"""Homographies from dirty matches, and mosaics of photographs.

What touches images needs OpenCV (``pip install "trimlearn[vision]"``), imported when first used; fitting to point
correspondences does without.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimlearn.geometry.homography.estimator import TrimmedHomography
    from trimlearn.geometry.mosaic.matches import Matches, match_images
    from trimlearn.geometry.mosaic.mosaic import Mosaic
    from trimlearn.geometry.mosaic.stitch import stitch
    from trimlearn.geometry.panorama.estimator import TrimmedPanorama
    from trimlearn.geometry.panorama.pairs import match_pairs

__all__ = ["Matches", "Mosaic", "TrimmedHomography", "TrimmedPanorama", "match_images", "match_pairs", "stitch"]

_HOME = {
    "Matches": "mosaic.matches",
    "Mosaic": "mosaic.mosaic",
    "TrimmedHomography": "homography.estimator",
    "TrimmedPanorama": "panorama.estimator",
    "match_images": "mosaic.matches",
    "match_pairs": "panorama.pairs",
    "stitch": "mosaic.stitch",
}


def __getattr__(name: str) -> Any:
    """Each name from its module, imported when first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'trimlearn.geometry' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"trimlearn.geometry.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
