"""The losses of a panorama: transfer errors of all matches, by rotations and focal lengths or by homographies."""

from trimlearn.geometry.panorama.losses.transfer import (
    Correspondences,
    HomographyLoss,
    Maps,
    RotationLoss,
    TransferLoss,
    homogeneous,
)

__all__ = ["Correspondences", "HomographyLoss", "Maps", "RotationLoss", "TransferLoss", "homogeneous"]
