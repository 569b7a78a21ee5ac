"""TrimmedGraphicalLasso: a sparse precision matrix of the rows that agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Table
from trimlearn.estimators.covariance.scatter import Floats, TrimmedScatter
from trimlearn.inference.probability import row_probabilities
from trimlearn.progress import stage
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.scatter.graphical_lasso import graphical_lasso, penalised
from trimlearn.robust.scatter.judge import judge_by_shape, p_values_by_shape
from trimlearn.robust.scatter.mcd import Frame, default_h, mcd
from trimlearn.robust.scatter.starts import NORMAL_SCORES, deterministic
from trimlearn.robust.scatter.steps import FLOOR, STEPS, Shape, squared_distances
from trimlearn.robust.verdict import Verdict
from trimlearn.weights import CappedSimplex

__all__ = ["TrimmedGraphicalLasso"]

ROUNDS = 10  # of judging and fitting again, at most
FEW = 5  # rows per feature below which the start is shrunk
FOLDS = 5
WALK = 8  # steps in which the continuation lowers h


@dataclass(frozen=True)
class Model:
    """w, location μ and precision Θ; J, and J after each concentration step."""

    w: Floats
    mu: Floats
    theta: Floats
    solved: bool  # whether the graphical lasso had converged
    objective: float = inf
    history: tuple[float, ...] = ()
    converged: bool = False

    def squared_distances(self, X: Floats) -> Floats:
        D = X - self.mu
        return np.asarray(np.maximum(np.einsum("np,np->n", D @ self.theta, D), 0.0))


class TrimmedGraphicalLasso(TrimmedScatter):
    """Trimmed likelihood of a sparse normal model: over weights 0 ≤ w ≤ 1 with Σ sᵢwᵢ = h, μ and Θ, minimise

        J = 1/h Σ sᵢwᵢ(aᵢ − μ)ᵀΘ(aᵢ − μ) − log det Θ + α Σ_{j≠k} |Θⱼₖ|

    by concentration: the h nearest rows, then the graphical lasso on their covariance around their mean. A
    zero of Θ is a pair of features that are independent given the others; a few bad rows make every one of them
    disappear. At the end Θ is what `sklearn.covariance.GraphicalLasso(alpha)` gives for the kept rows. Also for p > n.

    Parameters
    ----------
    alpha, tol, max_iter, assume_centered
        As in sklearn.covariance.GraphicalLasso: ``tol`` bounds the duality gap. α has the units of a covariance:
        standardise features that differ.
    contamination, reweight, random_state, verbose
        As in `TrimmedCovariance`.

    Attributes
    ----------
    location_, covariance_, precision_, weights_, contamination_, dist_, outlier_scores_, threshold_
        As in `TrimmedCovariance`.
    raw_location_, raw_covariance_, raw_precision_, raw_weights_ : of the trimmed fit
    objective_, history_, n_iter_ : J of the trimmed fit, J after each of its steps, and their number

    Reference: E. Yang, A. C. Lozano and A. Aravkin, A general family of trimmed estimators for robust high-dimensional
    data analysis (2018).

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> X[:40, :2] += [[6.0, -6.0]]
    >>> model = TrimmedGraphicalLasso(alpha=0.3).fit(X)
    >>> int(np.count_nonzero(model.precision_)), round(model.contamination_, 1)
    (4, 0.2)
    """

    precision_: Floats
    _model: Model
    _raw: Model
    _least: Floats  # the smallest variances to believe in

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        contamination: float | int | str = "auto",
        reweight: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        assume_centered: bool = False,
        random_state: Any = 0,
        verbose: bool | int = 0,
    ) -> None:
        self.alpha = alpha
        self.contamination = contamination
        self.reweight = reweight
        self.tol = tol
        self.max_iter = max_iter
        self.assume_centered = assume_centered
        self.random_state = random_state
        self.verbose = verbose

    def get_precision(self) -> Floats:
        """``precision_``."""
        check_is_fitted(self, "weights_")
        return self.precision_

    def _squared_distances(self, X: Floats) -> Floats:
        return self._model.squared_distances(X)

    def _log_det(self) -> float:
        return -float(np.linalg.slogdet(self._model.theta)[1])

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _fit(self, data: Table, h: float | None, warm: bool) -> Self:
        if not isinstance(self.alpha, Real) or isinstance(self.alpha, bool) or not self.alpha >= 0:
            raise ValueError(f"alpha must be a number >= 0, got {self.alpha!r}.")
        kept, s, where = distinct_rows(data.X, data.s)
        work = Table(data.X[kept], s)  # neither the order of the rows nor how weights are spelled matters
        self._least = FLOOR * Frame.of(work.X, s, self.assume_centered).scale ** 2
        keep = default_h(work.S, work.X.shape[1]) if h is None else h
        raw = self._settle(work, keep, self._raw) if warm else self._search(work, keep)
        verdict, reach, unlikely = self._judge(work, raw, keep)
        if h is None:  # the share of bad rows is known now: more can be kept
            keep = max(keep, work.S * (1.0 - verdict.contamination))
            raw = self._settle(work, keep, raw)
            verdict, reach, unlikely = self._judge(work, raw, keep)
        self._training, self._raw, model = data, raw, raw
        for _ in range(ROUNDS if self.reweight else 0):
            stage(f"fit to the {s @ verdict.inliers:.0f} rows explained")
            model = self._estimate(work, verdict.inliers.astype(np.float64), model)
            verdict, reach, unlikely = self._judge(work, model, keep)
            if np.array_equal(verdict.inliers, model.w > 0):
                break
        self.contamination_ = verdict.contamination if h is None else 1.0 - h / work.S
        self._describe(data, raw, model, reach)
        self.weights_, self.raw_weights_ = (np.append(w, 0.0)[where] for w in (model.w, raw.w))
        probability = row_probabilities(unlikely, s)
        order = np.argsort(self.outlier_scores_[kept])  # it grows with the score, also of rows that were left out
        self.outlier_probability_ = np.interp(
            self.outlier_scores_, self.outlier_scores_[kept][order], np.maximum.accumulate(probability[order])
        )
        return self

    def _describe(self, data: Table, raw: Model, model: Model, reach: float) -> None:
        if not (raw.converged and raw.solved and model.solved):
            message = "TrimmedGraphicalLasso stopped short of a fixed point; raise max_iter, tol or alpha."
            warn(message, ConvergenceWarning)
        constant = np.flatnonzero(1.0 / np.diag(model.theta) <= self._least * (1.0 + 1e-6))
        if len(constant):
            message = f"features {constant.tolist()} of X do not vary among the rows that agree: drop them."
            warn(message)
        self.raw_location_ = raw.mu
        self.raw_covariance_, self.raw_precision_ = np.linalg.inv(raw.theta), raw.theta
        self.objective_, self.history_, self.n_iter_ = raw.objective, list(raw.history), len(raw.history)
        self._model, self.location_ = model, model.mu
        self.covariance_, self.precision_ = np.asarray(np.linalg.inv(model.theta), dtype=np.float64), model.theta
        self.dist_ = model.squared_distances(data.X)
        self.outlier_scores_ = np.sqrt(self.dist_)
        self.threshold_ = sqrt(reach)

    def _judge(self, data: Table, model: Model, h: float) -> tuple[Verdict, float, Floats]:
        """The verdict, the d² up to which a row is an inlier, and the p-values of all rows."""
        d2 = self._honest(data, model)
        verdict, reach = judge_by_shape(d2, h, data.s, self._seed())
        return verdict, reach, p_values_by_shape(d2, verdict, reach)

    def _honest(self, data: Table, model: Model) -> Floats:
        """d² of every row. Few rows are nearer to a fit to them than others: each fifth is judged by the rest."""
        d2 = model.squared_distances(data.X)
        if data.S >= FEW * data.X.shape[1]:
            return d2
        fold = np.unique(d2, return_inverse=True)[1] % FOLDS  # repeated rows together, whatever the order
        for k in range(FOLDS):
            left_out = (fold == k) & (model.w > 0)
            rest = np.where(left_out, 0.0, model.w)
            if left_out.any() and np.count_nonzero(rest) > 2:
                d2[left_out] = self._estimate(data, rest, model).squared_distances(data.X[left_out])
        return d2

    def _search(self, data: Table, h: float) -> Model:
        """The best of the concentrations from every start."""
        walk = self._estimate(data, np.ones(len(data.s)), rough=True)
        for k in range(1, WALK):
            walk = self._step(data, h + (1.0 - k / WALK) * (data.S - h), walk, rough=True)
        starts = [walk, *[self._estimate(data, w) for w in self._starts(data, h)]]
        return min((self._settle(data, h, start) for start in starts), key=lambda model: model.objective)

    def _starts(self, data: Table, h: float) -> list[Floats]:
        """Weights: of the minimum covariance determinant, and by the distances of a robust rank correlation."""
        p = data.X.shape[1]
        rho = None if data.S < FEW * p else 0.0
        found = mcd(data.X, data.s, h, shrinkage=rho, centred=self.assume_centered, starts=100, seed=self._seed())
        Z = found.frame.into(data.X)
        there = data.s > 0
        mu, S = (a[[NORMAL_SCORES]] for a in deterministic(Z[there], data.s[there], self.assume_centered))
        d2 = squared_distances(Z, mu, *Shape(0.1).eigen(S))[0]
        return [found.w, CappedSimplex(h).minimise(d2, data.s)]

    def _settle(self, data: Table, h: float, model: Model) -> Model:
        """Concentration steps until J stops falling."""
        best = replace(model, objective=inf)
        history: list[float] = []
        for k in range(STEPS):
            stage(f"concentration step {k + 1}, keeping {h:.0f} rows: J = {best.objective:.6g}")
            new = self._step(data, h, best)
            if not new.objective < best.objective - 1e-9 * (1.0 + abs(new.objective)):
                return replace(best, history=tuple(history), converged=True)
            best = new
            history.append(new.objective)
        return replace(best, history=tuple(history))

    def _estimate(self, data: Table, w: Floats, near: Model | None = None, rough: bool = False) -> Model:
        """The graphical lasso of the rows that w keeps, begun at the one of a model that is near."""
        X, c = data.X[w > 0], (data.s * w)[w > 0]
        mu = np.zeros(X.shape[1]) if self.assume_centered else c @ X / c.sum()
        S = (X - mu).T @ ((X - mu) * c[:, None]) / c.sum()
        np.fill_diagonal(S, np.maximum(np.diag(S), self._least))
        tol, most = (max(0.1, self.tol), 50) if rough else (self.tol, self.max_iter)
        theta, solved = graphical_lasso(S, float(self.alpha), None if near is None else near.theta, tol, most)
        return Model(w, mu, theta, solved, penalised(S, theta, float(self.alpha)))

    def _step(self, data: Table, h: float, model: Model, rough: bool = False) -> Model:
        """The h nearest rows, and the model for them."""
        return self._estimate(data, CappedSimplex(h).minimise(model.squared_distances(data.X), data.s), model, rough)
