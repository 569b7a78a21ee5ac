"""Homographies from dirty matches, mosaics of photographs, and bundle adjustment.

What touches images needs OpenCV (``pip install "trimlearn[vision]"``), imported when first used; fitting to point
correspondences does without.
"""

from trimlearn.geometry.bundle_data import read_bal
from trimlearn.geometry.bundle_loss import ReprojectionLoss
from trimlearn.geometry.homography.estimator import TrimmedHomography
from trimlearn.geometry.mosaic.matches import Matches, match_images
from trimlearn.geometry.mosaic.mosaic import Mosaic
from trimlearn.geometry.mosaic.stitch import stitch
from trimlearn.geometry.panorama.estimator import TrimmedPanorama
from trimlearn.geometry.panorama.pairs import match_pairs

__all__ = [
    "Matches",
    "Mosaic",
    "ReprojectionLoss",
    "TrimmedHomography",
    "TrimmedPanorama",
    "match_images",
    "match_pairs",
    "read_bal",
    "stitch",
]
