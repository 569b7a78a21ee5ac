"""TrimmedGraphicalLasso: a sparse precision matrix of the rows that agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import Any, Final, Self, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.warn import warn
from trimlearn.estimators.covariance.scatter import TrimmedScatter
from trimlearn.estimators.covariance.trimming import FEW, ScatterCriterion, fit_trimmed
from trimlearn.estimators.detector import FeatureRows
from trimlearn.inference.probability import row_probabilities
from trimlearn.progress import stage
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.scatter.graphical_lasso import SparseNormal, graphical_lasso, penalised
from trimlearn.robust.scatter.judge import (
    JudgedScatter,
    UnseenRows,
    effective_freedom,
    judge_by_shape,
    rows_to_spare,
)
from trimlearn.robust.scatter.mcd import mcd
from trimlearn.robust.scatter.starts import normal_scores
from trimlearn.robust.scatter.steps import FLOOR, STEPS, Shrinkage
from trimlearn.robust.scatter.units import RobustUnits
from trimlearn.weights import CappedSimplex

__all__ = ["TrimmedGraphicalLasso", "location_and_covariance"]

FOLDS: Final = 5  # in which few rows are left out to judge them: as many as in scikit-learn's cross-validation
SETTLED: Final = 50  # rows per feature from which that makes no difference: 2 % of a distance
# Steps in which the continuation lowers h: in a single one J ends 0.07 higher, in twice as many 0.003 lower
# (`benchmarks.calibration scatter`).
WALK: Final = 8
STARTS: Final = 100  # random ones of the determinant; 20 find what 500 find (`benchmarks.calibration scatter`)
RANKED: Final = Shrinkage(0.1)  # for the distances of the start by ranks, also regular for p > n: MRCD's cautious ρ


class TrimmedGraphicalLasso(TrimmedScatter):
    """Trimmed likelihood of a sparse normal model: which features depend on each other, by the rows that agree.

    Over weights 0 ≤ w ≤ 1 with Σ sᵢwᵢ = h, μ and Θ it minimises

        J = 1/h Σ sᵢwᵢ(aᵢ − μ)ᵀΘ(aᵢ − μ) − log det Θ + α Σ_{j≠k} |Θⱼₖ|

    by concentration: the h nearest rows, then the graphical lasso on their covariance around their mean. A
    zero of Θ is a pair of features that are independent given the others; a few bad rows make every one of them
    disappear. At the end Θ is what `sklearn.covariance.GraphicalLasso(alpha)` gives for the kept rows. Also for p > n.

    Parameters
    ----------
    alpha : float, default=0.01
        The penalty, the first parameter as in sklearn.covariance.GraphicalLasso. It has the units of a covariance:
        standardise features that differ.
    contamination : "auto", float in [0, 1) or int, default="auto"
        Share or number of bad rows; "auto" starts from the h of the highest breakdown and estimates it.
    reweight : bool, default=True
        Whether to readmit what the trimmed fit explains.
    tol : float, default=1e-4
        Bound on the duality gap, as in sklearn.covariance.GraphicalLasso.
    max_iter : int, default=1000
        Steps of the graphical lasso at most.
    assume_centered : bool, default=False
        Whether the location is known to be 0.
    random_state : int, RandomState instance or None, default=None
        For the random starts. Give an int for the same result in every call.
    verbose : bool or int, default=0
        Show on stderr what the fit is doing.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Robust location μ.
    covariance_ : ndarray of shape (n_features, n_features)
        The inverse of Θ.
    precision_ : ndarray of shape (n_features, n_features)
        Θ, with exact zeros.
    dist_ : ndarray of shape (n_samples,)
        Squared robust distances of the training rows.
    support_ : ndarray of shape (n_samples,)
        ``inlier_mask_``, by the name it has in sklearn.covariance.MinCovDet.
    weights_ : ndarray of shape (n_samples,)
        What each row counts in the end.
    inlier_mask_ : ndarray of shape (n_samples,)
        Which rows count: ``weights_ > 0``.
    raw_location_, raw_covariance_, raw_precision_, raw_weights_, raw_support_ : ndarray
        Of the trimmed fit.
    contamination_ : float
        The share of bad rows: estimated, or as given. It is not the share flagged.
    outlier_scores_ : ndarray of shape (n_samples,)
        Robust distances, not squared.
    outlier_probability_ : ndarray of shape (n_samples,)
        The probability that a row is wrong.
    threshold_ : float
        The distance beyond which an unseen row is an outlier.
    objective_ : float
        Value of J of the trimmed fit.
    history_ : list of Record
        One record per concentration step of the trimmed fit.
    n_iter_ : int
        The number of these steps.
    n_features_in_ : int
        The number of features.

    References
    ----------
    E. Yang, A. C. Lozano and A. Aravkin, A general family of trimmed estimators for robust high-dimensional data
    analysis, Electron. J. Stat. 12 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> X[:40, :2] += [[6.0, -6.0]]
    >>> model = TrimmedGraphicalLasso(alpha=0.3, random_state=0).fit(X)
    >>> int(np.count_nonzero(model.precision_)), round(model.contamination_, 1)
    (4, 0.2)
    """

    _raw: SparseNormal

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        contamination: float | int | str = "auto",
        reweight: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        assume_centered: bool = False,
        random_state: Any = None,
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

    def _fit(self, data: FeatureRows, h: float | None, warm: bool) -> Self:
        if not isinstance(self.alpha, Real) or isinstance(self.alpha, bool) or not self.alpha >= 0:
            raise ValueError(f"alpha must be a number >= 0, got {self.alpha!r}.")
        kept, s, where = distinct_rows(data.X, data.s)  # neither the order of rows nor how weights are spelled matters
        if len(kept) < 2:
            raise ValueError("all rows of X are the same: there is no covariance to be estimated.")
        rows = FeatureRows(data.X[kept], s)
        least = FLOOR * RobustUnits.of(rows.X, s, self.assume_centered).scale ** 2
        options = float(self.alpha), self.tol, self.max_iter
        criterion = _PenalisedLikelihood(rows, *options, self.assume_centered, least, self._seed())
        shape = rows.S, rows.X.shape[1]
        found = fit_trimmed(criterion, shape, h, self._raw if warm else None, self.reweight)
        nothing_said = self._publish(data, found, h)
        self.precision_, self.raw_precision_ = found.final.model.precision, found.raw.precision
        self.weights_, self.raw_weights_ = (np.append(w, 0.0)[where] for w in (found.final.model.w, found.raw.w))
        scores, probability = self.outlier_scores_[kept], row_probabilities(found.final.p_values, s)
        order = np.argsort(scores)  # the probability grows with the score, also of rows that were left out
        increasing = np.maximum.accumulate(probability[order])
        self.outlier_probability_ = np.interp(self.outlier_scores_, scores[order], increasing)
        _warn(found.raw, found.final.model, least)
        if nothing_said and h is None:
            self._doubt_errors(data)
        return self


def location_and_covariance(X: np.ndarray, c: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of the rows of X, weighted by c; the location is 0 where they are ``centred``."""
    X, c = X[c > 0], c[c > 0]
    mu = np.zeros(X.shape[1]) if centred else c @ X / c.sum()
    return mu, np.asarray((X - mu).T @ ((X - mu) * c[:, None]) / c.sum())


def _warn(raw: SparseNormal, final: SparseNormal, least: np.ndarray) -> None:
    if not (raw.converged and raw.solved and final.solved):
        message = "TrimmedGraphicalLasso stopped short of a fixed point; raise max_iter, tol or alpha."
        warn(message, ConvergenceWarning)
    constant = np.flatnonzero(1.0 / np.diag(final.precision) <= least * (1.0 + 1e-6))  # but for rounding
    if len(constant):
        warn(f"features {constant.tolist()} of X do not vary among the rows that agree: drop them.")


@final
@dataclass(frozen=True)
class _PenalisedLikelihood(ScatterCriterion[SparseNormal]):
    """J of the rows kept. ``least``: the smallest variances to believe in.

    Nothing is doubted: a penalised fit to few rows explains most rows in any case.
    """

    data: FeatureRows
    alpha: float
    tol: float
    max_iter: int
    centred: bool
    least: np.ndarray
    seed: int

    def search(self, h: float) -> SparseNormal:
        """The best of the concentrations from every start."""
        walk = self._estimate(np.ones(len(self.data.s)))
        for k in range(1, WALK):
            walk = self._step(h + (1.0 - k / WALK) * (self.data.S - h), walk)
        starts = [walk, *[self._estimate(w) for w in self._starts(h)]]
        return min((self.concentrate(start, h) for start in starts), key=lambda model: model.objective)

    def concentrate(self, model: SparseNormal, h: float) -> SparseNormal:
        """Concentration steps until J stops falling."""
        best = replace(model, objective=inf)
        history: list[float] = []
        for k in range(STEPS):
            stage(f"concentration step {k + 1}, keeping {h:.0f} rows: J = {best.objective:.6g}")
            new = self._step(h, best)
            if not new.objective < best.objective - 1e-9 * (1.0 + abs(new.objective)):  # rounding, at most
                return replace(best, history=tuple(history), converged=True)
            best = new
            history.append(new.objective)
        return replace(best, history=tuple(history))

    def judge(self, model: SparseNormal, h: float) -> JudgedScatter[SparseNormal]:
        """Rows are nearer to a fit to them than others: where there are not very many, each fifth is judged by the
        rest, and all as rows that were not fitted to."""
        s, inside = self.data.s, model.w > 0
        d2, m, p = model.squared_distances(self.data.X), float(s @ model.w), self.data.X.shape[1]
        seen, shown = float(s * model.w @ d2), inf
        if self.data.S < SETTLED * p:
            d2, shown = self._unseen(model, d2)
        if self.data.S < p and shown < inf:  # where no row varies Θ is the penalty's, and there are no rows to spare
            return judge_by_shape(model, d2, h, s, shown)
        freedom = effective_freedom(model.precision, self._moments(model.w)[1], m)
        spare = rows_to_spare(float(s * model.w @ d2), seen, (1.0 - 1.0 / FOLDS) * m)
        return UnseenRows(d2, s, inside, m, freedom, spare, FOLDS).judge(model, h)

    def _unseen(self, model: SparseNormal, d2: np.ndarray) -> tuple[np.ndarray, float]:
        """The squared distances, for rows fitted to from a model fitted without them; and the freedom of these, by
        pairs u, v of them: (E uᵀΘu)²/E (uᵀΘv)² (Satterthwaite 1946)."""
        d2, own, across = d2.copy(), np.zeros(2), np.zeros(2)
        fold = np.unique(d2, return_inverse=True)[1] % FOLDS  # repeated rows together, whatever the order
        for k in range(FOLDS):
            out = (fold == k) & (model.w > 0)
            rest = np.where(out, 0.0, model.w)
            if out.any() and np.count_nonzero(rest) > 2:
                fit = self._estimate(rest)
                U, c = self.data.X[out] - fit.location, self.data.s[out]
                G = U @ fit.precision @ U.T
                d2[out] = np.diag(G)
                pairs = np.outer(c, c) * ~np.eye(len(c), dtype=bool)
                own += c @ d2[out], c.sum()
                across += np.sum(pairs * G**2), pairs.sum()
        return d2, float((own[0] / own[1]) ** 2 / (across[0] / across[1])) if across[0] > 0 else inf

    def refit(self, w: np.ndarray, near: SparseNormal, h: float) -> JudgedScatter[SparseNormal]:
        stage(f"fit to the {self.data.s @ w:.0f} rows explained")
        return self.judge(self._estimate(w), h)

    def _starts(self, h: float) -> list[np.ndarray]:
        """Weights: of the minimum covariance determinant, and by the distances of a robust rank correlation."""
        X, s = self.data.X, self.data.s
        rho = None if self.data.S < FEW * X.shape[1] else 0.0
        found = mcd(X, s, h, shrinkage=rho, centred=self.centred, starts=STARTS, seed=self.seed)
        Z = found.units.into(X)
        d2 = normal_scores(Z, s, self.centred).squared_distances(Z, RANKED)[0]
        return [found.w, CappedSimplex(h).minimise(d2, s)]

    def _step(self, h: float, model: SparseNormal) -> SparseNormal:
        """The h nearest rows, and the model for them."""
        nearest = CappedSimplex(h).minimise(model.squared_distances(self.data.X), self.data.s)
        return self._estimate(nearest)

    def _moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mu, S = location_and_covariance(self.data.X, self.data.s * w, self.centred)
        np.fill_diagonal(S, np.maximum(np.diag(S), self.least))
        return mu, S

    def _estimate(self, w: np.ndarray) -> SparseNormal:
        """The graphical lasso of the rows that w keeps."""
        mu, S = self._moments(w)
        theta, solved = graphical_lasso(S, self.alpha, self.tol, self.max_iter)
        return SparseNormal(w, mu, theta, solved, penalised(S, theta, self.alpha))
