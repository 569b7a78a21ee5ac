"""Second derivatives, sums, closed forms and fingerprints of the losses: against finite differences and plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from test_losses import CASES, COUNTS, DST, LABELS, LAYER, REAL, REAL_3, Case, N, P, V, point

from backends import BACKENDS, Backend
from trimlearn._utils.arrays import to_numpy
from trimlearn.losses import (
    Gamma,
    Homography,
    Huber,
    LeastSquares,
    Logistic,
    Loss,
    Poisson,
    PredictionLoss,
    SmoothL1,
    Softmax,
    StudentT,
    Subspace,
    exact,
    linear,
)
from trimlearn.losses.newton_system import DenseSystem
from trimlearn.regularizers import L1, Box, ExceptIntercept, Ridge, Sphere, Stiefel, Zero

ROBUST = ("huber", "student", "smooth-l1")
BOUNDED = ("mislabelled", "mislabelled-2")  # nor are these convex; their curvature is that of their convex part
SMOOTH = {name: case for name, case in CASES.items() if name not in ROBUST + BOUNDED}
smooth_case = pytest.mark.parametrize("case", SMOOTH.values(), ids=SMOOTH)
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
robust_case = pytest.mark.parametrize("case", [CASES[name] for name in ROBUST], ids=ROBUST)
some_rows = pytest.mark.parametrize(
    "rows", [None, slice(3, 20), np.array([5, 5, 0, 39])], ids=["all", "slice", "index"]
)


def coefficients(rows: Any = None) -> np.ndarray:
    c = np.random.default_rng(1).random(N)
    return c if rows is None else c[rows]


def matrix_of(loss: Loss, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Σ cᵢ∇²fᵢ(x), by central differences of the gradient along every coordinate."""
    columns = []
    for e in np.eye(x.size).reshape(-1, *x.shape):
        columns.append((loss.gradient(x + 1e-5 * e, c) - loss.gradient(x - 1e-5 * e, c)).ravel() / 2e-5)
    return np.array(columns)


# ---- phi_hessp ----


@smooth_case
def test_bend_is_the_derivative_of_the_residual(case: Case) -> None:
    loss = case(V)
    rng = np.random.default_rng(0)
    z, u = 2 * rng.standard_normal((2, N, loss.K))
    before = z.copy()
    slope = (loss.residual(z + 1e-5 * u) - loss.residual(z - 1e-5 * u)) / 2e-5
    np.testing.assert_allclose(loss.phi_hessp(z, u), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(z, before)
    rows = np.array([7, 0, 7])
    np.testing.assert_allclose(loss.phi_hessp(z[rows], u[rows], rows), slope[rows], rtol=1e-6, atol=1e-7)


@robust_case
def test_bend_of_a_robust_loss_is_a_parabola_that_touches_it_from_above(case: Case) -> None:
    loss = case(V)
    t = REAL[:, None].astype(float)
    for r in (0.0, 1e-9, 1e-3, 0.5, 1.345, 3.0, 1e4, -1e-200, -2.0, -1e8):
        z = t + r
        f, slope = loss.evaluate(z)
        parabola_curvature = loss.phi_hessp(z, np.ones_like(z))
        assert np.all(parabola_curvature > 0)
        assert np.all(parabola_curvature <= loss.curvature_bound() * (1 + 1e-12))
        for other in (*np.linspace(-6, 6, 25), -1e4, 1e4, 1e6, -r, 2 * r):
            d = t + other - z
            parabola = f + (slope * d + parabola_curvature * d * d / 2)[:, 0]
            size = 1 + np.abs(f) + (parabola_curvature * d * d)[:, 0]
            assert np.all(loss.phi(z + d) <= parabola + 1e-9 * size), (r, other)


def test_bend_of_mistaken_labels_is_that_of_right_ones() -> None:
    mistaken, right = CASES["mislabelled"](V), CASES["softmax-shares"](V)
    z, u = np.random.default_rng(0).standard_normal((2, N, 3))
    np.testing.assert_allclose(mistaken.phi_hessp(z, u), right.phi_hessp(z, u), rtol=1e-12)


@robust_case
def test_bend_of_a_robust_loss_is_the_tightest_such_parabola(case: Case) -> None:
    """It also touches at −r, where the loss is the same by symmetry: no smaller curvature would do."""
    loss = case(V)
    z = REAL[:, None] + np.linspace(-3, 3, N)[:, None]
    mirrored = 2 * REAL[:, None] - z
    f, slope = loss.evaluate(z)
    d = mirrored - z
    parabola = f + (slope * d + loss.phi_hessp(z, d) * d / 2)[:, 0]
    np.testing.assert_allclose(parabola, loss.phi(mirrored), rtol=1e-9, atol=1e-12)


# ---- hessp, hessian ----


@smooth_case
@some_rows
def test_hessp_is_the_derivative_of_the_gradient(case: Case, rows: Any) -> None:
    loss = case(V)
    x, u, c = 0.5 * point(loss), point(loss, 1), coefficients(rows)
    h = 1e-5
    slope = (loss.gradient(x + h * u, c, rows) - loss.gradient(x - h * u, c, rows)) / (2 * h)
    found = loss.hessp(x, u, c, rows)
    assert found.shape == x.shape
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


@robust_case
@some_rows
def test_hessp_of_a_robust_loss_is_its_weighted_gram_matrix(case: Case, rows: Any) -> None:
    loss = case(V)
    x, u, c = point(loss), point(loss, 1), coefficients(rows)
    A, t = (V, REAL) if rows is None else (V[rows], REAL[rows])
    r = A @ x - t
    weight = loss.rho(r[:, None])[1][:, 0] / r
    np.testing.assert_allclose(loss.hessp(x, u, c, rows), A.T @ (c * weight * (A @ u)), rtol=1e-10)


@smooth_case
def test_hessian_is_the_matrix_of_second_derivatives(case: Case) -> None:
    loss = case(V)
    x, c = 0.5 * point(loss), coefficients()
    H, expected = loss.hessian(x, c), matrix_of(loss, x, c)
    assert H.dtype == np.float64
    np.testing.assert_allclose(H, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(H, H.T, rtol=1e-10, atol=1e-10 * np.abs(H).max())


@every_case
def test_hessian_and_value_gradient_do_not_depend_on_the_pieces(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = case(V)
    x, c = point(loss), coefficients()
    H, (f, g) = loss.hessian(x, c), loss.value_gradient(x, c)
    monkeypatch.setattr(linear, "CHUNK", 7)
    np.testing.assert_allclose(loss.hessian(x, c), H, rtol=1e-10, atol=1e-10)
    assert loss.value_gradient(x, c)[0] == pytest.approx(f, rel=1e-12)
    np.testing.assert_allclose(loss.value_gradient(x, c)[1], g, rtol=1e-10, atol=1e-10)


@every_case
@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_gives_the_same(case: Case, name: str, tmp_path: Any) -> None:
    backend = Backend(name, tmp_path)
    reference, loss = case(V), case(backend.matrix(V))
    x, u, c, rtol = point(reference), point(reference, 1), coefficients(), 20 * backend.rtol
    xb, ub, cb = backend.array(x), backend.array(u), backend.array(c)
    backend.assert_close(loss.hessp(xb, ub, cb), reference.hessp(x, u, c), rtol=rtol)
    rows = np.array([5, 5, 0, 39])
    backend.assert_close(loss.hessp(xb, ub, cb[rows], rows), reference.hessp(x, u, c[rows], rows), rtol=rtol)
    H, expected = loss.hessian(xb, cb), reference.hessian(x, c)
    assert isinstance(H, np.ndarray)
    assert H.dtype == np.float64
    np.testing.assert_allclose(H, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
    value, gradient = loss.value_gradient(xb, cb)
    assert type(value) is float
    assert value == pytest.approx(reference.value_gradient(x, c)[0], rel=rtol)
    backend.assert_close(gradient, reference.value_gradient(x, c)[1], rtol=rtol)
    backend.assert_close(loss.gradients(xb), reference.gradients(x), rtol=rtol)
    backend.assert_close(loss.gradients(xb, rows), reference.gradients(x, rows), rtol=rtol)


@every_case
def test_a_row_of_weight_zero_is_left_out(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = case(V)
    x, u, c = point(loss), point(loss, 1), coefficients()
    c[3] = 0.0
    rest = np.delete(np.arange(N), 3)
    expected = loss.hessp(x, u, c[rest], rest), loss.gradient(x, c[rest], rest), c[rest] @ loss.values(x, rest)
    matrix = loss.hessian(x, c)
    evaluate, hessp = loss.evaluate, loss.phi_hessp

    def broken_evaluate(z: Any, rows: Any = None) -> Any:
        f, r = evaluate(z, rows)
        f[3], r[3] = np.inf, np.nan
        return f, r

    def broken_hessp(z: Any, u: Any, rows: Any = None) -> Any:
        product = hessp(z, u, rows).copy()
        product[3] = np.inf
        return product

    monkeypatch.setattr(loss, "evaluate", broken_evaluate)
    monkeypatch.setattr(loss, "phi_hessp", broken_hessp)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(loss.hessp(x, u, c), expected[0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(loss.hessian(x, c), matrix, rtol=1e-10, atol=1e-10)
        value, gradient = loss.value_gradient(x, c)
    assert value == pytest.approx(expected[2], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-10, atol=1e-10)


# ---- gradients, value_gradient ----


@every_case
def test_gradients_one_by_one_sum_to_the_gradient(case: Case) -> None:
    loss = case(V)
    x, c = point(loss), coefficients()
    G = loss.gradients(x)
    assert G.shape == (N, *loss.x_shape)
    np.testing.assert_allclose(np.tensordot(c, G, 1), loss.gradient(x, c), rtol=1e-10, atol=1e-10)
    for rows in (slice(3, 20, 4), np.array([5, 5, 0, 39])):
        np.testing.assert_allclose(loss.gradients(x, rows), G[rows], rtol=1e-10, atol=1e-12)


@every_case
def test_value_gradient_is_the_values_and_the_gradient(case: Case) -> None:
    loss = case(V)
    x, c = point(loss), coefficients()
    value, gradient = loss.value_gradient(x, c)
    assert value == pytest.approx(float(c @ loss.values(x)), rel=1e-12)
    np.testing.assert_allclose(gradient, loss.gradient(x, c), rtol=1e-10, atol=1e-10)


def test_the_value_is_summed_in_float64() -> None:
    n = 100_000
    loss = LeastSquares(np.ones((n, 1), np.float32), np.full(n, 1.1, np.float32))
    value, gradient = loss.value_gradient(np.zeros(1, np.float32), np.ones(n, np.float32))
    assert value == pytest.approx(n * float(np.float32(0.5) * np.float32(1.1) ** 2), rel=1e-7)
    assert gradient.dtype == np.float32


class Quartic(Loss):
    """fᵢ(x) = (⟨vᵢ, x⟩ − tᵢ)⁴: a loss that only knows values and gradients."""

    def __init__(self, V: np.ndarray, t: np.ndarray) -> None:
        self.V, self.t = V, t
        self.n, self.x_shape, self.like = len(t), (V.shape[1],), V[:0, 0]

    def values(self, x: Any, rows: Any = None) -> Any:
        rows = slice(None) if rows is None else rows
        return (self.V[rows] @ x - self.t[rows]) ** 4

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        rows = slice(None) if rows is None else rows
        return self.V[rows].T @ (4 * c * (self.V[rows] @ x - self.t[rows]) ** 3)

    def lipschitz(self) -> Any:
        return np.full(self.n, np.inf)


@some_rows
def test_any_loss_has_a_hessian_by_differences(rows: Any) -> None:
    loss = Quartic(V, REAL.astype(float))
    A, t = (V, REAL) if rows is None else (V[rows], REAL[rows])
    for size in (1e-3, 1.0, 1e3):
        x, u, c = point(loss), size * point(loss, 1), coefficients(rows)
        expected = A.T @ (12 * c * (A @ x - t) ** 2 * (A @ u))
        np.testing.assert_allclose(loss.hessp(x, u, c, rows), expected, rtol=1e-6)


def test_any_loss_has_the_rest_too() -> None:
    loss = Quartic(V, REAL.astype(float))
    x, c = point(loss), coefficients()
    exact_hessian = V.T @ (V * (12 * c * (V @ x - REAL) ** 2)[:, None])
    np.testing.assert_allclose(loss.hessian(x, c), exact_hessian, rtol=1e-6, atol=1e-6)
    value, gradient = loss.value_gradient(x, c)
    assert value == pytest.approx(c @ loss.values(x))
    np.testing.assert_allclose(gradient, loss.gradient(x, c))
    np.testing.assert_allclose(np.tensordot(c, loss.gradients(x), 1), gradient)
    assert loss.minimiser(c, Zero(), x) is None


def test_a_direction_of_zero_has_no_curvature() -> None:
    loss = Quartic(V, REAL.astype(float))
    np.testing.assert_array_equal(loss.hessp(point(loss), np.zeros(P), coefficients()), np.zeros(P))


# ---- closed forms ----


def penalised(A: np.ndarray, t: np.ndarray, c: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    return np.linalg.solve(A.T @ (A * c[:, None]) + np.diag(penalty), A.T @ (c[:, None] * t))


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("targets", [REAL, REAL_3], ids=["one output", "three"])
@pytest.mark.parametrize("name", ["numpy64", "torch64", "csr"])
def test_weighted_ridge_regression(
    tall: bool, targets: np.ndarray, name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Backend(name, tmp_path)
    if tall:
        monkeypatch.setattr(exact, "DIRECT", 0)
        monkeypatch.setattr(exact, "ROWS", 7)
    loss = LeastSquares(backend.matrix(V), targets, **LAYER)
    A = np.column_stack([(V - LAYER["center"]) / LAYER["scale"], np.ones(N)])
    c = coefficients() * (np.arange(N) % 3 > 0)
    t = targets.reshape(N, -1).astype(float)
    for r2, penalty in [
        (Zero(), np.zeros(P + 1)),
        (Ridge(0.3), np.full(P + 1, 0.3)),
        (ExceptIntercept(Ridge(0.3)), np.append(np.full(P, 0.3), 0.0)),
        (ExceptIntercept(Zero()), np.zeros(P + 1)),
    ]:
        expected = penalised(A, t, c, penalty).reshape(loss.x_shape)
        backend.assert_close(loss.minimiser(backend.array(c), r2, loss.start()), expected, rtol=1e-9)


@pytest.mark.parametrize("tall", [False, True])
def test_ridge_regression_with_a_penalty_for_every_coordinate(tall: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tall:
        monkeypatch.setattr(exact, "DIRECT", 0)
    alpha, c = np.array([0.0, 1.0, 2.0, 30.0]), coefficients()
    loss = LeastSquares(V, REAL)
    np.testing.assert_allclose(
        loss.minimiser(c, Ridge(alpha), loss.start()), penalised(V, REAL[:, None], c, alpha)[:, 0], rtol=1e-9
    )
    with_intercept = LeastSquares(V, REAL, intercept=True)
    expected = penalised(np.column_stack([V, np.ones(N)]), REAL[:, None], c, np.append(alpha, 0.0))[:, 0]
    np.testing.assert_allclose(
        with_intercept.minimiser(c, ExceptIntercept(Ridge(alpha)), with_intercept.start()), expected, rtol=1e-9
    )
    outputs = LeastSquares(V, REAL_3)
    np.testing.assert_allclose(
        outputs.minimiser(c, Ridge(alpha[:, None]), outputs.start()), penalised(V, REAL_3, c, alpha), rtol=1e-9
    )


@pytest.mark.parametrize("alpha", [np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0])])
def test_a_penalty_that_differs_between_outputs_is_solved_or_left_to_others(alpha: np.ndarray) -> None:
    loss, c = LeastSquares(V, REAL_3), coefficients()
    found = loss.minimiser(c, Ridge(alpha), loss.start())
    if found is not None:
        columns = np.broadcast_to(alpha, (P, 3)).T
        expected = [penalised(V, REAL_3[:, [k]], c, a)[:, 0] for k, a in enumerate(columns)]
        np.testing.assert_allclose(found, np.array(expected).T, rtol=1e-9)


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("kept", [1, 3, 8])
def test_least_squares_of_least_norm(tall: bool, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows than columns, and a repeated column on top."""
    if tall:
        monkeypatch.setattr(exact, "DIRECT", 0)
    A = np.column_stack([V, V[:, 0], np.zeros(N)])
    c = np.where(np.arange(N) < kept, coefficients(), 0.0)
    loss = LeastSquares(A, REAL)
    root = np.sqrt(c[:kept])[:, None]
    expected = np.linalg.pinv(A[:kept] * root) @ (REAL[:kept] * root[:, 0])
    np.testing.assert_allclose(loss.minimiser(c, Zero(), loss.start()), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("tall", [False, True])
def test_closed_forms_survive_features_of_very_different_scales(tall: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tall:
        monkeypatch.setattr(exact, "DIRECT", 0)
    scales = np.array([1e-6, 1.0, 1e3, 1e6])
    c, plain, scaled = coefficients(), LeastSquares(V, REAL), LeastSquares(V * scales, REAL)
    expected = plain.minimiser(c, Zero(), plain.start())
    np.testing.assert_allclose(scaled.minimiser(c, Zero(), scaled.start()) * scales, expected, rtol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("name", ["numpy64", "torch64", "csr"])
def test_leading_subspace_is_spanned_by_the_leading_eigenvectors(k: int, name: str, tmp_path: Any) -> None:
    backend = Backend(name, tmp_path)
    center = np.arange(P) / 4
    loss = Subspace(backend.matrix(V), k, center=center)
    c = coefficients() * (np.arange(N) % 3 > 0)
    U = loss.minimiser(backend.array(c), Stiefel(), loss.start())
    backend.assert_close(U.T @ U, np.eye(k))
    A = (V - center) * np.sqrt(c)[:, None]
    values, vectors = eigh(A.T @ A)
    backend.assert_close(U @ U.T, vectors[:, -k:] @ vectors[:, -k:].T)
    assert float(backend.array(c) @ loss.values(U)) == pytest.approx(values[: P - k].sum() / 2, abs=1e-10)
    again = loss.minimiser(backend.array(c), Stiefel(), -U)
    backend.assert_close(again, to_numpy(U), rtol=1e-14)  # the signs do not depend on where we are


def test_homography_by_dlt() -> None:
    rng = np.random.default_rng(3)
    H = np.array([[1.1, 0.1, 0.3], [-0.2, 0.9, 0.1], [0.05, 0.02, 1.0]])
    src = rng.standard_normal((12, 2))
    image = np.column_stack([src, np.ones(12)]) @ H.T
    dst = image[:, :2] / image[:, 2:]
    dst[8:] += 5.0
    c = np.where(np.arange(12) < 8, rng.random(12), 0.0)
    loss = Homography(src, dst)
    found = loss.minimiser(c, Sphere(), loss.start())
    np.testing.assert_allclose(found / found[2, 2], H, rtol=1e-6, atol=1e-8)
    assert np.linalg.norm(found) == pytest.approx(1.0)
    opposite = loss.minimiser(c, Sphere(), -found)
    np.testing.assert_allclose(opposite, -found, rtol=1e-9)  # of ±H the one nearer to where we are
    scaled = loss.minimiser(c, Sphere(3.0), loss.start())
    np.testing.assert_allclose(scaled, 3 * found, rtol=1e-9)


def test_homography_by_dlt_is_the_best_on_the_sphere() -> None:
    rng = np.random.default_rng(4)
    loss = Homography(rng.standard_normal((20, 2)), rng.standard_normal((20, 2)))
    c = rng.random(20)
    best = loss.minimiser(c, Sphere(), loss.start())
    value = c @ loss.values(best)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            other = best + scale * rng.standard_normal((3, 3))
            assert c @ loss.values(other / np.linalg.norm(other)) >= value * (1 - 1e-12)


@pytest.mark.parametrize(
    ("loss", "r2"),
    [
        (LeastSquares(V, REAL), L1(0.1)),
        (LeastSquares(V, REAL), Box(-1.0, 1.0)),
        (Huber(V, REAL), Zero()),
        (Logistic(V, LABELS > 0), Ridge(0.1)),
        (Softmax(V, LABELS), Zero()),
        (Poisson(V, COUNTS), Zero()),
        (Subspace(V, 2), Zero()),
        (Homography(V[:, :2], DST), Zero()),
        (Homography(V[:, :2], DST, form="printed"), Sphere()),
    ],
    ids=lambda term: type(term).__name__,
)
def test_where_there_is_no_closed_form_none_is_given(loss: PredictionLoss, r2: Any) -> None:
    assert loss.minimiser(np.ones(N), r2, loss.start()) is None


def test_too_many_columns_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "COLUMNS", 3)
    for loss, r2 in ((LeastSquares(V, REAL), Zero()), (Subspace(V, 2), Stiefel())):
        assert loss.minimiser(np.ones(N), r2, loss.start()) is None


# ---- fingerprints ----

OTHER = np.where(np.arange(N * P).reshape(N, P) == 17, V + 1e-6, V)


@every_case
def test_a_fingerprint_is_the_same_for_the_same_data(case: Case) -> None:
    assert case(V).fingerprint() == case(V.copy()).fingerprint()


@every_case
def test_a_fingerprint_tells_data_apart(case: Case) -> None:
    """One entry, a little different: another problem."""
    changed = case(OTHER) if case(V).x_shape != (3, 3) else case(np.roll(V, 1, axis=0))
    assert changed.fingerprint() != case(V).fingerprint()


def test_a_fingerprint_tells_losses_apart() -> None:
    t = np.abs(REAL) + 0.1
    losses: list[Loss] = [
        LeastSquares(V, t),
        LeastSquares(V, np.roll(t, 1)),
        LeastSquares(V, t, intercept=True),
        LeastSquares(V, t, center=np.ones(P)),
        LeastSquares(V, t, scale=np.full(P, 2.0)),
        LeastSquares(V[::-1], t[::-1]),
        Huber(V, t),
        Huber(V, t, delta=0.1),
        StudentT(V, t),
        StudentT(V, t, nu=3.0),
        StudentT(V, t, sigma=0.5),
        SmoothL1(V, t),
        SmoothL1(V, t, eps=0.1),
        Poisson(V, t),
        Poisson(V, t, "likelihood"),
        Gamma(V, t),
        Gamma(V, t, "likelihood"),
        Logistic(V, LABELS > 0),
        Logistic(V, LABELS > 1),
        Softmax(V, LABELS),
        Softmax(V, (LABELS + 1) % 3),
        Subspace(V, 1),
        Subspace(V, 2),
        Homography(V[:, :2], DST),
        Homography(V[:, :2], DST, form="printed"),
    ]
    prints = [loss.fingerprint() for loss in losses]
    same = {(i, j) for i in range(len(prints)) for j in range(i) if prints[i] == prints[j]}
    assert not same


def test_any_loss_has_a_fingerprint() -> None:
    assert Quartic(V, REAL.astype(float)).fingerprint() != Quartic(OTHER, REAL.astype(float)).fingerprint()


def test_singular_values_decide_where_a_pivot_is_neither_regular_nor_nothing() -> None:
    """A column that is the sum of two others but for a millionth of its size: what is solved is the scaled system."""
    rng = np.random.default_rng(0)
    M = rng.standard_normal((50, 6))
    M[:, 5] = M[:, 0] + M[:, 1] + 1e-6 * M[:, 5]
    A, T = M.T @ M, M.T @ rng.standard_normal((50, 1))
    scale = np.sqrt(np.diag(A))[:, None]
    U, s, Vt = np.linalg.svd(A / scale.T / scale)
    expected = Vt.T @ ((U.T @ (T / scale)) / s[:, None]) / scale
    np.testing.assert_allclose(exact.solve_symmetric(A, T), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_entry_of_a_leading_direction_is_positive(seed: int) -> None:
    """Rounding, or LAPACK, decides the sign of an eigenvector: a rule of one's own does not depend on either."""
    A = np.random.default_rng(seed).standard_normal((30, 5))
    U = exact.leading_subspace(Subspace(A, 3).linear, np.ones(30), 3)
    assert U is not None
    assert np.all(U[np.abs(U).argmax(axis=0), np.arange(3)] > 0)


@pytest.mark.parametrize("rank", [2, 5])
def test_the_shortest_solution_of_a_system_of_one_scale(rank: int) -> None:
    rng = np.random.default_rng(rank)
    Z = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, 5))
    A, t = Z.T @ Z, Z.T @ rng.standard_normal(30)
    np.testing.assert_allclose(exact.solve_regular(A, t), np.linalg.pinv(A, rcond=1e-10) @ t, rtol=1e-6)


@pytest.mark.parametrize("n", [6, 12, 300])
@pytest.mark.parametrize("rank", [3, 6])
def test_least_squares_is_accurate_and_shortest_whatever_the_shape_and_the_scales(n: int, rank: int) -> None:
    rng = np.random.default_rng(n + rank)
    A = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, 6)) * 10.0 ** np.arange(-2, 4)
    T = A @ rng.standard_normal((6, 2)) + 1e-3 * rng.standard_normal((n, 2))
    found = exact._least_squares(A, T)
    scale = np.linalg.norm(A, axis=0)
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    u = Vt[:rank].T @ ((U[:, :rank].T @ T) / s[:rank, None])
    np.testing.assert_allclose(A @ found, (A / scale) @ u, rtol=1e-7, atol=1e-9 * np.abs(T).max())
    null = (np.linalg.svd(A / scale)[2][rank:] / scale).T  # directions in which x is free
    null /= np.linalg.norm(null, axis=0)
    assert np.all(np.abs(null.T @ found) <= 1e-6 * np.linalg.norm(found, axis=0))


def test_a_gradient_where_nothing_is_curved_has_no_newton_point() -> None:
    H = DenseSystem(np.diag([1.0, 0.0]))
    assert H.solve(np.array([1.0, 1.0])) is None
    d = H.solve(np.array([1.0, 0.0]))
    assert d is not None
    np.testing.assert_array_equal(d, [1.0, 0.0])


def test_a_ridge_on_the_intercept_is_one() -> None:
    """By itself a loss does not know that an intercept is exempt: `Problem` says so."""
    A = np.column_stack([V + 5.0, np.ones(N)])
    x = LeastSquares(V + 5.0, REAL, intercept=True).minimiser(np.full(N, 1 / N), Ridge(0.5), np.zeros(P + 1))
    assert x is not None
    np.testing.assert_allclose(x, np.linalg.solve(A.T @ A / N + 0.5 * np.eye(P + 1), A.T @ REAL / N))


def test_proportions_may_all_be_alike() -> None:
    f = Logistic(V, np.full(N, 0.3)).values(np.zeros(P))
    np.testing.assert_allclose(f, np.log(2) + 0.3 * np.log(0.3) + 0.7 * np.log(0.7))
