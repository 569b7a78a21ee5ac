"""What a trimmed regression of any model says where the rows it leaves out may be right."""

from __future__ import annotations

import numpy as np

from trimlearn.estimators.linear.doubt import FEWEST, doubt_of_errors, doubt_of_many
from trimlearn.estimators.meta.foretold import features_as_numbers
from trimlearn.estimators.meta.rounds import Alternation
from trimlearn.estimators.meta.targets import Judgement
from trimlearn.robust.scale import rounding_floor

# Times the cut-off within which some of the rows left out must lie, this share at least, before it is asked whether a
# bend, or errors that grow, made them seem wrong: no model is free of a bend, and rows far beyond it are wrong whatever
# it is (choices: of rows shifted by 5 to 15 standard deviations none is near, of a lognormal tail a tenth to a half).
NEAR, SOME = 2.0, 0.25
FIT = "trimmed fit"  # what it is called: any model's


def doubt_of_left_out(run: Alternation, w: np.ndarray, found: Judgement, told: np.ndarray) -> str | None:
    """A sentence where nothing can be told, or where rows of weight 0 may be right: the features foretell them, as they
    do those ``told``, or their residuals are those of a model that is too simple, or of errors that are skewed or
    grow."""
    there = run.rows.s > 0
    out = there & (w <= 0)
    if found.common:
        return (
            f"most rows have one value of y, and the {FIT} explains fewer than half of the others: which of them are "
            "wrong cannot be told, and nothing is trimmed. Fit these on their own, or give a contamination."
        )
    if np.any(told & out):
        return (
            f"{out.sum() / there.sum():.0%} of the rows do not follow the {FIT} and are left out, but the features "
            f"foretell {np.sum(told & out)} of them: these may be a group or a region that the model does not learn, "
            "rather than wrong. Look at their features; take a model that learns them, or give contamination=0 if they "
            "are right."
        )
    return _doubt_of_residuals(run, out, found) if out.any() else None


def _doubt_of_residuals(run: Alternation, out: np.ndarray, found: Judgement) -> str | None:
    """What is asked of a linear regression, of residuals with signs that are no rounding errors."""
    rows, there, scale = run.rows, run.rows.s > 0, found.inlier_model
    r, X = run.target.signed_residuals(run.last, rows.t), features_as_numbers(rows.X)
    if r is None or X is None or not isinstance(scale, float) or scale <= rounding_floor(np.ravel(rows.t), rows.s):
        return None
    X, y, fitted, scores, out = (part[there] for part in (X, np.ravel(rows.t), run.last, r / scale, out))
    doubt = doubt_of_many(X, y, scores, found.threshold, found.contamination, FIT)
    near = np.abs(scores[out]) <= NEAR * found.threshold
    if doubt is None and near.sum() >= FEWEST and near.mean() >= SOME:
        doubt = doubt_of_errors(X, y, fitted, scores, out, FIT)
    return doubt
