"""Logistic regression of many rows, wherever they lie: by a sample of them, then by all."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from trimlearn._utils.validation import is_sparse
from trimlearn.estimators.linear.label_fits import LabelFits, as_x
from trimlearn.estimators.linear.label_rows import LabelJudge
from trimlearn.estimators.streamed import fits_in_memory
from trimlearn.progress import stage
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.flexible_models import FlexibleModels
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict

HELD = 1 << 26  # log-odds of all rows that are held: a limit on memory, 0.3 GB in float32
# Share of a sample's flags that the linear model alone sets otherwise than all models do, from which on all rows are
# asked of all, however long that takes. Where classes are linear it is 0.1 to 0.5 %; where they are not, 6 to 10 %.
MATTERS = 0.02
OTHERS = 0.8  # of the rows of a sample, that each of its judges is fitted to: four folds of five
# C of a model that judges alone, at least. Of 900 rows with 10 % wrong labels, fitted with C = 0.05, 98.6 % were told
# rightly with 100, 96.7 % with 1 and 91.8 % with C itself.
SURE = 100.0
BOTH = 3  # by definition: the linear model, a forest and the neighbours, beyond which boosting is one of the models


def check_classes(classes: np.ndarray, most: float) -> None:
    """ValueError where there is one class only, or where they are numbers: more than ``most`` that are not whole."""
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes[0]}; a classifier needs two at least.")
    if classes.dtype.kind == "f" and len(classes) > most:
        raise ValueError("y holds numbers, not labels: use TrimmedLinearRegression, or round them first.")


def check_sampled(known: Any, classes: np.ndarray) -> None:
    """ValueError where the sample that ``known`` was fitted to holds no row of some class."""
    lost = [c for c in classes if c not in known.classes_]
    if lost:
        raise ValueError(
            f"the class {lost[0]} has so few rows that a sample of all rows holds none: leave it out, or join it to "
            "another."
        )


def fit_many_labels(fits: LabelFits, h: float | None) -> tuple[LabelJudge, LabelNoise]:
    """Fit the model, by one computation for all sources, keeping h; None: find out. Who judged all labels, and how
    these are mistaken.

    The fit to a sample, with all that a fit to few rows does, says whether labels are wrong and which for which. As
    many rows as memory holds give the model that judges all labels, by a likelihood that allows for this noise; the
    forest and the neighbours of the sample are asked too (`_flexible`). All rows say how many labels are wrong (EM),
    and decide the trimmed fit and the final one.
    """
    model, known = fits.model, fits.known
    verdict = known._judged.verdict
    plain = h is None and verdict.clean  # nothing to correct: the plain fit, to the data as they are
    model._bounds = known._bounds
    if not plain and fits_in_memory(fits.n, fits.p):
        fits.draw_in()
    noise, start = verdict.noise.as_it_is, known._x
    if not verdict.clean:
        known = fits.judge(noise, _judge_ridge(fits))
    flexible = _flexible(fits, known, noise)
    judge = LabelJudge.of(known, flexible, verdict.noise)
    if flexible is not None and not plain:
        stage("flexible models asked about all rows")
    if not plain and (flexible is not None or fits.K == 2):  # of one model and more classes it would be much to hold
        fits.hold(judge)
    if h is None and not plain and len(fits.sample.codes) < fits.n:  # else it is known already
        stage("how many labels are wrong")
        noise = fits.renewed(noise, judge)
    share = 1 - noise.epsilon if h is None else h / fits.mass
    stage(f"trimmed fit, keeping {share * fits.mass:.0f} of {fits.mass:.0f} rows")
    raw = fits.trimmed(start, share)
    model.raw_weights_, x = raw.w, raw.x
    if model.reweight and share < 1:
        stage("fit to what the labels should have been")
        cut = None if h is None else max(0.0, fits.quantile(judge, noise, share))
        x = fits.fitted(judge, noise, as_x(known), cut)
    model._set_fits(raw.x, raw.objective, raw.history, model._parts(raw.x), model._parts(x))
    model.contamination_, model.noise_matrix_ = 1 - share, noise.T
    model._judged = JudgedLabels(LabelVerdict(noise, [], np.empty(0, np.int64), np.empty(0)), x)
    if flexible is None or plain:  # what was asked about all rows stays; else the final model judges
        judge = LabelJudge.of(model, flexible, verdict.noise)
        fits.hold(None if flexible is None else judge)
    cut = verdict.cut() if noise.epsilon > 0 else inf
    model.threshold_ = cut if h is None else max(0.0, fits.quantile(judge, noise, share))
    fits.publish(judge, noise)
    return judge, noise


def _judge_ridge(fits: LabelFits) -> float:
    """The penalty of the model that judges all labels, beside a mean: where it is asked among others, as calibrated by
    the sample, that of the sample's judges; else next to none, for one that is shrunk is less sure than it could be."""
    C = float(fits.model.C)
    if len(fits.known._judged.verdict.predictions) > 1 and _asks_all(fits):
        return 1 / (C * OTHERS * fits.sample.mass)
    return 0.0 if fits.model.penalty is None else 1 / (max(SURE, C) * fits.mass)


def _asks_all(fits: LabelFits) -> bool:
    """Whether all rows are few enough to be asked about by all models, whatever the sample shows."""
    return fits_in_memory(fits.n, fits.p) and fits.n * fits.K <= HELD and not is_sparse(fits.sample.X)


def _flexible(fits: LabelFits, known: Any, noise: LabelNoise) -> FlexibleModels | None:
    """The flexible models of the sample, where they are to be asked about all rows: always where rows fit in memory;
    beyond, where the linear model alone, with such noise, judges the sample's labels otherwise than all models do."""
    models, sample = len(known._judged.verdict.predictions), fits.sample
    if models == 1 or fits.n * fits.K > HELD or is_sparse(sample.X):
        return None
    if not _asks_all(fits):
        z = two_columns(sample.X @ known.coef_.T + known.intercept_)
        alone = LabelVerdict(noise, [z], sample.codes, np.ones(len(sample.codes)))
        if np.mean((alone.scores > 0) != (known.outlier_scores_ > 0)) < MATTERS:
            return None
    return FlexibleModels.of(sample.X, sample.codes, fits.K, sample.seed, s=sample.s, boosted=models > BOTH)
