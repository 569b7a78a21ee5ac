"""What a fitted linear model says about each row, and what inference has to know of it.

A model is the estimator after its fit: z = ⟨v, coef_⟩ + intercept_, and of a regression y ~ μ(z).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, final

import numpy as np
from scipy.special import stdtr

from trimlearn.estimators.linear.distances import Distances, feature_distances
from trimlearn.estimators.linear.examples import Distinct, Examples
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.inference.design import design
from trimlearn.inference.families import Family
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.precision import leverages
from trimlearn.inference.probability import row_probabilities
from trimlearn.inference.table import Findings, TopFeatures, leverage_kinds, plain_kinds, residual_words
from trimlearn.robust.scale import raw_scale


@final
@dataclass(frozen=True)
class Outcome:
    """What the fit to the distinct rows found.

    raw: the trimmed fit, which keeps the weight ``kept`` and leaves the residuals ``raw_residuals``. The final model,
    of rows weighted ``weights``, leaves ``residuals`` of this scale; beyond ``threshold`` times it, a row is not
    explained. raw_parts, parts: coefficients and intercept of both. told: how probable it is that each row is wrong,
    where the fit tells, and how much that counts beside what residuals tell.
    """

    raw: LinearFit
    kept: float
    raw_residuals: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    scale: float
    threshold: float
    contamination: float
    raw_parts: tuple[np.ndarray, float]
    parts: tuple[np.ndarray, float]
    told: tuple[float, np.ndarray] | None = None


def publish(model: Any, law: Family, data: Examples, distinct: Distinct, found: Outcome) -> None:
    """Set the attributes that all regressions have. data: the rows as given, of which some may be gone."""
    raw, rows = found.raw, distinct.rows
    model._set_fits(raw.x, raw.objective, raw.history, found.raw_parts, found.parts)
    model.contamination_ = found.contamination
    # As R's ltsReg has it, for which all that was trimmed is clean.
    coefficients, intercept = len(raw.x), model.fit_intercept
    model.raw_scale_ = raw_scale(found.raw_residuals, found.kept, coefficients, rows.s, intercept=intercept)
    model.scale_, model.threshold_ = found.scale, found.threshold
    unseen = model._scores(distinct.gone) if distinct.gone.n else np.empty(0)
    model.outlier_scores_, model.weights_, model.raw_weights_ = distinct.spread(
        (np.abs(found.residuals) / found.scale, unseen), (found.weights, unseen <= found.threshold), (raw.w, 0.0)
    )
    probability = row_probabilities(row_p_values(model, law, data), data.s)
    if found.told is not None and distinct.where is not None:
        (share, wrong), fitted = found.told, distinct.where >= 0  # the others are known by their residuals alone
        probability[fitted] += share * (wrong[distinct.where[fitted]] - probability[fitted])
    model.outlier_probability_ = probability


def row_p_values(model: Any, law: Family, data: Examples) -> np.ndarray:
    """p-values of the training rows. A normal error is judged by Student's law, for σ was found from few rows, and in
    units of its own spread: rows that the fit was made for lie nearer to it than others, the more the higher their
    leverage."""
    if law.name != "normal":
        return law.p_values(data.t.astype(np.float64), _means(model, law, data), model.scale_)
    s = np.ones(data.n) if data.s is None else data.s
    freedom = max(1.0, float(s @ model.weights_) - len(model.coef_) - model.fit_intercept)
    spread = np.ones(data.n)
    if not data.large:  # elsewhere leverages are small
        leverage = leverages(design(data.X, model.fit_intercept), s * model.weights_)
        spread = np.where(model.weights_ > 0, np.maximum(1.0 - leverage, 1.0 / (1.0 + freedom)), 1.0 + leverage)
    return np.asarray(2.0 * stdtr(freedom, -model.outlier_scores_ / np.sqrt(spread)))


def regression_findings(model: Any, law: Family, data: Examples, scores: np.ndarray, off: np.ndarray) -> Findings:
    """What is known about each row: by robust distances, where there are any, also whether it is a leverage point.

    Of a row that is off but not far, the residual is all that is special.
    """
    mean = _means(model, law, data)
    unlikely = law.p_values(data.t.astype(np.float64), mean, model.scale_)
    distances = _known_distances(model)
    if distances is None:
        return Findings(scores, unlikely, plain_kinds(off), words=residual_words(data.t - mean, scores, off))
    distance = distances.of(data.X)
    far = distance > distances.limit
    top = TopFeatures(data.X, lambda A, _: distances.parts(A))
    words = residual_words(data.t - mean, scores, off & ~far)
    return Findings(scores, unlikely, leverage_kinds(off, far), distance=distance, top=top, words=words)


def _known_distances(model: Any) -> Distances | None:
    """Robust distances by the training features, found when first asked for; None where there are none."""
    data, known = vars(model).get("_training"), model._covariance
    if known is None and data is not None:
        known = model._covariance = feature_distances(data.X, data.s, model.random_state)
    found: Distances | None = known
    return found


def _means(model: Any, law: Family, data: Examples) -> np.ndarray:
    return np.asarray(law.mean(np.asarray(data.X @ model.coef_ + model.intercept_, dtype=np.float64)))


def fitted_model(
    model: Any,
    data: Examples,
    family: str,
    coef: np.ndarray,
    intercept: Any,
    *,
    ridge: float,
    scale: float | None = None,
    classes: list[Any] | None = None,
) -> Fitted:
    """What inference has to know. ridge: what stands before ½‖coef‖², if the penalty is "l2", where Σ sᵢwᵢfᵢ stands
    beside it. scale: √φ of the family; None: known, or to be found."""
    return Fitted(
        family=family,
        X=data.X,
        y=data.t,
        coef=coef,
        intercept=intercept if model.fit_intercept else None,
        weights=model.weights_,
        sample_weight=data.s,
        scale=scale,
        ridge=ridge if model.penalty == "l2" else 0.0,
        penalty=model.penalty,
        reweighted=model.reweight,
        feature_names=getattr(model, "feature_names_in_", None),
        classes=classes,
        contamination=model.contamination_,
        name=type(model).__name__,
    )


def parting(scores: np.ndarray, weights: np.ndarray, cutoff: float) -> float:
    """The cut-off, moved so that it still parts the rows: the last step moved scores a little."""
    least = scores[weights <= 0].min(initial=inf)
    threshold = cutoff if least > cutoff else float(np.nextafter(least, 0.0))
    return max(threshold, float(scores[weights > 0].max(initial=0.0)))
