"""Several homographies at once, the paper's future work: one joint trimmed problem beside chains of pairwise fits."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from paper.outcome import Outcome, Picture, Say, Sheet, quiet
from paper.panorama.pictures import draw_comparison
from paper.panorama.smart_alone import Alone, smart_alone
from paper.photographs import draw_mosaics
from paper.rivals import opencv_homography
from trimlearn.datasets import find_photos
from trimlearn.geometry.homography.estimator import TrimmedHomography
from trimlearn.geometry.homography.points import Floats, PointPairs
from trimlearn.geometry.homography.transfer import squared_transfer, transform
from trimlearn.geometry.panorama.estimator import TrimmedPanorama
from trimlearn.geometry.panorama.pairs import Pair, Pairs, match_pairs
from trimlearn.geometry.panorama.trees import chain, spanning_tree

__all__ = ["FULL", "QUICK", "Reference", "Result", "Settings", "compare", "load_reference", "pairwise_error", "run"]

DataHome = str | os.PathLike[str] | None
Between = Callable[[int, int], Floats]  # (i, j) to the homography from image i to image j
FOLDER = "panorama/autostitch_denny"
GRID = 20  # points a side by which an overlap is measured
JOINT, RIVAL = "joint, rotation and focal length", "chained, OpenCV RANSAC"


@dataclass(frozen=True)
class Settings:
    """How many of the photographs, all if None; whether to make the mosaic."""

    images: int | None = None
    mosaic: bool = True


FULL = Settings()
QUICK = Settings(images=5, mosaic=False)


@dataclass(frozen=True)
class Reference:
    """Homographies to compare with: H (P, 3, 3) from image i to image j for ``pairs`` (P, 2)."""

    pairs: np.ndarray
    H: Floats


@dataclass(frozen=True)
class Result:
    """What one way of fitting gives, in px, and its seconds, matching not counted.

    errors: `pairwise_error` for every pair of the reference. matches: symmetric transfer errors of all matches that
    pairs explain on their own, half and 90 % of which are below. closing: the same, half, of the pairs that are not in
    the chain, at which a loop must close; None where there is no loop.
    """

    name: str
    seconds: float
    errors: list[float]
    median: float
    ninety: float
    matches_median: float
    matches_ninety: float
    closing: float | None


def run(settings: Settings = FULL, data_home: DataHome = None, *, say: Say = quiet) -> Outcome:
    """All ways of fitting on the same matches, and the mosaic."""
    files = find_photos(FOLDER, "*.jpg", data_home)[: settings.images]
    begun = time.perf_counter()
    pairs = match_pairs(files)
    matching = time.perf_counter() - begun
    say(f"panorama: {len(files)} images, {len(pairs)} overlaps, {sum(map(len, pairs.pairs))} matches")
    reference = load_reference(find_photos(FOLDER, "*.npz", data_home)[0], len(files))
    results = compare(pairs, reference, say)
    alone = smart_alone(pairs)
    say(f"panorama: SMART by itself, F from {alone.start:.3g} to {alone.smart:.4g} in {alone.passes:.0f} passes")
    images = {"mosaic": _mosaic(files, say)} if settings.mosaic else {}
    return Outcome(
        name="panorama",
        title="Several homographies at once",
        notes=[*_notes(pairs, matching, _closes(pairs)), _alone_note(alone)],
        tables=[_sheet(results)],
        pictures=[
            Picture("errors", _caption(_closes(pairs)), draw_comparison(reference.pairs, results, JOINT, RIVAL)),
            *(Picture(name, "The mosaic, unrolled.", draw_mosaics({name: photo})) for name, photo in images.items()),
        ],
        results={
            "overlaps": [[p.i, p.j, len(p), int(p.inliers.sum())] for p in pairs.pairs],
            "closes": _closes(pairs),
            "matching_seconds": matching,
            "reference_pairs": reference.pairs,
            "methods": {result.name: asdict(result) for result in results},
            "smart_alone": asdict(alone),
        },
        images=images,
    )


def pairwise_error(H: Floats, reference: Floats, size: tuple[int, int], other: tuple[int, int]) -> float:
    """How far H puts the points of an overlap from where the reference puts them: the mean distance in px.

    Points are those of a 20 × 20 grid over the first image, of ``size`` (w, h), that the reference puts into the other.

    >>> shift = np.array([[1.0, 0.0, 50.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(pairwise_error(shift @ shift, shift, (200, 100), (200, 100)), 6)
    50.0
    """
    x, y = np.meshgrid(*(np.linspace(0, side - 1, GRID) for side in size))
    points = np.column_stack([x.ravel(), y.ravel()])
    there = transform(reference, points)
    inside = np.all((there >= 0) & (there <= np.array(other) - 1), axis=1)
    if not inside.any():
        raise ValueError("reference puts no point of the one image into the other: they do not overlap.")
    return float(np.mean(np.linalg.norm(transform(H, points[inside]) - there[inside], axis=1)))


def compare(pairs: Pairs, reference: Reference, say: Say = quiet) -> list[Result]:
    """Every way of fitting on the same pairs: joint fits, and homographies chained along the images' order."""
    tree = _chain_order(pairs)
    ways: dict[str, Callable[[], Between]] = {
        JOINT: lambda: _joint(pairs, "rotation"),
        "joint, a homography per image": lambda: _joint(pairs, "homography"),
        "chained, TrimmedHomography": lambda: _chained(pairs, tree, _trimmed),
        RIVAL: lambda: _chained(pairs, tree, partial(_opencv, "RANSAC")),
        "chained, OpenCV MAGSAC++": lambda: _chained(pairs, tree, partial(_opencv, "MAGSAC++")),
    }
    results = []
    for name, fit in ways.items():
        begun = time.perf_counter()
        between = fit()
        seconds = time.perf_counter() - begun
        results.append(_judge(name, seconds, between, pairs, reference, tree))
        say(f"panorama: {name}, median pairwise error {results[-1].median:.2f} px")
    return results


def _joint(pairs: Pairs, model: str) -> Between:
    with warnings.catch_warnings():  # that the lens bends lines is said in the notes
        warnings.simplefilter("ignore", UserWarning)
        return TrimmedPanorama(model=model).fit(pairs).pair_homography


def _trimmed(pair: Pair) -> Floats:
    return np.asarray(TrimmedHomography().fit(pair.src, pair.dst, pair.scores).homography_)


def _opencv(method: str, pair: Pair) -> Any:
    return opencv_homography(pair.src, pair.dst, method)


def _chain_order(pairs: Pairs) -> list[int]:
    """A spanning tree: images next to each other first, then the pairs with most inliers."""
    edges = [(p.i, p.j) for p in pairs.pairs]
    weight = [p.inliers.sum() + (1e6 if p.j - p.i == 1 else 0.0) for p in pairs.pairs]
    return spanning_tree(edges, len(pairs.sizes), np.array(weight))


def _chained(pairs: Pairs, tree: list[int], fit: Callable[[Pair], Any]) -> Between:
    steps = np.tile(np.eye(3), (len(pairs), 1, 1))
    for k in tree:
        H = fit(pairs.pairs[k])
        if H is None:
            raise ValueError(f"no homography was found for the images {pairs.pairs[k].i} and {pairs.pairs[k].j}.")
        steps[k] = H
    B = chain(tree, [(p.i, p.j) for p in pairs.pairs], steps)
    return lambda i, j: np.asarray(B[j] @ np.linalg.inv(B[i]))


def _judge(
    name: str, seconds: float, between: Between, pairs: Pairs, reference: Reference, tree: list[int]
) -> Result:
    errors = [
        pairwise_error(between(i, j), H, pairs.sizes[i], pairs.sizes[j])
        for (i, j), H in zip(reference.pairs.tolist(), reference.H, strict=True)
    ]
    off = [_own_errors(between, pair) for pair in pairs.pairs]
    loops = [e for k, e in enumerate(off) if k not in tree]
    return Result(
        name,
        seconds,
        errors,
        float(np.median(errors)),
        float(np.quantile(errors, 0.9)),
        float(np.median(np.concatenate(off))),
        float(np.quantile(np.concatenate(off), 0.9)),
        float(np.median(np.concatenate(loops))) if loops else None,
    )


def _own_errors(between: Between, pair: Pair) -> Floats:
    own = PointPairs(pair.src[pair.inliers], pair.dst[pair.inliers])
    return np.asarray(np.sqrt(squared_transfer(between(pair.i, pair.j), own)))


def load_reference(file: os.PathLike[str], m: int) -> Reference:
    """The reference beside the photographs, of the pairs among the first m."""
    with np.load(file) as stored:
        pairs, H = stored["pairs"].astype(int), stored["H_pairs"]
    known = np.all(pairs < m, axis=1)
    return Reference(pairs[known], H[known])


def _closes(pairs: Pairs) -> bool:
    """Whether the last image overlaps with the first."""
    return any({p.i, p.j} == {0, len(pairs.sizes) - 1} for p in pairs.pairs) and len(pairs.sizes) > 2


def _mosaic(files: tuple[Any, ...], say: Say) -> np.ndarray:
    from trimlearn.geometry import stitch

    mosaic = stitch(files)
    say(f"panorama: stitched, {mosaic.image.shape[1]} × {mosaic.image.shape[0]} pixels")
    return mosaic.image


# -- what is shown ----------------------------------------------------------------------------------------------------


def _notes(pairs: Pairs, seconds: float, closes: bool) -> list[str]:
    circle = (
        "The last image overlaps with the first: the photographer turned once around, and the pairs form a loop."
        if closes
        else "The images form a chain."
    )
    return [
        f"{len(pairs.sizes)} photographs, {len(pairs)} overlaps among all pairs, "
        f"{sum(map(len, pairs.pairs))} tentative matches, found in {seconds:.0f} s. {circle} One joint trimmed problem "
        "over all matches, solved by SMART, beside homographies of neighbours chained.",
        "Pairwise errors are against a reference that is itself a bundle adjustment good to a few px: 2 px are "
        "agreement, not error. The lens bends lines (barrel), which makes each overlap by itself ask for too long a "
        "focal length; "
        + (
            "a chain then falls short of the full turn, and only the loop tells."
            if closes
            else "without a loop nothing tells, and rotations are no better than chained homographies."
        ),
    ]


def _alone_note(alone: Alone) -> str:
    return (
        f"SMART-SVRG alone, from the frames that a spanning tree of pairs gives: F falls from {alone.start:.6g} to "
        f"{alone.smart:.5g} px² in {alone.passes:.0f} passes. Newton steps from there to {alone.polished:.5g} move the "
        f"matches kept by {alone.moved:.1g} px."
    )


def _sheet(results: list[Result]) -> Sheet:
    header = ["fit", "pairwise, median", "pairwise, 90 %", "matches, median", "matches, 90 %", "closing", "seconds"]
    rows = [
        [
            r.name, f"{r.median:.2f}", f"{r.ninety:.2f}", f"{r.matches_median:.2f}", f"{r.matches_ninety:.2f}",
            "–" if r.closing is None else f"{r.closing:.1f}", f"{r.seconds:.1f}",
        ]
        for r in results
    ]  # fmt: skip
    return Sheet(
        "Errors, px",
        header,
        rows,
        "Pairwise error: mean distance from the reference over the overlap. Matches: symmetric transfer error of all "
        "that a pair explains by itself. Closing: that of the pair at which the loop closes.",
    )


def _caption(closes: bool) -> str:
    loop = " Where the loop closes, chains are far off." if closes else ""
    return f"Distance from the reference homographies, pair by pair.{loop}"
