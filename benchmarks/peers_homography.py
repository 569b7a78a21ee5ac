"""peers, homographies: TrimmedHomography against OpenCV's USAC_MAGSAC; match_images against OpenCV's SIFT."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.common import NOTHING, Part, Table, Target, home, say
from trimlearn.datasets import load_oxford_pair
from trimlearn.datasets.locate import find_folder
from trimlearn.geometry import TrimmedHomography, match_images
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.homography.synthetic import corner_error, random_scene
from trimlearn.geometry.homography.transfer import transform

__all__ = ["homography"]

PAIRS = tuple(product(("graf", "boat"), (2, 3, 4, 5, 6)))
SIZES, WRONG = (1000, 10_000, 100_000), (0.0, 0.3, 0.5)
MANY, FASTER = 5.0, 10.0  # times MAGSAC's time: for 100,000 matches, and for fewer
HARD = ((0.8, 0.99), (0.9, 0.95))  # shares of wrong matches, and of the scenes that must be solved
SOLVED = 3.0  # px, mean error of the corners
SEEDS = 20
NEAR, LOWE = 5.0, 0.8  # px off for a marked match of a solved pair, in the median; Lowe's ratio
REPEATED = 3  # runs for the clock, of which the fastest counts: both are deterministic


def homography(quick: bool, data: Path | None) -> Part:
    """Speed and hard scenes; where the data are there, photographs, matches that look collinear, and the matcher."""
    try:
        import cv2
    except ImportError:
        return Part([Table("homographies", ["why"], [["not run: no OpenCV"]])], [])
    cv2.setNumThreads(1)
    parts = [_speed(cv2, (200,) if quick else SIZES), _hard(3 if quick else 200)]
    folder = home(data)
    if find_folder("oxford_affine", folder) is not None:
        parts.append(_photographs(cv2, PAIRS[1:2] if quick else PAIRS, folder))
    found = find_folder("matches", folder, holding="matches.npz")
    if found is not None:
        parts.append(_narrow(found / "matches.npz", 1 if quick else SEEDS))
    return Part([t for part in parts for t in part.tables], [t for part in parts for t in part.targets])


def _magsac(cv2: Any, src: Floats, dst: Floats) -> Floats:
    return np.asarray(cv2.findHomography(src, dst, cv2.USAC_MAGSAC, 3.0, maxIters=10_000, confidence=0.9999)[0])


def _seconds(fit: Callable[[], Any]) -> tuple[float, Any]:
    spent = []
    for _ in range(REPEATED):
        begun = process_time()
        found = fit()
        spent.append(process_time() - begun)
    return min(spent), found


def _speed(cv2: Any, sizes: tuple[int, ...]) -> Part:
    columns = ["matches", "wrong", "ours", "MAGSAC", "ratio", "px, ours", "px, MAGSAC"]
    table = Table("homographies: CPU seconds", columns)
    targets = []
    for n, wrong in product(sizes, WRONG):
        s = random_scene(np.random.default_rng(3), n, wrong)
        theirs, rival = _seconds(lambda s=s: _magsac(cv2, s.src, s.dst))  # type: ignore[misc]
        mine, model = _seconds(lambda s=s: TrimmedHomography().fit(s.src, s.dst))  # type: ignore[misc]
        errors = [corner_error(H, s.H) for H in (model.homography_, rival)]
        table.rows.append([n, wrong, mine, theirs, mine / theirs, *errors])
    for n in sizes:
        worst = max(row[4] for row in table.rows if row[0] == n)
        targets.append(Target(f"homographies: {n:,} matches, time / MAGSAC's", worst, MANY if n >= 1e5 else FASTER))
    return Part([table], targets)


def _hard(trials: int) -> Part:
    table = Table("homographies: 1,000 matches", ["wrong", "scenes", "solved", "px, median", "CPU seconds, mean"])
    targets = []
    for wrong, share in HARD:
        say(f"peers: homographies, {wrong:.0%} wrong")
        errors, spent = [], []
        for seed in range(trials):
            s = random_scene(np.random.default_rng(seed), 1000, wrong)
            begun = process_time()
            errors.append(corner_error(TrimmedHomography().fit(s.src, s.dst).homography_, s.H))
            spent.append(process_time() - begun)
        solved = float(np.mean(np.array(errors) < SOLVED))
        table.rows.append([wrong, trials, solved, median(errors), float(np.mean(spent))])
        targets.append(Target(f"homographies: {wrong:.0%} wrong, scenes not solved", 1 - solved, 1 - share + 1e-9))
    return Part([table], targets)


def _photographs(cv2: Any, pairs: tuple[tuple[str, int], ...], data: Path | None) -> Part:
    """Corner errors against the published homographies, and what the matchers give."""
    errors = Table("homographies: photographs, px at the corners", ["pair", "ours", "MAGSAC", "seconds", "MAGSAC's"])
    counts = Table("matches of photographs", ["pair", "ours", "right", "OpenCV's", "right "])
    fewer = 0.0
    for name, k in pairs:
        first, other, true = load_oxford_pair(name, k, data)
        src, dst, scores = match_images(first, other)
        height, width = cv2.imread(str(first), cv2.IMREAD_GRAYSCALE).shape
        spent, rival = _seconds(lambda src=src, dst=dst: _magsac(cv2, src, dst))  # type: ignore[misc]
        begun = process_time()
        try:
            ours: Any = corner_error(TrimmedHomography().fit(src, dst, scores).homography_, true, (width, height))
        except ValueError:
            ours = "refused"
        took = process_time() - begun
        errors.rows.append([f"{name} {k}", ours, corner_error(rival, true, (width, height)), took, spent])
        theirs = _sift(cv2, first, other)
        numbers = [len(src), _right(true, src, dst), len(theirs[0]), _right(true, *theirs)]
        counts.rows.append([f"{name} {k}", *numbers])
        fewer = max(fewer, numbers[3] / max(numbers[1], 1))
    return Part([errors, counts], [Target("matches: right ones of OpenCV's by ours, worst pair", fewer, 1.0)])


def _sift(cv2: Any, one: Path, other: Path) -> tuple[Floats, Floats]:
    """SIFT as it is, and Lowe's ratio one way: what tutorials do."""
    (points1, found1), (points2, found2) = (
        cv2.SIFT_create().detectAndCompute(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), None) for path in (one, other)
    )
    near = [a for a, b in cv2.BFMatcher().knnMatch(found1, found2, k=2) if a.distance < LOWE * b.distance]
    return np.array([points1[m.queryIdx].pt for m in near]), np.array([points2[m.trainIdx].pt for m in near])


def _right(H: Floats, src: Floats, dst: Floats) -> int:
    return int(np.sum(np.linalg.norm(transform(H, src) - dst, axis=1) < SOLVED))


def _narrow(file: Path, seeds: int) -> Part:
    """Matches on a narrow strip: with every seed, the same homography, which the marked matches agree with."""
    columns = ["pair", "seeds", "solved", "px, marked matches", "px between seeds"]
    table = Table("homographies: matches on a strip", columns)
    with np.load(file) as stored:
        data = {name: stored[name] for name in stored.files}
    unsolved = 0
    for name in ("ExtremeZoom", "vin", "fox"):
        found = data.get(f"{name}__xyxy", data.get(f"{name}__tentative_xyxy"))
        assert found is not None
        marked = found[data[f"{name}__inlier"] > 0] if f"{name}__inlier" in data else data[f"{name}__validation_xyxy"]
        fits = []
        for seed in range(seeds):
            try:
                fits.append(TrimmedHomography(random_state=seed).fit(found[:, :2], found[:, 2:]))
            except ValueError:
                continue
        errors = [float(np.median(np.linalg.norm(m.predict(marked[:, :2]) - marked[:, 2:], axis=1))) for m in fits]
        solved = sum(error < NEAR for error in errors)
        places = np.array([m.predict(marked[:, :2]) for m in fits])
        apart = float(np.abs(places - places[:1]).max()) if fits else NOTHING
        table.rows.append([name, seeds, solved, max(errors, default=float("nan")), apart])
        unsolved += seeds - solved
    return Part([table], [Target("homographies: fits on a strip not solved", float(unsolved), 0.0)])
