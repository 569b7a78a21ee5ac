"""Which surface a mosaic is drawn on, and how each image is seen from it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trimlearn._utils.warn import warn
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.layout import CanvasLayout, HorizonError, lay_out
from trimlearn.geometry.mosaic.surfaces import CylinderSurface, PlaneSurface, SphereSurface, Surface, View
from trimlearn.geometry.panorama.estimator import TrimmedPanorama
from trimlearn.geometry.panorama.pairs import Pairs
from trimlearn.geometry.panorama.rotations import straighten
from trimlearn.geometry.panorama.scene import Scene, shift
from trimlearn.smart import alternating

__all__ = ["SURFACES", "Placement", "place"]

SURFACES: dict[str, type[Surface]] = {"plane": PlaneSurface, "cylinder": CylinderSurface, "sphere": SphereSurface}
# Fields of view. At the edge of a plane things are drawn wider by cos⁻² of half of it: twice as wide at 90°, fifteen
# times at 150°, where none is tried. A cylinder stretches in height alone, as cos⁻²: 1.7 times at 80°.
WIDE, TALL, WIDEST = np.radians([90, 80, 150])
# Times as large at one end of a plane as at another: what 90° of view do, cos⁻¹·⁵ of half of it; see WIDE.
KEYSTONE = 1.7
FINER = 1.05  # times the pixels a side from which an image counts as finer than the plane's own: 5 % is not seen
# Of the diagonal: a median error beyond which the camera may have moved, 1.6 px in 640 × 480, several times a
# detector's noise; and one that shows, beyond the 0.64 % of lenses (benchmarks/calibration/panoramas.py).
DOUBT, POOR = 0.002, 0.01
DOWN = np.array([0.0, 1.0, 0.0])  # a camera's y axis points down, as rows of pixels do
GLANCING = 0.05  # the sine of the angle from straight down or up, 3°, within which nothing is level: a hand's precision
CLEARLY = 0.5  # what the error must fall to with a homography per image, which has twice the parameters (a choice)


class Placement(NamedTuple):
    """A layout, and the fitted panorama behind it (None for two images and their homography)."""

    layout: CanvasLayout
    panorama: TrimmedPanorama | None


def place(pairs: Pairs, surface: str, seed: int) -> Placement:
    """Lay the images out on a surface, "auto" or one by name. All of them hang together by their pairs.

    "auto": a plane for two images, by their homography, unless one of them would be a keystone, and for images that no
    turn of a camera explains, by a homography each; for the others what their field of view asks for, a plane, a
    cylinder or a sphere.
    """
    may_be_flat = surface in ("auto", "plane")
    two = _two_on_a_plane(pairs, surface) if may_be_flat and len(pairs.sizes) == 2 else None
    if two is not None and (surface == "plane" or two.stretch() <= KEYSTONE):
        return Placement(two, None)
    turned = _fitted(pairs, "rotation", seed)
    if two is not None and not _turned(turned, pairs):  # something flat, seen from aside
        return Placement(two, None)
    cameras = _Cameras.of(turned, pairs)
    width, height = cameras.field_of_view(pairs.names)
    if may_be_flat and width < WIDEST and (flat := _moved(turned, pairs, seed)) is not None:
        return flat
    _warn(turned, pairs)
    if surface != "auto":
        return Placement(cameras.on(surface, pairs.names), turned)
    surface = "sphere" if height > TALL else "cylinder" if width > WIDE else "plane"
    try:
        return Placement(cameras.on(surface, pairs.names), turned)
    except HorizonError:  # of one image, however narrow the view of all: a sphere has a place for everything
        return Placement(cameras.on("sphere", pairs.names), turned)


class _Cameras(NamedTuple):
    """Cameras that turned, in a world whose y axis points down: R (m, 3, 3), focal lengths (m,), sizes (w, h), κ (m,)
    of their lenses."""

    R: Floats
    focals: Floats
    sizes: Sequence[tuple[int, int]]
    kappa: Floats

    @classmethod
    def of(cls, panorama: TrimmedPanorama, pairs: Pairs) -> _Cameras:
        R = straighten(np.asarray(panorama.rotations_))
        return cls(R, np.asarray(panorama.focals_), pairs.sizes, panorama.distortion_)

    def on(self, surface: str, names: Sequence[str]) -> CanvasLayout:
        """The images on the surface of that name, drawn as large as the finest of them is."""
        world = _ahead(self.R) if surface == "plane" else np.eye(3)
        cameras = zip(self.R, self.focals, self.sizes, self.kappa, strict=True)
        views = [View(_K(f, size) @ R @ world, size, float(kappa)) for R, f, size, kappa in cameras]
        scale, least = float(np.max(self.focals)), float(np.min(self.focals))
        views = _aligned(views, scale) if surface == "plane" else views
        try:
            return lay_out(SURFACES[surface](scale), views, names)
        except HorizonError:  # drawn as large as the coarsest of them, does it reach there, or was that a zoom?
            return lay_out(SURFACES[surface](least), views, names).scaled(scale / least)

    def field_of_view(self, names: Sequence[str]) -> tuple[float, float]:
        """Width and height of all images together, in radians."""
        layout = self.on("sphere", names)
        return layout.canvas.w / layout.surface.scale, layout.canvas.h / layout.surface.scale


def _two_on_a_plane(pairs: Pairs, surface: str) -> CanvasLayout | None:
    """On the plane of one of the images: the one that gives the smaller mosaic, so that nothing is stretched much.

    None where either reaches its horizon, a HorizonError if it has to be a plane.
    """
    (pair,) = pairs.pairs  # from image 0 to image 1
    found, failed = [], []
    for first in (np.eye(3), pair.homography):
        try:
            found.append(_flat(np.stack([first, first @ np.linalg.inv(pair.homography)]), pairs))
        except HorizonError as error:
            failed.append(error)
    if not found and surface == "plane":
        raise failed[0]
    return min(found, key=lambda layout: layout.canvas.area, default=None)


def _turned(panorama: TrimmedPanorama, pairs: Pairs) -> bool:
    """Whether a turn of the camera explains two images about as well as their homography does, beyond doubt."""
    if panorama.doubts_:
        return False
    own = float(Scene(pairs).own_errors[0]) / float(np.median(np.hypot(*np.array(pairs.sizes).T)))
    return _misfit(panorama, pairs) <= max(DOUBT, own / CLEARLY)


def _moved(turned: TrimmedPanorama, pairs: Pairs, seed: int) -> Placement | None:
    """On a plane by a homography per image, where these fit clearly better than cameras that turned."""
    misfit = _misfit(turned, pairs)
    if misfit <= DOUBT:
        return None
    moved = _fitted(pairs, "homography", seed)
    if _misfit(moved, pairs) >= CLEARLY * misfit:
        return None
    try:
        return Placement(_flat(moved.homographies_, pairs), moved)
    except HorizonError:
        return None


def _flat(homographies: Floats, pairs: Pairs) -> CanvasLayout:
    """On a plane, by homographies (m, 3, 3) from each image to it."""
    views = [View(P, size) for P, size in zip(np.linalg.inv(homographies), pairs.sizes, strict=True)]
    layout = lay_out(PlaneSurface(1.0), views, pairs.names)
    finest = max(layout.steps())
    return layout if finest < FINER else layout.scaled(finest)  # a zoom is no horizon: that was judged before


def _fitted(pairs: Pairs, model: str, seed: int) -> TrimmedPanorama:
    with warnings.catch_warnings():  # of a model that may not be used: see _warn
        warnings.simplefilter("ignore")
        # the same fit as by SMART to ten digits, of some hundred parameters at most in a third of its time
        return TrimmedPanorama(model=model, method=alternating(), random_state=seed).fit(pairs)


def _misfit(panorama: TrimmedPanorama, pairs: Pairs) -> float:
    """The median error of the matches that pairs explain on their own, by the diagonal of an image."""
    own = np.concatenate([pair.inliers for pair in pairs.pairs])
    return float(np.median(panorama.outlier_scores_[own]) / np.median(np.hypot(*np.array(pairs.sizes).T)))


def _warn(panorama: TrimmedPanorama, pairs: Pairs) -> None:
    """What is doubtful about the fit that is used."""
    doubts = list(panorama.doubts_)
    if _misfit(panorama, pairs) > POOR:
        worst = max(panorama.report_, key=lambda report: report.error)
        doubts = [
            f"the images do not fit together well: {pairs.title(worst.i, worst.j)} are {worst.error:.0f} px off where "
            "they overlap. The camera may have moved while it turned."
        ]
    for doubt in doubts:
        warn(doubt)


def _K(focal: float, size: tuple[int, int]) -> Floats:
    w, h = size
    return np.array([[focal, 0, (w - 1) / 2], [0, focal, (h - 1) / 2], [0, 0, 1]])


def _aligned(views: Sequence[View], scale: float) -> list[View]:
    """The views from a plane moved by less than a pixel, so that the first pixel of one of them is a mosaic pixel."""
    x, y, z = np.linalg.solve(views[0].P, [0.0, 0.0, 1.0])
    first = scale * np.array([x, y]) / (z if z > 0 else np.inf)
    return [View(view.P @ shift((first - np.rint(first)) / scale), view.size) for view in views]


def _ahead(rotations: Floats) -> Floats:
    """The rotation that takes the z axis to where the cameras look on the average, and the x axis to the right there.

    Right is level, whichever way the cameras are held; for cameras that look straight down it is their own right.
    """
    x, _, z = rotations.mean(axis=0)
    z = z / np.linalg.norm(z)
    level = np.cross(DOWN, z)
    x = level if np.linalg.norm(level) > GLANCING else x - z * (x @ z)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
