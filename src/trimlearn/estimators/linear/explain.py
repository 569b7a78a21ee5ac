"""What a fitted linear model says about each row, and what inference has to know of it.

A model is the estimator after its fit: z = ⟨v, coef_⟩ + intercept_, and of a regression y ~ μ(z).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import stdtr

from trimlearn._utils.warn import warn
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.linear.data import Examples
from trimlearn.inference.design import design
from trimlearn.inference.families import Family
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.precision import leverages
from trimlearn.inference.table import Findings, TopFeatures, distance_parts, leverage_kinds, prediction_parts
from trimlearn.robust.scale import Chi

__all__ = ["fitted_model", "p_values", "regression_findings", "warn_of_exact_fit"]

# Share of rows on an exact fit, below which the others are too many to be mere outliers: routine data hold 1 to 10 % of
# gross errors (Hampel, Ronchetti, Rousseeuw and Stahel 1986, section 1.2c), and some room.
EXACT = 0.85
FAR = 0.025  # share of clean rows beyond the distance of a leverage point (Rousseeuw and van Zomeren 1990)
ROWS_PER_COLUMN = 5  # of which a robust covariance is made, at least: the advice of Rousseeuw and van Zomeren (1990)


def p_values(model: Any, law: Family, data: Examples) -> np.ndarray:
    """p-values of the training rows. A normal error is judged by Student's law, for σ was found from few rows, and in
    units of its own spread: rows that the fit was made for lie nearer to it than others, the more the higher their
    leverage."""
    if law.name != "normal":
        return _family_p_values(model, law, data)
    s = np.ones(data.n) if data.s is None else data.s
    freedom = max(1.0, float(s @ model.weights_) - len(model.coef_) - model.fit_intercept)
    spread = np.ones(data.n)
    if not data.large:  # elsewhere leverages are small
        leverage = leverages(design(data.X, model.fit_intercept), s * model.weights_)
        spread = np.where(model.weights_ > 0, np.maximum(1.0 - leverage, 1.0 / (1.0 + freedom)), 1.0 + leverage)
    return np.asarray(2.0 * stdtr(freedom, -model.outlier_scores_ / np.sqrt(spread)))


def regression_findings(model: Any, law: Family, data: Examples, scores: np.ndarray, off: np.ndarray) -> Findings:
    """What is known about each row: by robust distances, where there are any, also whether it is a leverage point."""
    unlikely, shape = _family_p_values(model, law, data), _robust_covariance(model)
    if shape is None:  # what speaks for a prediction, then
        center = np.asarray(data.X.mean(axis=0), dtype=np.float64).ravel()
        top = TopFeatures(data.X, lambda A, _: prediction_parts(A, model.coef_, center))
        return Findings(scores, unlikely, leverage_kinds(off, np.zeros_like(off)), top=top)
    distance = np.sqrt(shape.mahalanobis(data.X))
    far = distance > Chi(len(model.coef_)).upper(FAR)
    precision, center = shape.get_precision(), shape.location_
    top = TopFeatures(data.X, lambda A, _: distance_parts(A, center, precision))
    return Findings(scores, unlikely, leverage_kinds(off, far), distance=distance, top=top)


def _family_p_values(model: Any, law: Family, data: Examples) -> np.ndarray:
    mean = law.mean(np.asarray(data.X @ model.coef_ + model.intercept_, dtype=np.float64))
    return law.p_values(data.t.astype(np.float64), mean, model.scale_)


def _robust_covariance(model: Any) -> TrimmedCovariance | None:
    """Of the training features, found when first asked for; None where there is none: in sparse or few data, and among
    dummies of categories, most rows being alike in a rare one."""
    data, p = vars(model).get("_training"), len(model.coef_)
    known: TrimmedCovariance | None = model._covariance
    if known is None and data is not None and not issparse(data.X) and data.n >= ROWS_PER_COLUMN * p:
        with warnings.catch_warnings():  # that it is singular is no fault of the regression
            warnings.simplefilter("ignore", UserWarning)
            found = TrimmedCovariance(random_state=model.random_state).fit(data.X, sample_weight=data.s)
        known = model._covariance = found if found._raw.rank == p else None
    return known


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


def warn_of_exact_fit(weights: np.ndarray) -> None:
    """UserWarning where many rows lie on the fit up to rounding, and many do not."""
    share = float(np.mean(weights > 0))
    if share < EXACT:
        warn(
            f"{share:.0%} of the rows lie exactly on the fit, the others count as outliers. If y is rounded, or holds "
            "few values, give a contamination, or use another model.",
        )
