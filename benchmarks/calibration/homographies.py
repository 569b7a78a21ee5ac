"""homographies: how long samples are drawn, which start is enough, and what counts as a rival.

The constants of geometry/homography/search.py and doubt.py, each below and above its value, on scenes with a known
homography: 9 right matches of 50, on a strip or anywhere; easy pairs; photographs through a lens that bends lines; two
planes of which one has half, two fifths or a quarter of the right matches; wrong matches in four clusters, which agree
with some homography; and wrong matches anywhere. A fit is right where the right matches are within 5 px in the median;
work is how often all matches were scored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.calibration import summarise, with_constant
from trimlearn.datasets.locate import find_folder
from trimlearn.geometry import TrimmedHomography
from trimlearn.geometry.homography import doubt, search
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.homography.synthetic import SIZE, SyntheticMatches, random_scene

__all__ = ["KINDS", "TRIED", "outcome", "run", "scene"]

KINDS = ("strip", "few", "easy", "bent", "half", "two fifths", "quarter", "clusters", "random")
SHARES = {"half": 0.5, "two fifths": 0.4, "quarter": 0.25}  # of the right matches that are on another plane
SEEDS = range(10)
NEAR = 5.0  # px from where the right matches belong, in their median: a right homography
FEW, OTHERS, ALIKE = ("strip", "few"), 3, 1.0  # where seeds are compared, how many, and px that make no difference
STRIP, CLUSTER = 0.03, 15.0  # half the width of a strip, by the image's height; that of a cluster, px
BARREL = 0.04  # of its distance from the centre by which a corner is moved
TRIED: dict[str, tuple[Any, tuple[float, ...]]] = {
    "MEAGRE": (search, (0, 32)),
    "REPEATED": (search, (1, 30)),
    "PLAIN": (search, (0.1, 0.5, 2.0)),
    "SHARP": (search, (0.25, 1e9)),
    "ORIENTED": (search, (16, 192)),
    "RIVAL": (doubt, (0.3, 0.8)),
    "ROUGH": (doubt, (0.25, 1.0)),
    "QUARTER": (doubt, (2, 32)),
}


def scene(kind: str, seed: int) -> SyntheticMatches:
    """Matches of that kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    sizes = {"strip": (50, 0.82), "few": (50, 0.82), "easy": (100, 0.3), "clusters": (200, 0.45), "random": (200, 0.6)}
    n, wrong = sizes.get(kind, (200, 0.3))
    s = random_scene(rng, 2000 if kind == "strip" else n, 0.0 if kind == "strip" else wrong)
    if kind == "strip":
        on = np.flatnonzero(np.abs(s.src[:, 1] - np.median(s.src[:, 1])) < STRIP * SIZE[1])[: round(n * (1 - wrong))]
        strangers = rng.uniform(0, SIZE, (2, n - len(on), 2))
        src, dst = (np.vstack([a[on], b]) for a, b in zip((s.src, s.dst), strangers, strict=True))
        s = SyntheticMatches(src, dst, s.H, np.arange(n) < len(on), np.zeros(n))
    if kind == "bent":
        for points in (s.src, s.dst):
            points[:] = _bent(points)
    if kind in SHARES:
        rows = np.flatnonzero(s.good)
        rows = rows[: round(SHARES[kind] * len(rows))]
        other = random_scene(rng, len(rows), 0.0)
        s.src[rows], s.dst[rows], s.good[rows] = other.src, other.dst, False
    if kind == "clusters":
        bad = np.flatnonzero(~s.good)
        centres, which = rng.uniform(0, SIZE, (2, 4, 2)), rng.integers(4, size=len(bad))
        around = CLUSTER * rng.standard_normal((len(bad), 2))
        s.src[bad], s.dst[bad] = (places[which] + around for places in centres)
    return s


def _bent(points: Floats) -> Floats:
    off = points - np.array(SIZE) / 2
    return np.asarray(points - BARREL * off * np.sum(np.square(off / (np.array(SIZE) / 2)), axis=1, keepdims=True) / 2)


def outcome(kind: str, seed: int) -> dict[str, Any]:
    """Whether the fit is right, whether another seed finds the same, whether a rival is told of, and the work."""
    s = scene(kind, seed)
    with _counted() as scored, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = [_seen(s, other) for other in range(OTHERS if kind in FEW else 1)]
    told = any("another homography" in str(w.message) for w in heard)
    refused = [seen is None for seen in found]
    right = found[0] is not None and float(np.median(np.linalg.norm(found[0] - s.dst[s.good], axis=1))) < NEAR
    alike = all(refused) or (not any(refused) and float(np.ptp(np.array(found), axis=0).max()) < ALIKE)
    return {"right": right, "refused": refused[0], "alike": alike, "told": told, "work": len(scored) / len(found)}


def _seen(s: SyntheticMatches, seed: int) -> Floats | None:
    """Where the right matches are put; None where the fit is refused."""
    try:
        return TrimmedHomography(random_state=seed).fit(s.src, s.dst).predict(s.src[s.good])
    except ValueError:
        return None


@contextmanager
def _counted() -> Iterator[list[None]]:
    """One entry for every homography that all matches score."""
    scored: list[None] = []
    usual = search.SampleSearch._scored

    def counting(self: Any, H: Floats) -> Any:
        scored.extend([None] * (1 if H.ndim == 2 else len(H)))
        return usual(self, H)

    with patch.object(search.SampleSearch, "_scored", counting):
        yield scored


def run() -> dict[str, Any]:
    """All scenes with all constants as they are, and with each of them changed: two minutes."""
    settings: list[tuple[str, Any, Any]] = [("none", None, "as it is")]
    settings += [(name, module, value) for name, (module, values) in TRIED.items() for value in values]
    rows = []
    for name, module, value in settings:
        with nullcontext() if module is None else with_constant(module, name, value):
            rows += [
                {"constant": name, "value": value, "kind": kind, "seed": seed} | outcome(kind, seed)
                for kind in KINDS
                if module is not doubt or kind not in FEW  # of which none is told
                for seed in SEEDS
            ]
    figures = {
        "right": lambda group: sum(row["right"] for row in group),
        "refused": lambda group: sum(row["refused"] for row in group),
        "alike": lambda group: sum(row["alike"] for row in group),
        "told": lambda group: sum(row["told"] for row in group),
        "work": lambda group: float(np.mean([row["work"] for row in group])),
    }
    return {"summary": summarise(rows, ["constant", "value", "kind"], figures), "ExtremeZoom": extreme_zoom()}


def extreme_zoom() -> dict[str, int]:
    """Of 8 right matches among 51, annotated by CMP Prague: how many of 100 seeds give a wrong homography by MEAGRE."""
    folder = find_folder("matches", None, holding="matches.npz")
    if folder is None:
        raise FileNotFoundError("matches.npz is neither in --data nor in $TRIMLEARN_DATA.")
    with np.load(folder / "matches.npz") as stored:
        found, marked = stored["ExtremeZoom__tentative_xyxy"], stored["ExtremeZoom__validation_xyxy"]
    wrong = {}
    for meagre in (0, 8, search.MEAGRE):
        with with_constant(search, "MEAGRE", meagre):
            fits = [TrimmedHomography(random_state=seed).fit(found[:, :2], found[:, 2:]) for seed in range(100)]
        off = [np.median(np.linalg.norm(fit.predict(marked[:, :2]) - marked[:, 2:], axis=1)) for fit in fits]
        wrong[f"MEAGRE {meagre}"] = int(np.sum(np.array(off) >= NEAR))
    return wrong
