"""Standard errors, intervals and summaries, against R's output and formulas written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import softmax
from sklearn.base import BaseEstimator

from trimlearn import TrimmedLinearRegression
from trimlearn.inference import design, outlier_table
from trimlearn.inference.families import FAMILIES, family
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import Inference, IntervalMixin, infer

# R's stackloss: Air.Flow, Water.Temp, Acid.Conc., stack.loss (Brownlee 1965)
STACKLOSS = np.array(
    [
        [80, 27, 89, 42], [80, 27, 88, 37], [75, 25, 90, 37], [62, 24, 87, 28], [62, 22, 87, 18], [62, 23, 87, 18],
        [62, 24, 93, 19], [62, 24, 93, 20], [58, 23, 87, 15], [58, 18, 80, 14], [58, 18, 89, 14], [58, 17, 88, 13],
        [58, 18, 82, 11], [58, 19, 93, 12], [50, 18, 89, 8], [50, 18, 86, 7], [50, 19, 72, 8], [50, 19, 79, 8],
        [50, 20, 80, 9], [56, 20, 82, 15], [70, 20, 91, 15],
    ],
    dtype=float,
)  # fmt: skip
FEATURES = ("Air.Flow", "Water.Temp", "Acid.Conc.")

# R's trees: girth, height, volume
TREES = np.array(
    [
        [8.3, 70, 10.3], [8.6, 65, 10.3], [8.8, 63, 10.2], [10.5, 72, 16.4], [10.7, 81, 18.8], [10.8, 83, 19.7],
        [11.0, 66, 15.6], [11.0, 75, 18.2], [11.1, 80, 22.6], [11.2, 75, 19.9], [11.3, 79, 24.2], [11.4, 76, 21.0],
        [11.4, 76, 21.4], [11.7, 69, 21.3], [12.0, 75, 19.1], [12.9, 74, 22.2], [12.9, 85, 33.8], [13.3, 86, 27.4],
        [13.7, 71, 25.7], [13.8, 64, 24.9], [14.0, 78, 34.5], [14.2, 80, 31.7], [14.5, 74, 36.3], [16.0, 72, 38.3],
        [16.3, 77, 42.6], [17.3, 81, 55.4], [17.5, 82, 55.7], [17.9, 80, 58.3], [18.0, 80, 51.5], [18.0, 80, 51.0],
        [20.6, 87, 77.0],
    ]
)  # fmt: skip

# R's mtcars: am, wt, hp
CARS = np.array(
    [
        [1, 2.620, 110], [1, 2.875, 110], [1, 2.320, 93], [0, 3.215, 110], [0, 3.440, 175], [0, 3.460, 105],
        [0, 3.570, 245], [0, 3.190, 62], [0, 3.150, 95], [0, 3.440, 123], [0, 3.440, 123], [0, 4.070, 180],
        [0, 3.730, 180], [0, 3.780, 180], [0, 5.250, 205], [0, 5.424, 215], [0, 5.345, 230], [1, 2.200, 66],
        [1, 1.615, 52], [1, 1.835, 65], [0, 2.465, 97], [0, 3.520, 150], [0, 3.435, 150], [0, 3.840, 245],
        [0, 3.845, 175], [1, 1.935, 66], [1, 2.140, 91], [1, 1.513, 113], [1, 3.170, 264], [1, 2.770, 175],
        [1, 3.570, 335], [1, 2.780, 109],
    ]
)  # fmt: skip

# R's InsectSprays: 12 counts for each of six sprays
INSECTS = np.array(
    [10, 7, 20, 14, 14, 12, 10, 23, 17, 20, 14, 13, 11, 17, 21, 11, 16, 14, 17, 17, 19, 21, 7, 13, 0, 1, 7, 2, 3, 1, 2,
     1, 3, 0, 1, 4, 3, 5, 12, 6, 4, 3, 5, 5, 5, 5, 2, 4, 3, 5, 3, 5, 3, 6, 1, 1, 3, 2, 6, 4, 11, 9, 15, 22, 15, 16, 13,
     10, 26, 26, 24, 13], dtype=float,
)  # fmt: skip


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def least_squares(X: Any, y: np.ndarray, c: np.ndarray | None = None, intercept: bool = True, **more: Any) -> Fitted:
    """Fitted by weighted least squares, weights c split into w·s as told by ``more``."""
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    A = with_ones(dense) if intercept else dense
    w = np.ones(len(y)) if c is None else c
    root = np.sqrt(w * (1 if more.get("sample_weight") is None else more["sample_weight"]))
    on = root > 0
    b = np.linalg.lstsq(A[on] * root[on, None], (y * root)[on], rcond=1e-10)[0]
    coef, b0 = (b[1:], b[0]) if intercept else (b, None)
    return Fitted("normal", X, y, coef, b0, w, **more)


def by_newton(name: str, X: np.ndarray, y: np.ndarray, ridge: float = 0.0, **more: Any) -> Fitted:
    """A generalised linear model fitted by Fisher scoring."""
    A, law = with_ones(X), family(name)
    b = np.append(law.link(y.mean()), np.zeros(X.shape[1]))
    P = ridge * np.diag(np.append(0.0, np.ones(X.shape[1])))
    for _ in range(20):
        z = A @ b
        H = (A * law.information(z)[:, None]).T @ A + P
        b = b - np.linalg.solve(H, A.T @ law.evaluate(z, y)[1] + P @ b)
    return Fitted(name, X, y, b[1:], b[0], np.ones(len(y)), ridge=ridge, **more)


@pytest.fixture(scope="module")
def stackloss() -> Inference:
    return infer(least_squares(STACKLOSS[:, :3], STACKLOSS[:, 3], feature_names=FEATURES))


# -- figures printed by R 4: summary(lm(stack.loss ~ ., stackloss)), confint, predict ---------------------------------


def test_coefficients_of_stackloss_as_r_prints_them(stackloss: Inference) -> None:
    assert stackloss.names == ("intercept", *FEATURES)
    expected = [
        [-39.9196744201, 11.8959968506, -3.3557233514, 3.750306832e-03, -65.0180338895, -14.821314951],
        [0.7156402005, 0.1348581854, 5.3066130068, 5.799024724e-05, 0.4311143002, 1.000166101],
        [1.2952861244, 0.3680242653, 3.5195671770, 2.630054396e-03, 0.5188227965, 2.071749452],
        [-0.1521225191, 0.1562940432, -0.9733097691, 3.440460967e-01, -0.4818741263, 0.177629088],
    ]
    found = np.column_stack(
        [stackloss.estimate, stackloss.std_error, stackloss.statistic, stackloss.p_value, stackloss.conf_int()]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_quality_of_stackloss_as_r_prints_it(stackloss: Inference) -> None:
    assert stackloss.scale == pytest.approx(3.243364, rel=1e-6)
    assert stackloss.df_resid == pytest.approx(17)
    assert stackloss.deviance_explained == pytest.approx(0.9135769, rel=1e-6)
    assert stackloss.adjusted == pytest.approx(0.8983258, rel=1e-6)
    assert stackloss.f_test == pytest.approx((59.90223, 3, 17, 3.016327e-09), rel=1e-6)
    np.testing.assert_allclose(
        stackloss.residual_quantiles, [-7.237713, -1.711654, -0.455093, 2.361418, 5.697774], rtol=1e-5
    )


def test_prediction_intervals_of_stackloss_as_r_prints_them(stackloss: Inference) -> None:
    new = STACKLOSS[:2, :3]
    prediction = [[30.95859041, 46.57213514], [31.06202430, 46.77294628]]
    mean = [[35.00764828, 42.52307727], [35.05963734, 42.77533324]]
    np.testing.assert_allclose(stackloss.predict_interval(new), prediction, rtol=1e-8)
    np.testing.assert_allclose(stackloss.predict_interval(new, kind="mean"), mean, rtol=1e-8)
    wide, narrow = stackloss.predict_interval(new, level=0.99), stackloss.predict_interval(new, level=0.5)
    assert np.all(wide[:, 0] < narrow[:, 0]) and np.all(wide[:, 1] > narrow[:, 1])


ERRORS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "t3": lambda rng, n: rng.standard_t(3, n),
}


@pytest.mark.parametrize("law", ERRORS)
@pytest.mark.parametrize("n", [15, 60])
def test_intervals_for_new_rows_hold_for_errors_of_any_law(law: str, n: int) -> None:
    rng, held, widths = np.random.default_rng(5), [], []
    for _ in range(150):
        X, new = rng.standard_normal((n, 2)), rng.standard_normal((100, 2))
        fit = least_squares(X, ERRORS[law](rng, n))
        y, normal = ERRORS[law](rng, 100), infer(fit).predict_interval(new)
        low, high = infer(replace(fit, innocence=np.ones(n))).predict_interval(new).T
        held.append(np.mean((low <= y) & (y <= high)))
        widths.append(np.mean(high - low) / np.mean(np.diff(normal)))
    assert np.mean(held) >= 0.94
    assert law != "normal" or np.mean(widths) < 1.1


def test_rows_left_out_widen_an_interval_on_their_side_by_how_likely_they_are_right() -> None:
    rng = np.random.default_rng(6)
    X, y, right = rng.standard_normal((60, 1)), rng.standard_normal(60), np.ones(60)
    y[:4] = 4.0
    w = np.where(np.arange(60) < 4, 0.0, 1.0)
    ends = []
    for share in (0.0, 0.5):
        right[:4] = share
        ends.append(infer(replace(least_squares(X, y, w), innocence=right)).predict_interval(np.zeros((1, 1)))[0])
    (low, high), (doubted_low, doubted_high) = ends
    assert doubted_high > high + 0.2 and doubted_low == pytest.approx(low, abs=0.1)


def test_trimmed_stackloss_as_ltsreg_prints_it() -> None:
    """summary(ltsReg(stack.loss ~ ., data = stackloss)), robustbase: rows 1, 3, 4, 21 have weight 0."""
    w = np.ones(21)
    w[[0, 2, 3, 20]] = 0
    found = infer(least_squares(STACKLOSS[:, :3], STACKLOSS[:, 3], w))
    np.testing.assert_allclose(found.estimate, [-37.65246, 0.79769, 0.57734, -0.06706], atol=5e-6)
    np.testing.assert_allclose(found.std_error, [4.73205, 0.06744, 0.16597, 0.06160], atol=5e-6)
    np.testing.assert_allclose(found.p_value, [2.37e-06, 2.48e-08, 0.00408, 0.29611], rtol=3e-3)
    assert found.scale == pytest.approx(1.253, abs=5e-4) and found.df_resid == pytest.approx(13)
    assert found.deviance_explained == pytest.approx(0.975, abs=5e-4)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_scale_given_is_used(scale: float) -> None:
    fit = least_squares(STACKLOSS[:, :3], STACKLOSS[:, 3], scale=scale)
    own = infer(least_squares(STACKLOSS[:, :3], STACKLOSS[:, 3]))
    np.testing.assert_allclose(infer(fit).std_error, own.std_error * scale / own.scale, rtol=1e-12)


def test_poisson_as_r_prints_it() -> None:
    """coef(summary(glm(count ~ spray, poisson, InsectSprays, control = glm.control(epsilon = 1e-15))))."""
    X = np.repeat(np.eye(6)[:, 1:], 12, axis=0)
    found = infer(by_newton("poisson", X, INSECTS))
    se = [0.07580980436, 0.10574454617, 0.21388577895, 0.15065284259, 0.17192047652, 0.10366834829]
    np.testing.assert_allclose(found.estimate[:2], [2.67414864943, 0.05588045839], rtol=1e-9)
    np.testing.assert_allclose(found.std_error, se, rtol=1e-9)
    np.testing.assert_allclose(found.p_value[[1, 2]], [5.971886629e-01, 1.178205199e-19], rtol=1e-7)
    assert (found.deviance, found.rows.null_deviance) == pytest.approx((98.32866302, 409.04119272), rel=1e-9)
    assert found.scale == 1.0 and found.f_test is None and found.adjusted is None


def test_gamma_as_r_prints_it() -> None:
    """summary(glm(Volume ~ Girth + Height, Gamma("log"), trees, control = glm.control(epsilon = 1e-15)))."""
    found = infer(by_newton("gamma", TREES[:, :2], TREES[:, 2]))
    np.testing.assert_allclose(found.std_error, [0.215867632107, 0.006603922654, 0.003252453413], rtol=1e-8)
    np.testing.assert_allclose(found.p_value, [6.722197379e-01, 3.286220195e-19, 2.127055507e-05], rtol=1e-6)
    assert found.scale**2 == pytest.approx(0.00941021237, rel=1e-8)
    assert (found.deviance, found.rows.null_deviance) == pytest.approx((0.2624746961, 8.3172012147), rel=1e-8)


def test_a_row_of_weight_2_has_the_interval_of_a_row_that_is_there_twice() -> None:
    rng = np.random.default_rng(7000)
    X = rng.normal(size=(20, 2))
    y, s = X.sum(axis=1) + rng.normal(size=20), rng.choice([1.0, 2.0, 0.0], 20)
    copies = np.repeat(np.arange(20), s.astype(int))
    weighted = TrimmedLinearRegression().fit(X, y, sample_weight=s).predict_interval(X)
    np.testing.assert_allclose(weighted, TrimmedLinearRegression().fit(X[copies], y[copies]).predict_interval(X))


def test_binomial_as_r_prints_it() -> None:
    """summary(glm(am ~ wt + hp, binomial, mtcars)), once more from its own end: R's errors lag one iteration behind."""
    found = infer(by_newton("binomial", CARS[:, 1:], CARS[:, 0]))
    np.testing.assert_allclose(found.estimate, [18.86629871720, -8.08347518244, 0.03625559608], rtol=1e-8)
    np.testing.assert_allclose(found.std_error, [7.4435584279817, 3.0686752753906, 0.0177341543319], rtol=1e-9)
    np.testing.assert_allclose(found.p_value, [0.01125820274076, 0.00843381606129, 0.04091465421038], rtol=1e-8)
    assert (found.deviance, found.rows.null_deviance) == pytest.approx((10.05911047, 43.22973328), rel=1e-8)
    low, high = found.predict_interval(CARS[:, 1:], kind="mean").T
    assert np.all((0 <= low) & (low < high) & (high <= 1))


def test_simple_regression_is_scipys() -> None:
    x, y = STACKLOSS[:, 0], STACKLOSS[:, 3]
    theirs, ours = stats.linregress(x, y), infer(least_squares(x[:, None], y))
    np.testing.assert_allclose(ours.std_error, [theirs.intercept_stderr, theirs.stderr], rtol=1e-11)
    assert ours.p_value[1] == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.deviance_explained == pytest.approx(theirs.rvalue**2, rel=1e-11)
    assert ours.f_test is not None and ours.f_test[0] == pytest.approx(ours.statistic[1] ** 2, rel=1e-9)


# -- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["classical", "HC0", "HC1", "HC3"])
def test_a_row_of_sample_weight_two_is_the_row_twice(covariance: str) -> None:
    X, y, w = STACKLOSS[:, :3], STACKLOSS[:, 3], np.r_[0.0, 0.4, np.ones(19)]
    s = np.arange(21) % 3
    i = np.repeat(np.arange(21), s)
    weighted = infer(least_squares(X, y, w, sample_weight=s.astype(float)), covariance)
    repeated = infer(least_squares(X[i], y[i], w[i]), covariance)
    np.testing.assert_allclose(weighted.std_error, repeated.std_error, rtol=1e-9)
    np.testing.assert_allclose(weighted.conf_int(), repeated.conf_int(), rtol=1e-8)
    assert weighted.df_resid == pytest.approx(repeated.df_resid)
    assert weighted.summary().n_rows == np.count_nonzero(s)


@pytest.mark.parametrize("name", ["normal", "poisson"])
def test_what_trimmed_rows_hold_does_not_matter(name: str) -> None:
    X, y, w = STACKLOSS[:, :3].copy(), STACKLOSS[:, 3].copy(), np.ones(21)
    w[[0, 20]] = 0
    coef = np.array([0.01, 0.02, 0.0])
    before = infer(Fitted(name, X.copy(), y.copy(), coef, 1.0, w))
    X[0], X[20], y[0], y[20] = np.nan, 1e300, -np.inf, 1e300
    after = infer(Fitted(name, X, y, coef, 1.0, w))
    np.testing.assert_array_equal(before.std_error, after.std_error)
    assert str(before.summary()) == str(after.summary())


def test_fractional_weights_enter_as_in_the_formula() -> None:
    rng = np.random.default_rng(0)
    X, y, w = STACKLOSS[:, :3], STACKLOSS[:, 3], rng.random(21)
    A = with_ones(X)
    found = infer(least_squares(X, y, w))
    r = y - A @ found.estimate
    df = w.sum() - 4
    sigma2 = (w * r**2).sum() / df
    np.testing.assert_allclose(found.covariance, sigma2 * np.linalg.inv((A * w[:, None]).T @ A), rtol=1e-7)
    assert found.df_resid == pytest.approx(df) and found.scale == pytest.approx(sigma2**0.5)


# -- sandwiches and ridge ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["HC0", "HC1", "HC3"])
@pytest.mark.parametrize("name", ["normal", "gamma", "poisson", "binomial"])
def test_sandwiches_are_the_formula(covariance: str, name: str) -> None:
    X, y = (CARS[:, 1:], CARS[:, 0]) if name == "binomial" else (TREES[:, :2], TREES[:, 2])
    fit = least_squares(X, y) if name == "normal" else by_newton(name, X, y)
    A, law = with_ones(X), family(name)
    z = A @ fit.theta[0]
    v, score = law.information(z), law.evaluate(z, y)[1]
    G = np.linalg.inv((A * v[:, None]).T @ A)
    h = v * np.einsum("ij,jk,ik->i", A, G, A)
    factor = {"HC0": 1.0, "HC1": len(y) / (len(y) - A.shape[1]), "HC3": (1 - h) ** -2}[covariance]
    expected = G @ ((A * (factor * score**2)[:, None]).T @ A) @ G
    found = infer(fit, covariance)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-5)
    assert found.f_test is None


def test_ridge_spreads_as_the_linear_map_it_is() -> None:
    """The estimate is Hy with H linear: its covariance is σ²HHᵀ, and tr(AH) coefficients were fitted."""
    X, y, alpha = STACKLOSS[:, :3], STACKLOSS[:, 3], 30.0
    A = with_ones(X)
    H = np.linalg.solve(A.T @ A + alpha * np.diag([0, 1, 1, 1]), A.T)
    b = H @ y
    found = infer(Fitted("normal", X, y, b[1:], b[0], np.ones(21), ridge=alpha, penalty="l2", scale=2.0))
    np.testing.assert_allclose(found.covariance, 4 * H @ H.T, rtol=1e-7)
    assert found.df_resid == pytest.approx(21 - np.trace(A @ H))
    assert found.f_test is None and "shrunk" in str(found.summary())


def test_ridge_of_a_logistic_regression() -> None:
    X, y = CARS[:, 1:] / [1, 100], CARS[:, 0]
    fit = by_newton("binomial", X, y, ridge=0.5)
    A = with_ones(X)
    G = (A * family("binomial").information(A @ fit.theta[0])[:, None]).T @ A
    Hinv = np.linalg.inv(G + 0.5 * np.diag([0, 1, 1]))
    np.testing.assert_allclose(infer(fit).covariance, Hinv @ G @ Hinv, rtol=1e-9)


# -- multinomial ------------------------------------------------------------------------------------------------------


def multinomial(K: int = 3, n: int = 60, p: int = 2, intercept: bool = True, **more: Any) -> Fitted:
    rng = np.random.default_rng(1)
    B = rng.normal(size=(K, p + 1))
    X = rng.normal(size=(n, p))
    y = np.array([rng.choice(K, p=softmax(B @ np.append(1.0, x))) for x in X])
    return Fitted("multinomial", X, y, B[:, 1:], B[:, 0] if intercept else None, rng.random(n), **more)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("covariance", ["classical", "HC0"])
def test_multinomial_is_the_pseudo_inverse_of_the_information(intercept: bool, covariance: str) -> None:
    fit = multinomial(intercept=intercept)
    A = with_ones(fit.X) if intercept else fit.X
    P = softmax(A @ fit.theta.T, axis=1)
    G, meat = np.zeros((2, 3 * A.shape[1], 3 * A.shape[1]))
    for i, a in enumerate(A):
        G += fit.weights[i] * np.kron(np.diag(P[i]) - np.outer(P[i], P[i]), np.outer(a, a))
        g = fit.weights[i] * np.kron(P[i] - np.eye(3)[fit.y[i]], a)
        meat += np.outer(g, g)
    G = np.linalg.pinv(G, rcond=1e-10)
    found = infer(fit, covariance)
    np.testing.assert_allclose(found.covariance, G if covariance == "classical" else G @ meat @ G, atol=1e-9)
    assert len(found.names) == 3 * A.shape[1] and found.names[0] == ("0: intercept" if intercept else "0: x0")
    np.testing.assert_allclose(found.estimate.reshape(3, -1).sum(axis=0), 0, atol=1e-12)


def test_two_classes_as_softmax_are_half_the_logit() -> None:
    binary = by_newton("binomial", CARS[:, 1:], CARS[:, 0])
    coef = np.stack([np.zeros(2), binary.coef]) + 7.0  # adding to all classes changes nothing
    found = infer(
        Fitted("multinomial", binary.X, CARS[:, 0].astype(int), coef, np.array([0.0, binary.intercept]), np.ones(32))
    )
    one = infer(binary)
    np.testing.assert_allclose(found.std_error, np.tile(one.std_error / 2, 2), rtol=1e-8)
    np.testing.assert_allclose(found.p_value[3:], one.p_value, rtol=1e-8)
    assert found.deviance == pytest.approx(one.deviance, rel=1e-9)
    assert found.deviance_explained == pytest.approx(one.deviance_explained, rel=1e-9)


# -- what the data do not determine -----------------------------------------------------------------------------------


def test_dependent_columns_get_infinite_errors_and_the_others_their_own() -> None:
    X, y = STACKLOSS[:, :3], STACKLOSS[:, 3]
    doubled = infer(least_squares(np.column_stack([X, 3 * X[:, 0] - 2]), y))
    plain = infer(least_squares(X, y))
    np.testing.assert_array_equal(np.isinf(doubled.std_error), [True, True, False, False, True])
    np.testing.assert_allclose(doubled.std_error[2:4], plain.std_error[2:], rtol=1e-9)
    assert doubled.df_resid == pytest.approx(17) and doubled.scale == pytest.approx(plain.scale)
    np.testing.assert_array_equal(doubled.p_value[[0, 1, 4]], 1.0)
    np.testing.assert_array_equal(doubled.conf_int()[0], [-np.inf, np.inf])
    assert not np.isnan(doubled.covariance).any() and doubled.covariance[0, 0] == np.inf
    text = str(doubled.summary())
    assert text.count("NA ") >= 3 and "do not determine" in text


def test_predictions_are_certain_where_coefficients_are_not() -> None:
    X, y = STACKLOSS[:, :3], STACKLOSS[:, 3]
    doubled = infer(least_squares(np.column_stack([X, X[:, 0]]), y))
    np.testing.assert_allclose(
        doubled.predict_interval(np.column_stack([X, X[:, 0]])),
        infer(least_squares(X, y)).predict_interval(X),
        rtol=1e-8,
    )
    off = np.column_stack([X, X[:, 0] + 1])[:2]
    np.testing.assert_array_equal(np.isinf(doubled.predict_interval(off)), True)


@pytest.mark.parametrize("column", [np.zeros(21), np.full(21, 5.0)], ids=["zero", "constant"])
def test_empty_and_constant_columns(column: np.ndarray) -> None:
    X, y = STACKLOSS[:, :3], STACKLOSS[:, 3]
    found, plain = infer(least_squares(np.column_stack([column, X]), y)), infer(least_squares(X, y))
    assert np.isinf(found.std_error[1]) and found.statistic[1] == 0
    np.testing.assert_allclose(found.std_error[2:], plain.std_error[1:], rtol=1e-9)


def test_single_precision_knows_its_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
    X32 = np.column_stack([X, 0.3 * X[:, 0] + 0.7 * X[:, 1]]).astype(np.float32)
    fit = least_squares(X32, y.astype(np.float32))
    np.testing.assert_array_equal(np.isinf(infer(fit).std_error), [False, True, True, False, True])


def test_nearly_dependent_columns_are_estimated() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1))
    X = np.column_stack([X, X + 1e-7 * rng.normal(size=(100, 1))])
    found = infer(least_squares(X, rng.normal(size=100), scale=1.0))
    r = np.linalg.qr(X - X.mean(axis=0), mode="r")
    np.testing.assert_allclose(found.std_error[1:], np.sqrt(np.diag(np.linalg.inv(r) @ np.linalg.inv(r).T)), rtol=1e-6)


def test_scales_of_features_only_scale_their_errors() -> None:
    X, y, unit = STACKLOSS[:, :3], STACKLOSS[:, 3], np.array([1e-8, 1e8, 1.0])
    plain = least_squares(X, y)
    found = infer(Fitted("normal", X * unit, y, plain.coef / unit, plain.intercept, np.ones(21)))
    np.testing.assert_allclose(found.std_error[1:] * unit, infer(plain).std_error[1:], rtol=1e-10)
    assert np.isfinite(found.std_error).all()


def test_a_perfect_fit_and_a_constant_target_leave_no_nan() -> None:
    X = np.arange(6.0)[:, None]
    for y, coef in ((2 * X[:, 0], 2.0), (np.zeros(6), 0.0)):
        found = infer(Fitted("normal", X, y, np.array([coef]), 0.0, np.ones(6)))
        assert found.scale == 0 and found.f_test is None
        np.testing.assert_array_equal(found.p_value, [1.0, 0.0 if coef else 1.0])
        np.testing.assert_array_equal(found.conf_int()[1], coef)
        assert found.deviance_explained == (1.0 if coef else 0.0)
        assert "nan" not in str(found.summary()).lower()


def test_a_row_fitted_exactly_does_not_spoil_hc3() -> None:
    X = np.column_stack([np.arange(10.0) % 4, np.eye(10)[:, 0]])
    y = np.arange(10.0) ** 2
    found = infer(least_squares(X, y), "HC3")
    others = infer(least_squares(X[1:, :1], y[1:]), "HC3")
    np.testing.assert_allclose(found.std_error[:2], others.std_error, rtol=1e-9)


# -- storage ----------------------------------------------------------------------------------------------------------


def test_sparse_and_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(203, 4)) * (rng.random((203, 4)) < 0.4)
    fit = least_squares(X, rng.normal(size=203), rng.random(203))
    whole = infer(fit, "HC3")
    monkeypatch.setattr(design, "BLOCK", 7)
    for other in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        found = infer(Fitted("normal", other, fit.y, fit.coef, fit.intercept, fit.weights), "HC3")
        np.testing.assert_allclose(found.covariance, whole.covariance, rtol=1e-10, atol=1e-14)


def test_no_intercept_counts_from_zero() -> None:
    """summary(lm(y ~ x - 1)): R² and F compare with a prediction of 0."""
    X, y = STACKLOSS[:, :3], STACKLOSS[:, 3]
    found = infer(least_squares(X, y, intercept=False))
    assert found.names == ("x0", "x1", "x2") and found.df_resid == pytest.approx(18)
    assert found.deviance_explained == pytest.approx(1 - found.deviance / (y @ y))
    assert found.f_test is not None and found.f_test[1] == pytest.approx(3)


# -- are the intervals right? -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_intervals_cover_the_truth_as_often_as_they_say(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    truth = np.array([0.5, 0.4, -0.3])
    mu = family(name).mean(with_ones(X) @ truth)
    draw = {
        "normal": lambda: rng.normal(mu, 2.0),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(4.0, mu / 4),
        "binomial": lambda: (rng.random(150) < mu).astype(float),
    }[name]
    inside = np.zeros(3)
    for _ in range(250):
        low, high = infer(by_newton(name, X, draw())).conf_int(0.9).T
        inside += (low <= truth) & (truth <= high)
    assert np.all(np.abs(inside / 250 - 0.9) < 0.06)  # three standard deviations


# -- summary ----------------------------------------------------------------------------------------------------------


def test_summary_reads_like_rs() -> None:
    w = np.ones(21)
    w[[0, 2, 3, 20]] = 0
    fit = least_squares(
        STACKLOSS[:, :3], STACKLOSS[:, 3], w, feature_names=FEATURES, contamination=4 / 21, name="Trimmed stackloss"
    )
    text = str(infer(fit).summary())
    lines = text.splitlines()
    assert lines[0] == "Trimmed stackloss (normal): 17 of 21 rows count, 4 flagged, contamination 19.0%"
    assert lines[2:5] == [
        "Residuals of the rows that count:",
        "   min      25%  median     75%    max",
        "-2.506  -0.6713  0.1432  0.5862  1.934",
    ]
    assert next(line for line in lines if line.startswith("Water.Temp")).split() == [
        *("Water.Temp", "0.5773", "0.166", "3.479", "0.00408", "0.2188", "0.9359")
    ]
    assert "Residual scale 1.253 on 13 degrees of freedom" in lines
    assert max(map(len, lines)) <= 100


def test_summary_as_a_frame(stackloss: Inference) -> None:
    pandas = pytest.importorskip("pandas")
    table = stackloss.summary(0.9).to_frame()
    assert isinstance(table, pandas.DataFrame) and list(table.index) == list(stackloss.names)
    assert list(table.columns) == ["estimate", "std. error", "t", "p", "from", "to"]
    np.testing.assert_array_equal(table["to"], stackloss.conf_int(0.9)[:, 1])


def test_without_pandas_the_frame_says_so(stackloss: Inference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlier_table, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="attributes of this summary"):
        stackloss.summary().to_frame()


# -- the mixin --------------------------------------------------------------------------------------------------------


class Plain(IntervalMixin, BaseEstimator):  # type: ignore[misc]
    """Least squares with the hook."""

    def __init__(self) -> None:
        self.n_features_in_ = 3

    def _fitted(self, X: Any, y: Any) -> Fitted:
        return least_squares(STACKLOSS[:, :3] if X is None else X, STACKLOSS[:, 3] if y is None else y)


def test_an_estimator_with_the_hook_has_it_all(stackloss: Inference) -> None:
    model = Plain()
    np.testing.assert_array_equal(model.conf_int(0.9), stackloss.conf_int(0.9))
    X = STACKLOSS[:, :3]
    np.testing.assert_array_equal(model.predict_interval(X, 0.8, "mean"), stackloss.predict_interval(X, 0.8, "mean"))
    assert str(model.summary(covariance="HC3")) == str(model.inference("HC3").summary())
    assert model.summary(X=STACKLOSS[5:, :3], y=STACKLOSS[5:, 3]).n_rows == 16
    with pytest.raises(ValueError, match="3 features"):
        model.predict_interval(np.ones((2, 4)))


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "scad", "mcp", "l0"])
def test_penalties_that_select_have_no_standard_errors(penalty: str) -> None:
    with pytest.raises(ValueError, match=f"penalty='{penalty}' selects coefficients"):
        least_squares(STACKLOSS[:, :3], STACKLOSS[:, 3], penalty=penalty)


def test_the_raw_trimmed_fit_has_no_standard_errors() -> None:
    X, y, w = STACKLOSS[:, :3], STACKLOSS[:, 3], np.r_[0.0, np.ones(20)]
    with pytest.raises(ValueError, match="reweight=True"):
        least_squares(X, y, w, reweighted=False)
    assert np.isfinite(infer(least_squares(X, y, reweighted=False)).std_error).all()  # nothing was trimmed


def test_what_makes_no_sense_is_refused(stackloss: Inference) -> None:
    X, y = STACKLOSS[:4, :3], STACKLOSS[:4, 3]
    for fit in (least_squares(X, y), least_squares(X, y, scale=1.0)):
        with pytest.raises(ValueError, match="degrees of freedom"):
            infer(fit)
    with pytest.raises(ValueError, match="level"):
        stackloss.conf_int(95)
    with pytest.raises(ValueError, match="kind"):
        stackloss.predict_interval(X, kind="confidence")
    with pytest.raises(ValueError, match="covariance"):
        infer(stackloss.fit, "HC9")
    with pytest.raises(ValueError, match="family"):
        infer(Fitted("cauchy", X, y, np.zeros(3), 0.0, np.ones(4)))
    with pytest.raises(ValueError, match="kind='prediction' needs normal errors"):
        infer(by_newton("gamma", TREES[:, :2], TREES[:, 2])).predict_interval(TREES[:, :2])
    with pytest.raises(ValueError, match="one per class"):
        infer(multinomial()).predict_interval(X, kind="mean")
    with pytest.raises(ValueError, match="HC3"):
        infer(multinomial(), "HC3")
    with pytest.raises(ValueError, match="2000 free coefficients"):
        infer(Fitted("multinomial", np.ones((9, 1000)), np.arange(9) % 3, np.ones((3, 1000)), np.zeros(3), np.ones(9)))
