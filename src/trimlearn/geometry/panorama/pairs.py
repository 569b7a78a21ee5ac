"""Which of many images overlap: every pair matched, verified by its homography, and the graph of those that do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.threads import each, team
from trimlearn._utils.warn import held_warnings, warn
from trimlearn.geometry.homography.estimator import MOST, TrimmedHomography
from trimlearn.geometry.homography.points import Floats, check_pairs
from trimlearn.geometry.homography.search import REPEATED, samples_needed
from trimlearn.geometry.homography.transfer import transform
from trimlearn.geometry.inputs import check_images, check_index, check_inside, check_sizes, seed_of
from trimlearn.geometry.mosaic.images import ImageLike, name_of
from trimlearn.geometry.mosaic.matches import Features, Matches, detect, match, shortened
from trimlearn.geometry.panorama.trees import Edge, components

__all__ = [
    "DETECTED",
    "Pair",
    "Pairs",
    "Rejected",
    "checked_pair",
    "gathered",
    "make_pairs",
    "match_pairs",
    "matched",
    "near",
]

# An overlap has more inliers than BASE + SHARE times the matches that fall into it: 8 of Brown and Lowe (2007, section
# 3.2); half of their 0.3, as the mutual check has removed the greater part of the wrong matches before.
BASE, SHARE = 8, 0.15
FEWEST = 12  # matches below which a pair is not looked at: fewer than 10 are never enough; two more to spare
# Of the diagonal, 6 px in 640 × 480: how well one homography explains an overlap where a lens bends lines or the camera
# moved a little. A lens that bends them by 6 % leaves 0.3 %, twice as much in a joint fit (benchmarks/calibration/
# panoramas.py); in the photographs of docs/panorama.md 90 % of the matches are within 0.5 %.
LOOSE = 0.0075
MANY = 30  # images beyond which pairs are preselected: a limit on time, 435 pairs of some 0.1 s
# Pixels of a photograph in which features are looked for: a limit on time, as 2.5 times as many take three times as
# long and give no more matches, of 8,000 features. Each is then a fifth less precise (docs/stitching.md).
DETECTED = 1_000_000
SKETCH = 400  # features of an image that the preselection compares: a limit on time, a few ms a pair
NEIGHBOURS = 8  # pairs that the preselection keeps for each image: the 6 of Brown and Lowe (2007), and two more


@final
@dataclass(frozen=True, eq=False)
class Pair:
    """Two images that overlap: src (n, 2) in image i is said to be dst (n, 2) in image j.

    inliers (n,) are those that ``homography``, pixel of i to pixel of j, explains: within its threshold, or within
    0.75 % of the image's diagonal where that is more. ``doubts`` are what the fit warned of."""

    i: int
    j: int
    src: Floats
    dst: Floats
    scores: Floats
    homography: Floats
    inliers: NDArray[np.bool_]
    doubts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.src)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and all(np.array_equal(a, vars(other)[name]) for name, a in vars(self).items())


class Rejected(NamedTuple):
    """A pair of images that do not overlap, as far as their matches tell."""

    i: int
    j: int
    matches: int
    reason: str


@final
@dataclass(frozen=True)
class Pairs:
    """The verified pairs among images of ``sizes`` (w, h); ``names`` are what messages call the images."""

    pairs: tuple[Pair, ...]
    sizes: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    rejected: tuple[Rejected, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def components(self) -> list[list[int]]:
        """Groups of images that hang together by overlaps, the largest first; an image without overlap is one alone."""
        return components(self.edges, len(self.sizes))

    @property
    def edges(self) -> list[Edge]:
        """(i, j) of every pair."""
        return [(p.i, p.j) for p in self.pairs]

    def title(self, i: int, j: int) -> str:
        """The names of two images, for a sentence."""
        return f"{self.names[i]} and {self.names[j]}"

    def subset(self, images: Sequence[int]) -> Pairs:
        """The pairs among ``images``, which are numbered anew in that order."""
        new = {old: k for k, old in enumerate(images)}
        kept = [replace(p, i=new[p.i], j=new[p.j]) for p in self.pairs if p.i in new and p.j in new]
        off = [r._replace(i=new[r.i], j=new[r.j]) for r in self.rejected if r.i in new and r.j in new]
        return Pairs(
            tuple(kept), tuple(self.sizes[k] for k in images), tuple(self.names[k] for k in images), tuple(off)
        )

    def largest(self) -> tuple[Pairs, list[int]]:
        """The pairs of the largest group, and the images that it consists of; ValueError where no two overlap."""
        images = self.components[0]
        if len(images) < 2:
            raise ValueError(f"no two of the {len(self.sizes)} images overlap: {self._why()}.")
        return self.subset(images), images

    def check_connected(self) -> None:
        """ValueError, with the names of those left out, unless all images hang together."""
        groups = self.components
        if len(groups) == 1:
            return
        left = [self.names[k] for group in groups[1:] for k in group]
        main = ", ".join(self.names[k] for k in groups[0])
        verb, them = ("overlaps", "it") if len(left) == 1 else ("overlap", "them")
        raise ValueError(
            f"pairs do not connect all images: {', '.join(left)} {verb} with none of {main}; leave {them} out "
            "(Pairs.largest) or add images between."
        )

    def _why(self) -> str:
        best = max(self.rejected, key=lambda r: r.matches, default=None)
        if best is None:
            return "there is no pair with matches"
        return f"the best pair, {self.title(best.i, best.j)}, has {best.reason}"


def match_pairs(
    images: Iterable[ImageLike],
    *,
    ratio: float = 0.8,
    max_features: int = 8000,
    names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> Pairs:
    """Every pair of images matched, and those kept whose matches agree on a homography.

    Features are detected once per image. All pairs are matched; of more than 30 images, only those that a sketch of
    some hundred features calls likely, and neighbours in the given order. Each pair is verified by `TrimmedHomography`,
    which must explain more than 8 + 0.15 times the matches that fall into the overlap (the test of Brown and Lowe,
    whose 0.3 is for matches without the mutual check).

    Parameters
    ----------
    images : iterable of paths or arrays
        At least two; see `match_images`.
    ratio : float
        As in `match_images`.
    max_features : int
        As in `match_images`.
    names : sequence of str, optional
        What messages call the images. None: their paths, or numbers.
    random_state : int, RandomState, Generator or None
        For the homographies.

    Returns
    -------
    Pairs
        Images that overlap with no other are no error here: see its ``components`` and ``largest()``.

    References
    ----------
    M. Brown and D. Lowe, Automatic panoramic image stitching using invariant features, IJCV 2007.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).integers(0, 256, (40, 60), dtype=np.uint8)
    >>> scene = np.kron(noise, np.ones((6, 6), np.uint8))
    >>> pairs = match_pairs([scene[:, :200], scene[:, 100:300], np.zeros((99, 99), np.uint8)])
    >>> [(p.i, p.j) for p in pairs.pairs], pairs.components
    ([(0, 1)], [[0, 1], [2]])
    """
    shown, seed = check_images(images), seed_of(random_state)
    names = _names(names, [name_of(image, k) for k, image in enumerate(shown)])
    with team():
        found, sizes = matched(shown, DETECTED, max_features, ratio, seed)
    return gathered(found, sizes, names)


def make_pairs(
    correspondences: Iterable[Sequence[Any]],
    sizes: Sequence[tuple[int, int]],
    *,
    names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> Pairs:
    """The same from matches of your own: (i, j, src, dst) or (i, j, src, dst, scores) for each pair; sizes (w, h).

    >>> rng = np.random.default_rng(0)
    >>> src = rng.uniform(0, 500, (60, 2))
    >>> pairs = make_pairs([(0, 1, src, src + [100, 20])], [(640, 480)] * 2)
    >>> pairs.pairs[0].homography.round(3)[:, 2]
    array([100.,  20.,   1.])
    """
    sides, seed = check_sizes(sizes), seed_of(random_state)
    m = len(sides)
    names = _names(names, [f"image {k}" for k in range(m)])
    found, seen = [], set()
    for given in correspondences:
        i, j, matches = _given(given, m)
        if i == j or frozenset((i, j)) in seen:
            raise ValueError(f"correspondences must name two different images of {m}, once each pair; got ({i}, {j}).")
        seen.add(frozenset((i, j)))
        for k, points in ((i, matches.src), (j, matches.dst)):
            check_inside(points, sides[k], names[k])
        found.append(checked_pair(i, j, matches, sides[j], seed))
    return gathered(found, sides, names)


def _names(names: Sequence[str] | None, usual: list[str]) -> list[str]:
    """What the images are called: as given, one each, or as usual."""
    if names is not None and len(names) != len(usual):
        raise ValueError(f"names must be as many as images, {len(usual)}, got {len(names)}.")
    return usual if names is None else list(names)


def _given(given: Any, m: int) -> tuple[int, int, Matches]:
    """One pair's (i, j, src, dst) or (i, j, src, dst, scores), checked."""
    if not isinstance(given, Sequence) or len(given) not in (4, 5):
        raise ValueError("correspondences must hold (i, j, src, dst) or (i, j, src, dst, scores) for each pair.")
    i, j = (check_index(k, m, f"{name} of correspondences") for k, name in zip(given, "ij", strict=False))
    return i, j, _matches(*given[2:])


def _matches(src: Any, dst: Any, scores: Any = None) -> Matches:
    if len(src) == 0 and len(dst) == 0:
        return Matches(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))
    points = check_pairs(src, dst, scores)
    return Matches(points.src, points.dst, np.ones(len(points)) if points.scores is None else points.scores)


def gathered(found: Sequence[Pair | Rejected], sizes: Sequence[tuple[int, int]], names: Sequence[str]) -> Pairs:
    """Those kept and those rejected, with a warning of what is doubtful about a single one."""
    kept, off = [p for p in found if isinstance(p, Pair)], [p for p in found if isinstance(p, Rejected)]
    pairs = Pairs(tuple(kept), tuple((int(w), int(h)) for w, h in sizes), tuple(names), tuple(off))
    if len(kept) == 1:  # of several a joint fit tells what a lens or another view explains
        for doubt in kept[0].doubts:
            warn(f"{pairs.title(kept[0].i, kept[0].j)}: {doubt}")
    return pairs


def matched(
    images: Sequence[ImageLike], max_pixels: int, max_features: int, ratio: float, seed: int
) -> tuple[list[Pair | Rejected], list[tuple[int, int]]]:
    """All promising pairs, by features of so many pixels of each image; and the sizes of the images."""
    features = shortened(each(lambda image: detect(image, max_features=max_features, max_pixels=max_pixels), images))

    def verdict(edge: Edge) -> Pair | Rejected:
        i, j = edge
        return checked_pair(i, j, match(features[i], features[j], ratio=ratio), features[j].size, seed)

    return each(verdict, _promising(features, ratio)), [f.size for f in features]


def checked_pair(i: int, j: int, matches: Matches, size: tuple[int, int], seed: int) -> Pair | Rejected:
    """What the matches of images i and j, this one of that size, agree on."""
    n = len(matches.src)
    if n < FEWEST:
        return Rejected(i, j, n, "1 match only" if n == 1 else f"{n} matches only")
    try:
        with held_warnings() as doubts:  # to be said with the names of both images
            model = TrimmedHomography(max_samples=_worth_drawing(n), random_state=seed).fit(*matches)
    except ValueError:  # on a line, or nothing better than chance: all that may be wrong with checked matches
        return Rejected(i, j, n, f"{n} matches that agree on no homography")
    H, inliers = model.homography_, near(model, size)
    seen = transform(H, matches.src)
    inside = np.all((seen >= 0) & (seen <= np.array(size) - 1), axis=1) | inliers
    if inliers.sum() <= BASE + SHARE * inside.sum():
        return Rejected(i, j, n, f"{n} matches of which {int(inliers.sum())} agree on a homography")
    return Pair(i, j, *matches, H, inliers, tuple(doubts))


def near(model: TrimmedHomography, size: tuple[int, int]) -> NDArray[np.bool_]:
    """The matches that a homography to an image of that size explains, as `Pair` has them."""
    return np.asarray(model.outlier_scores_ <= max(model.threshold_, LOOSE * float(np.hypot(*size))))


def _worth_drawing(n: int) -> int:
    """How many samples of n matches: enough for as few inliers as make an overlap, and as often again as few need."""
    fewest = BASE / (1.0 - SHARE)  # as these are inside, too
    return min(REPEATED * samples_needed(min(fewest / n, 1.0), TrimmedHomography().probability), MOST)


def _promising(features: Sequence[Features], ratio: float) -> list[Edge]:
    """All pairs; of many images those next to each other and those of which sketches match best."""
    edges = list(combinations(range(len(features)), 2))
    if len(features) <= MANY:
        return edges
    sketches = [_sketch(f) for f in features]
    found = each(lambda e: len(match(sketches[e[0]], sketches[e[1]], ratio=ratio).src), edges)
    counts, kept = dict(zip(edges, found, strict=True)), {(k, k + 1) for k in range(len(features) - 1)}
    for k in range(len(features)):
        kept.update(sorted((e for e in edges if k in e), key=lambda e: -counts[e])[:NEIGHBOURS])
    return sorted(kept)


def _sketch(features: Features) -> Features:
    rows = np.linspace(0, len(features) - 1, min(SKETCH, len(features))).astype(int)
    return replace(features, points=features.points[rows], descriptors=features.descriptors[rows])
