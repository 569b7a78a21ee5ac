"""The losses of a panorama: transfer errors of all matches, by rotations and focal lengths or by homographies."""

from trimlearn.geometry.panorama.losses.cameras import HomographyLoss, RotationLoss
from trimlearn.geometry.panorama.losses.transfer import Correspondences, Maps, TransferLoss, homogeneous

__all__ = ["Correspondences", "HomographyLoss", "Maps", "RotationLoss", "TransferLoss", "homogeneous"]
