"""How far SMART gets on the joint problem of a panorama by itself, from where a chain of pairs ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimlearn.geometry.panorama.consistency import agree
from trimlearn.geometry.panorama.joint import JointFit
from trimlearn.geometry.panorama.models import rotation_start
from trimlearn.geometry.panorama.pairs import Pairs
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.smart import alternating, svrg
from trimlearn.smart.metrics import NewtonMetric
from trimlearn.solve import solve

__all__ = ["Alone", "smart_alone"]

PASSES = 200  # more than it takes: the page says how many were needed
TOL = 1e-6  # tight, so that what Newton steps still move shows how far SMART came


@dataclass(frozen=True)
class Alone:
    """F at the chained start, where SMART ends, and after Newton steps from there; passes; px by which the latter move
    the matches kept (root mean square)."""

    start: float
    smart: float
    polished: float
    passes: float
    moved: float


def smart_alone(pairs: Pairs, seed: int = 0) -> Alone:
    """SMART-SVRG on the joint problem (rotations, quotas as `TrimmedPanorama` finds them), from a spanning tree."""
    scene = Scene(pairs)
    loss, r2, _ = rotation_start(scene, seed)
    x, agrees, _ = agree(loss, scene, r2)
    joint = JointFit(loss, scene, r2, agrees, None, None)
    problem = joint.problem(joint.quotas(x))
    tree = np.zeros(loss.x_shape)
    method = svrg(metric=NewtonMetric(), momentum=0.0, finish=False)
    found = solve(problem, method, x0=tree, max_passes=PASSES, tol=TOL, seed=seed)
    after = solve(problem, alternating(inner="newton"), x0=found.x, max_passes=PASSES, tol=TOL)
    moved = (loss.predict(after.x) - loss.predict(found.x))[found.w > 0]
    start = problem.objective(problem.r1.minimise(loss.values(tree)), tree)
    return Alone(
        start, found.objective, after.objective, found.passes, float(np.sqrt(np.mean(np.sum(moved**2, axis=1))))
    )
