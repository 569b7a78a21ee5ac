"""What strangers bring to the solvers: losses without Lipschitz constants, with closed forms, with a start; metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odd_losses import Distance, Hinge, Ordinal, Pinball, Tukey, Weibull
from trimlearn import Problem, solve
from trimlearn.losses import LeastSquares, Loss, check_loss, select, weighted
from trimlearn.regularizers import L1, Ridge
from trimlearn.smart import Metric, alternating, svrg
from trimlearn.starts import Continuation
from trimlearn.weights import AllOnes, CappedSimplex

RNG = np.random.default_rng(0)
V = np.vstack([RNG.standard_normal((90, 2)) + np.array([1.0, 2.0]), RNG.standard_normal((10, 2)) + 30.0])


class Centre(Loss):
    """½‖x − vᵢ‖², with a closed form that is asked how often it was called."""

    def __init__(self, passes: float = 1.0, near: bool = False) -> None:
        self.V, self.n, self.x_shape, self.like = V, len(V), (2,), V
        self.passes, self.near, self.calls = passes, near, 0

    def values(self, x: Any, rows: Any = None) -> Any:
        return 0.5 * np.sum((x - select(self.V, rows)) ** 2, axis=1)

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        return weighted(x - select(self.V, rows), c).sum(axis=0)

    def minimiser(self, c: Any, r2: Any, x: Any) -> Any:
        self.calls += 1
        return weighted(self.V, c).sum(axis=0) / c.sum()

    @property
    def minimiser_passes(self) -> float:
        return self.passes

    @property
    def starts_near(self) -> bool:
        return self.near

    def start(self) -> Any:
        return np.array([1.5, 1.5]) if self.near else np.zeros(2)


def test_lipschitz_constants_are_optional() -> None:
    loss = Centre()
    check_loss(loss)
    assert np.all(np.isinf(loss.lipschitz())) and loss.lipschitz().shape == (100,)
    with pytest.raises(
        ValueError, match=r"L is infinite: this loss gives no global Lipschitz .*lipschitz.*step=\"auto\""
    ):
        solve(Problem(loss, CappedSimplex(90)), svrg(step="theory"))
    assert solve(Problem(loss, CappedSimplex(90)), svrg(), max_passes=400).status.converged


@pytest.mark.parametrize("passes", [0.0, 1.0, 7.0])
def test_a_closed_form_is_counted_as_it_says(passes: float) -> None:
    loss = Centre(passes)
    fit = solve(Problem(loss, CappedSimplex(90)), alternating(), max_passes=1000)
    assert fit.status.converged
    np.testing.assert_allclose(fit.x, V[:90].mean(axis=0), atol=0.3)
    free = solve(Problem(Centre(0.0), CappedSimplex(90)), alternating(), max_passes=1000, start=None)
    counted = solve(Problem(other := Centre(passes), CappedSimplex(90)), alternating(), max_passes=1000, start=None)
    assert counted.passes == pytest.approx(free.passes + passes * other.calls)


def test_a_closed_form_is_not_called_where_too_few_passes_are_left() -> None:
    for passes in (1.0, 5.0, 30.0):
        loss = Centre(passes)
        fit = solve(Problem(loss, CappedSimplex(90)), alternating(), max_passes=20)
        assert fit.passes <= 20 + 2
        assert loss.calls * passes <= 20


def test_the_packages_closed_forms_evaluate_no_residuals() -> None:
    assert LeastSquares(V, V[:, 0]).minimiser_passes == 0.0


def test_a_good_guess_is_kept() -> None:
    """A continuation begins with a fit to everything, which outliers drag away; a guess is trimmed at once."""
    near, far = (Problem(Centre(near=guess), CappedSimplex(90)) for guess in (True, False))
    histories = [solve(problem).history for problem in (near, far)]
    assert histories[0][0].h == 90 and histories[1][0].h == 100
    assert solve(near, start=Continuation()).history[0].h == 100, "a start that is given is kept to"
    assert solve(Problem(Centre(near=True), AllOnes())).status.converged


class Units(Metric):
    def __init__(self, *unit: float) -> None:
        self.unit = unit

    def check(self, r2: Any) -> None:
        if not r2.smooth:
            raise ValueError(f"Units needs a smooth r2, not {r2.name}.")

    def learn(self, engine: Any, state: Any, noise: float) -> None:
        return

    def apply(self, state: Any, g: Any) -> Any:
        return np.asarray(self.unit) ** 2 * g


def test_a_run_with_a_metric_of_ones_own_is_resumed(tmp_path: Path) -> None:
    """Its text has no address in it, which would differ from process to process."""
    assert repr(Units(1.0, 2.0)) == "Units(unit=(1.0, 2.0))"
    problem, file = Problem(Centre(), CappedSimplex(90)), tmp_path / "run.npz"
    whole = solve(problem, svrg(metric=Units(1.0, 2.0)), max_passes=40, tol=0)
    solve(problem, svrg(metric=Units(1.0, 2.0)), max_passes=20, tol=0, checkpoint=file)
    again = solve(problem, svrg(metric=Units(1.0, 2.0)), max_passes=40, tol=0, checkpoint=file)
    np.testing.assert_array_equal(again.x, whole.x)


# -- hostile losses ---------------------------------------------------------------------------------------------------

X = np.random.default_rng(1).standard_normal((300, 3))
LINE = X @ [1.0, 2.0, -1.0] + 0.3 * np.random.default_rng(2).standard_normal(300)
SPIKED = LINE + np.where(np.arange(300) < 30, 30.0, 0.0)
TIMES = np.exp(X @ [1.0, 2.0, -1.0] + 0.4 * np.log(np.random.default_rng(4).exponential(size=300)))
TIMES[:30] *= 1000
RATED = np.digitize(X @ [1.0, 2.0, -1.0] + np.random.default_rng(5).logistic(size=300), [-1, 1])
SIGN = np.where(np.arange(300) < 15, -1.0, 1.0) * np.sign(LINE)


@pytest.mark.parametrize("method", [None, svrg()], ids=["alternating", "svrg"])
@pytest.mark.parametrize("r2", [None, Ridge(1e-4), L1(1e-4)], ids=["zero", "ridge", "lasso"])
@pytest.mark.parametrize("loss", [Pinball(X, SPIKED, q=0.5), Hinge(X, SIGN)], ids=["pinball", "hinge"])
def test_a_loss_of_kinks_is_fitted_and_never_certified(loss: Loss, r2: Any, method: Any) -> None:
    """Its Hessian is 0: Newton's model has no minimum, and that is no sign that x is at one."""
    fit = solve(Problem(loss, CappedSimplex(265), r2), method)
    assert not fit.status.converged
    slope = fit.x[:3] / np.linalg.norm(fit.x[:3])
    np.testing.assert_allclose(slope, np.array([1, 2, -1]) / 6**0.5, atol=0.15)
    assert np.mean(fit.w[:15]) < 0.1


@pytest.mark.parametrize(
    "loss",
    [Tukey(X, SPIKED), Weibull(X, TIMES, np.ones(300)), Ordinal(X, RATED)],
    ids=["tukey", "weibull", "ordinal"],
)
def test_smooth_losses_of_strangers_converge(loss: Loss) -> None:
    fit = solve(Problem(loss, CappedSimplex(265)))
    assert fit.status.converged
    slope = fit.x[:3] / np.linalg.norm(fit.x[:3])
    np.testing.assert_allclose(slope, np.array([1, 2, -1]) / 6**0.5, atol=0.15)
    s = np.random.default_rng(3).integers(0, 3, 300).astype(float)
    assert solve(Problem(loss, CappedSimplex(0.85 * s.sum()), sample_weight=s)).status.converged


@pytest.mark.parametrize("options", [{}, {"start": None}, {"method": svrg()}, {"method": alternating(inner="lbfgs")}])
def test_examples_that_are_nan_are_trimmed_first(options: dict[str, Any]) -> None:
    data = X.copy()
    data[:10] = np.nan
    fit = solve(Problem(Distance(data), CappedSimplex(280)), **options, max_passes=300)
    assert fit.status.converged and np.all(fit.w[:10] == 0)
    same = solve(Problem(Distance(data[10:]), CappedSimplex(280)), **options, max_passes=300)
    np.testing.assert_allclose(fit.objective, same.objective * 290 / 300, rtol=1e-2)
    few = Problem(Distance(data), CappedSimplex(295))
    with pytest.raises(ValueError, match=r"10 of 300 losses are NaN where the solver starts, and h = 295 keeps some"):
        solve(few, **options)
