"""The graph of the images, whose edges are overlaps: its parts, its middle, and what is chained along its trees."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree, shortest_path

from trimlearn.geometry.homography.points import Floats

__all__ = ["Edge", "adjacency", "central", "chain", "components", "spanning_tree"]

Edge = tuple[int, int]


def adjacency(edges: Iterable[Edge], m: int) -> NDArray[np.bool_]:
    """The graph of m nodes as a matrix (m, m).

    >>> adjacency([(0, 1)], 3).sum(axis=1)
    array([1, 1, 0])
    """
    joined = np.zeros((m, m), bool)
    for i, j in edges:
        joined[i, j] = joined[j, i] = True
    return joined


def components(edges: Iterable[Edge], m: int) -> list[list[int]]:
    """The connected parts of a graph of m nodes, the largest first, each in increasing order.

    >>> components([(0, 3), (3, 1)], 5)
    [[0, 1, 3], [2], [4]]
    """
    count, label = connected_components(adjacency(edges, m), directed=False)
    groups = [np.flatnonzero(label == k).tolist() for k in range(count)]
    return sorted(groups, key=lambda group: (-len(group), group))


def central(edges: list[Edge], m: int) -> int:
    """The image from which the farthest, and then all others, are the fewest overlaps away.

    >>> central([(0, 1), (1, 2), (2, 3), (3, 4)], 5)
    2
    """
    hops = shortest_path(adjacency(edges, m), unweighted=True)
    return min(range(m), key=lambda k: (hops[k].max(), hops[k].sum()))


def spanning_tree(edges: list[Edge], m: int, weight: Floats) -> list[int]:
    """The edges, by number, of the spanning tree of largest total weight, the heaviest first.

    >>> spanning_tree([(0, 1), (1, 2), (2, 0)], 3, np.array([5.0, 1.0, 3.0]))
    [0, 2]
    """
    order = np.argsort(-weight, kind="stable")
    place = np.argsort(order) + 1.0  # only the order of the weights matters; SciPy takes 0 for no edge
    tree = minimum_spanning_tree(csr_array((place, tuple(np.transpose(edges))), shape=(m, m)))
    return [int(k) for k in order[np.sort(tree.data).astype(int) - 1]]


def chain(tree: list[int], edges: list[Edge], steps: Floats) -> Floats:
    """B (m, 3, 3) with B_j = steps_k B_i for every edge k = (i, j) of the tree, and B = I for image 0.

    >>> chain([0], [(1, 0)], np.diag([2.0, 2.0, 1.0])[None])[1]
    array([[0.5, 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    m, number = len(tree) + 1, {edges[k]: k for k in tree}
    B = np.tile(np.eye(3), (m, 1, 1))
    order, before = breadth_first_order(adjacency(number, m), 0, directed=False)
    for j in order[1:].tolist():
        i = int(before[j])
        forward = (i, j) in number
        B[j] = steps[number[i, j]] @ B[i] if forward else np.linalg.solve(steps[number[j, i]], B[i])
    return B
