"""What a joint fit works on: all matches of all pairs, and frames of all images chained along spanning trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from trimlearn.geometry.homography.points import Floats, PointPairs
from trimlearn.geometry.homography.transfer import squared_transfer
from trimlearn.geometry.panorama.pairs import Edge, Pairs, adjacency
from trimlearn.geometry.panorama.transfer_loss import Correspondences, Ints, TransferLoss

__all__ = ["Scene", "best_tree", "central", "chain", "shift", "spanning_tree"]

L = TypeVar("L", bound=TransferLoss)

TREES = 20  # random spanning trees tried besides that of most inliers
STRAIN = 5.0  # times the error of its own homography that a pair may have in a joint fit
SLACK = 0.0075  # of the diagonal: an error that never is too large
NEAR = 0.01  # of the diagonal: an error beyond which how large it is hardly matters in judging a tree


@final
@dataclass(frozen=True)
class Scene:
    """N matches of P pairs among m images, inliers and outliers alike, in pixels from the centres of the images.

    pair (N,) numbers the pair a match belongs to, core (N,) says whether that pair's own homography explains it.
    """

    pairs: Pairs
    matches: Correspondences
    pair: Ints
    core: NDArray[np.bool_]

    @classmethod
    def of(cls, pairs: Pairs) -> Scene:
        """The pairs' matches, one after the other."""
        centres, numbers = _centres(pairs.sizes), np.arange(len(pairs))
        lengths = [len(p) for p in pairs.pairs]
        i, j = (np.repeat([getattr(p, name) for p in pairs.pairs], lengths) for name in "ij")
        src = np.concatenate([p.src for p in pairs.pairs]) - centres[i]
        dst = np.concatenate([p.dst for p in pairs.pairs]) - centres[j]
        core = np.concatenate([p.inliers for p in pairs.pairs])
        return cls(pairs, Correspondences(i, j, src, dst, len(pairs.sizes)), np.repeat(numbers, lengths), core)

    @property
    def edges(self) -> list[Edge]:
        """(i, j) of every pair."""
        return [(p.i, p.j) for p in self.pairs.pairs]

    @property
    def inliers(self) -> Ints:
        """How many matches each pair's own homography explains."""
        return np.bincount(self.pair[self.core], minlength=len(self.pairs))

    @property
    def centres(self) -> Floats:
        """The centres of the images (m, 2): the centre of the first pixel is (0, 0)."""
        return _centres(self.pairs.sizes)

    @cached_property
    def diagonal(self) -> float:
        """The median diagonal of the images, in pixels."""
        return float(np.median(np.hypot(*np.array(self.pairs.sizes, np.float64).T)))

    @cached_property
    def own_errors(self) -> Floats:
        """The median error of each pair's inliers under its own homography (P,), in pixels."""
        seen = [squared_transfer(p.homography, PointPairs(p.src, p.dst))[p.inliers] for p in self.pairs.pairs]
        return np.array([np.median(e2) for e2 in seen]) ** 0.5

    def strained(self, errors: Floats) -> Floats:
        """Errors (P,) of pairs in a joint fit, by those that would be in order (P,): above 1 a pair is bent a lot.

        In order is several times what the pair's own homography leaves, or that of a typical pair, and anything up to
        what lenses and small moves of the camera do.
        """
        usual = STRAIN * np.maximum(self.own_errors, np.median(self.own_errors))
        return np.asarray(errors / np.maximum(usual, SLACK * self.diagonal))

    def core_of(self, pair: int) -> tuple[Floats, Floats]:
        """The points that a pair's own homography explains."""
        rows = np.flatnonzero((self.pair == pair) & self.core)
        return self.matches.src[rows], self.matches.dst[rows]

    def centred(self, pair: int) -> Floats:
        """The pair's homography between pixels from the centres, of determinant 1 and with its points in front."""
        p = self.pairs.pairs[pair]
        H = shift(-self.centres[p.j]) @ p.homography @ shift(self.centres[p.i])
        return np.asarray(H / np.cbrt(np.linalg.det(H)))  # a homography of what a camera sees turns nothing over


def shift(by: Floats) -> Floats:
    """The homography p → p + by.

    >>> shift(np.array([3.0, 4.0])) @ [1, 1, 1]
    array([4., 5., 1.])
    """
    return np.array([[1.0, 0.0, by[0]], [0.0, 1.0, by[1]], [0.0, 0.0, 1.0]])


def spanning_tree(edges: list[Edge], m: int, weight: Floats) -> list[int]:
    """The edges, by number, of the spanning tree of largest total weight (Kruskal 1956).

    >>> spanning_tree([(0, 1), (1, 2), (2, 0)], 3, np.array([5.0, 1.0, 3.0]))
    [0, 2]
    """
    group, tree = np.arange(m), []
    for k in np.argsort(-weight, kind="stable"):
        i, j = edges[k]
        if group[i] != group[j]:
            group[group == group[j]] = group[i]
            tree.append(int(k))
    return tree


def chain(tree: list[int], edges: list[Edge], steps: Floats) -> Floats:
    """B (m, 3, 3) with B_j = steps_k B_i for every edge k = (i, j) of the tree, and B = I for image 0.

    >>> chain([0], [(1, 0)], np.diag([2.0, 2.0, 1.0])[None])[1]
    array([[0.5, 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    B = np.tile(np.eye(3), (len(tree) + 1, 1, 1))
    known, left = {0}, list(tree)
    while left:
        k = next(k for k in left if (edges[k][0] in known) != (edges[k][1] in known))
        (i, j), left = edges[k], [other for other in left if other != k]
        if i in known:
            B[j] = steps[k] @ B[i]
        else:
            B[i] = np.linalg.solve(steps[k], B[j])
        known |= {i, j}
    return B


def central(edges: list[Edge], m: int) -> int:
    """The image from which the farthest, and then all others, are the fewest overlaps away.

    >>> central([(0, 1), (1, 2), (2, 3), (3, 4)], 5)
    2
    """
    hops = shortest_path(adjacency(edges, m), unweighted=True)
    return min(range(m), key=lambda k: (hops[k].max(), hops[k].sum()))


def best_tree(scene: Scene, steps: Floats, make: Callable[[Floats], L], seed: int) -> L:
    """The loss around the frames that fit all pairs best, of those chained along some spanning trees.

    The tree of most inliers may hold a pair that is wrong as a whole; a tree without it leaves fewer pairs far off.
    Trees are compared by the sum over pairs of the mean log(1 + f/τ²) of what the pair's own homography explains: a
    chain of a dozen pairs may end far from where it should, and a wrong pair has one vote, however many matches.
    """
    rows = np.flatnonzero(scene.core)
    share = 1.0 / scene.inliers[scene.pair[rows]]

    def cost(loss: L) -> float:
        f = loss.values(np.zeros(loss.x_shape), rows)
        return float(share @ np.log1p(f / (NEAR * scene.diagonal) ** 2))

    losses = [make(chain(tree, scene.edges, steps)) for tree in _trees(scene, seed)]
    return min(losses, key=cost)


def _trees(scene: Scene, seed: int) -> Iterator[list[int]]:
    rng, inliers, m = np.random.default_rng(seed), scene.inliers, scene.matches.images
    seen = set()
    for k in range(TREES + 1):
        noise = rng.gumbel(size=len(inliers)) if k else 0.0
        tree = spanning_tree(scene.edges, m, np.log1p(inliers) + noise)
        if (key := frozenset(tree)) not in seen:
            seen.add(key)
            yield tree


def _centres(sizes: tuple[tuple[int, int], ...]) -> Floats:
    return (np.array(sizes, np.float64) - 1.0) / 2.0
