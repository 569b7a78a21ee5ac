"""Every loss against finite differences, scikit-learn, scipy, and itself on other kinds of data."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special
import scipy.stats
from sklearn._loss import HalfBinomialLoss, HalfGammaLoss, HalfMultinomialLoss, HalfPoissonLoss

from backends import BACKENDS, Backend
from trimlearn import losses
from trimlearn._utils.arrays import to_numpy
from trimlearn.losses import (
    Gamma,
    Homography,
    Huber,
    LeastSquares,
    Linear,
    Logistic,
    Loss,
    Mislabelled,
    Poisson,
    PredictionLoss,
    SmoothL1,
    Softmax,
    StudentT,
    Subspace,
)

N, P = 40, 4
RNG = np.random.default_rng(7)
V = (RNG.standard_normal((N, P)) * (RNG.random((N, P)) < 0.8)).astype(np.float32).astype(np.float64)
REAL = 2 * RNG.standard_normal(N).astype(np.float32)
LABELS = RNG.permutation(np.arange(N) % 3)
COUNTS = np.where(np.arange(N) % 5 == 0, 0.0, RNG.poisson(4.0, N))
AMOUNTS = RNG.gamma(2.0, 2.0, N).astype(np.float32)
SHARES = RNG.random(N).astype(np.float32)
SHARES_3 = RNG.dirichlet(np.ones(3), N)
MISTAKES = np.array([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.1, 0.6]])
REAL_3 = RNG.standard_normal((N, 3)).astype(np.float32)
DST = RNG.standard_normal((N, 2)).astype(np.float32)
LAYER: dict[str, Any] = {"intercept": True, "center": np.arange(P) / 4, "scale": np.arange(P) / 2 + 0.5}

Case = Callable[[Any], PredictionLoss]
CASES: dict[str, Case] = {
    "least-squares": lambda V: LeastSquares(V, REAL),
    "least-squares-layer": lambda V: LeastSquares(V, REAL, **LAYER),
    "least-squares-3": lambda V: LeastSquares(V, REAL_3),
    "huber": lambda V: Huber(V, REAL),
    "student": lambda V: StudentT(V, REAL, nu=3.0, sigma=0.7),
    "smooth-l1": lambda V: SmoothL1(V, REAL, eps=0.3),
    "logistic": lambda V: Logistic(V, LABELS > 0),
    "softmax-shares": lambda V: Softmax(V, SHARES_3, **LAYER),
    "mislabelled": lambda V: Mislabelled(V, LABELS, MISTAKES, **LAYER),
    "mislabelled-2": lambda V: Mislabelled(V, LABELS > 0, MISTAKES[:2, :2] / MISTAKES[:2, :2].sum(axis=1)[:, None]),
    "logistic-shares": lambda V: Logistic(V, SHARES, **LAYER),
    "softmax": lambda V: Softmax(V, LABELS),
    "softmax-layer": lambda V: Softmax(V, LABELS, n_classes=5, **LAYER),
    "poisson": lambda V: Poisson(V, COUNTS),
    "poisson-likelihood": lambda V: Poisson(V, COUNTS + 0.5, "likelihood", **LAYER),
    "gamma": lambda V: Gamma(V, AMOUNTS, **LAYER),
    "gamma-likelihood": lambda V: Gamma(V, AMOUNTS, "likelihood"),
    "subspace": lambda V: Subspace(V, 2),
    "subspace-centred": lambda V: Subspace(V, 3, center=np.arange(P) / 4, scale=np.arange(P) + 1.0),
    "homography": lambda V: Homography(V[:, :2], DST),
    "homography-printed": lambda V: Homography(V[:, :2], DST, form="printed"),
}
FINITE_CURVATURE = [name for name in CASES if not name.startswith(("poisson", "gamma"))]
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return Backend(request.param, tmp_path)


def point(loss: Loss, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(loss.x_shape)


@every_case
class TestEveryLoss:
    def test_residual_is_the_derivative_of_phi(self, case: Case) -> None:
        loss = case(V)
        z = 2 * np.random.default_rng(0).standard_normal((N, loss.linear.K or 1))
        before = z.copy()
        f, r = loss.evaluate(z)
        np.testing.assert_array_equal(z, before)
        assert f.shape == (N,)
        assert r.shape == z.shape
        for k in range(z.shape[1]):
            step = np.zeros_like(z)
            step[:, k] = 1e-6
            slope = (loss.phi(z + step) - loss.phi(z - step)) / 2e-6
            np.testing.assert_allclose(r[:, k], slope, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(loss.phi(z), f)
        np.testing.assert_array_equal(loss.residual(z), r)

    def test_gradient_is_the_derivative_of_the_values(self, case: Case) -> None:
        loss = case(V)
        x, c = point(loss), np.random.default_rng(1).random(N)
        g = loss.gradient(x, c)
        assert g.shape == x.shape
        for seed in range(3):
            d = 1e-6 * point(loss, seed + 5)
            slope = c @ (loss.values(x + d) - loss.values(x - d)) / 2
            assert np.vdot(g, d) == pytest.approx(slope, rel=1e-6, abs=1e-12)

    def test_every_backend_gives_the_same(self, case: Case, backend: Backend) -> None:
        reference, loss = case(V), case(backend.matrix(V))
        x, c = point(reference), np.random.default_rng(1).random(N)
        rtol = 10 * backend.rtol
        for rows in (None, slice(3, 20), np.array([5, 5, 0, 39])):
            c_rows = c if rows is None else c[rows]
            xb, cb = backend.array(x), backend.array(c_rows)
            backend.assert_close(loss.values(xb, rows), reference.values(x, rows), rtol=rtol)
            backend.assert_close(loss.gradient(xb, cb, rows), reference.gradient(x, c_rows, rows), rtol=rtol)
        backend.assert_close(loss.lipschitz(), reference.lipschitz(), rtol=rtol)
        backend.assert_close(loss.start(), reference.start(), rtol=rtol)
        assert loss.start().shape == loss.x_shape

    def test_rows_agree(self, case: Case) -> None:
        loss = case(V)
        x, c = point(loss), np.random.default_rng(1).random(N)
        f = loss.values(x)
        rows = np.random.default_rng(2).permutation(N)
        np.testing.assert_allclose(loss.values(x, rows), f[rows], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(loss.values(x, slice(5, 9)), f[5:9], rtol=1e-12, atol=1e-12)
        parts = [loss.gradient(x, c[part], part) for part in (slice(0, 11), slice(11, N))]
        np.testing.assert_allclose(loss.gradient(x, c), sum(parts), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(loss.gradient(x, c[rows], rows), sum(parts), rtol=1e-10, atol=1e-10)

    def test_a_row_of_weight_zero_is_left_out(self, case: Case) -> None:
        loss = case(V)
        x, c = point(loss), np.ones(N)
        c[3] = 0
        expected = loss.gradient(x, np.ones(N - 1), np.delete(np.arange(N), 3))
        evaluate = loss.evaluate

        def poisoned(z: Any, rows: Any = None) -> Any:
            f, r = evaluate(z, rows)
            r[3] = np.nan
            return f, r

        loss.evaluate = poisoned  # type: ignore[method-assign]
        np.testing.assert_allclose(loss.gradient(x, c), expected, rtol=1e-10, atol=1e-10)

    def test_copies_and_pickles(self, case: Case) -> None:
        loss = case(V)
        x = point(loss)
        for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
            np.testing.assert_array_equal(twin.values(x), loss.values(x))


class TestLipschitz:
    """‖∇fᵢ(x) − ∇fᵢ(x′)‖ ≤ Lᵢ‖x − x′‖ for every pair of points."""

    @staticmethod
    def ratios(loss: Loss, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        """‖∇fᵢ(x + d) − ∇fᵢ(x)‖/‖d‖ over Lᵢ, for every i."""
        c = np.ones(1)
        change = [loss.gradient(x + d, c, np.array([i])) - loss.gradient(x, c, np.array([i])) for i in range(N)]
        return np.array([np.linalg.norm(g) for g in change]) / np.linalg.norm(d) / loss.lipschitz()

    @pytest.mark.parametrize("name", FINITE_CURVATURE)
    def test_bounds(self, name: str) -> None:
        loss = CASES[name](V)
        assert loss.lipschitz().shape == (N,)
        for seed in range(6):
            size = 10.0 ** (seed - 3)
            assert self.ratios(loss, point(loss, seed), size * point(loss, seed + 9)).max() <= 1 + 1e-9

    @pytest.mark.parametrize("name", ["least-squares", "huber", "logistic", "subspace", "homography-printed"])
    def test_is_attained(self, name: str) -> None:
        """At the point where φ is most curved, along the row itself."""
        loss = CASES[name](V)
        i = int(np.argmax(np.abs(V[:, :2]).sum(1)))
        e = np.eye(N)[i]
        x = np.linalg.lstsq(V[i : i + 1], np.array([REAL[i]]), rcond=None)[0] if name == "huber" else 0 * point(loss)
        d = np.zeros(loss.x_shape)
        a = loss.linear.adjoint(np.outer(e, np.eye(loss.linear.K or 1)[0]))  # the row, in the shape of x
        d += 1e-3 * a / np.linalg.norm(a)
        assert self.ratios(loss, x, d)[i] == pytest.approx(1, rel=1e-5)

    def test_algebraic_homography_is_attained(self) -> None:
        loss = Homography(V[:, :2], DST)
        for i in range(3):
            C = np.array([[-1, 0, DST[i, 0]], [0, -1, DST[i, 1]]])
            d = np.outer(np.linalg.svd(C)[2][0], np.append(V[i, :2], 1))
            assert self.ratios(loss, np.zeros((3, 3)), d)[i] == pytest.approx(1, rel=1e-9)

    def test_softmax_needs_one_half(self) -> None:
        """At probabilities (½, ½, 0, …) the Hessian has norm ½: a quarter would be wrong."""
        loss = Softmax(V, LABELS)
        i = int(np.argmax(np.abs(V).sum(1)))
        v = V[i] / np.linalg.norm(V[i])
        x = 50 * np.outer(v, [1, 1, -2])
        assert self.ratios(loss, x, 1e-4 * np.outer(v, [1, -1, 0]))[i] == pytest.approx(1, rel=1e-5)

    def test_student_and_smooth_l1_at_their_sharpest(self) -> None:
        V1 = np.full((N, 1), 2.0)
        for loss in (StudentT(V1, np.zeros(N), nu=3.0, sigma=0.5), SmoothL1(V1, np.zeros(N), eps=0.1)):
            assert self.ratios(loss, np.zeros(1), np.full(1, 1e-5)).min() == pytest.approx(1, rel=1e-5)

    def test_no_global_constant(self) -> None:
        V1 = V.copy()
        V1[3] = 0  # this loss is constant
        for loss in (Poisson(V1, COUNTS), Gamma(V1, AMOUNTS)):
            expected = np.full(N, np.inf)
            expected[(V1 == 0).all(1)] = 0
            np.testing.assert_array_equal(loss.lipschitz(), expected)


class TestAgainstOthers:
    z = 3 * np.random.default_rng(5).standard_normal(N)

    def check(self, loss: PredictionLoss, f: Any, r: Any) -> None:
        phi, residual = loss.evaluate(self.z[:, None])
        np.testing.assert_allclose(phi, f, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(residual[:, 0], r, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize(
        ("loss", "twin"),
        [
            (Poisson(V, COUNTS), HalfPoissonLoss()),
            (Gamma(V, AMOUNTS), HalfGammaLoss()),
            (Logistic(V, LABELS > 0), HalfBinomialLoss()),
            (Logistic(V, SHARES), HalfBinomialLoss()),
        ],
        ids=["poisson", "gamma", "logistic", "logistic-shares"],
    )
    def test_scikit_learn(self, loss: Any, twin: Any) -> None:
        y = loss.t.astype(np.float64)
        f, r = twin.loss_gradient(y, self.z)
        self.check(loss, f + twin.constant_to_optimal_zero(y), r)

    def test_scikit_learn_multinomial(self) -> None:
        z = 3 * np.random.default_rng(5).standard_normal((N, 5))
        f, r = HalfMultinomialLoss(n_classes=5).loss_gradient(LABELS.astype(np.float64), z)
        phi, residual = Softmax(V, LABELS, n_classes=5).evaluate(z)
        np.testing.assert_allclose(phi, f, rtol=1e-10)
        np.testing.assert_allclose(residual, r, rtol=1e-10, atol=1e-14)

    def test_softmax_of_many_classes(self) -> None:
        z = 3 * np.random.default_rng(5).standard_normal((N, 80))
        phi, residual = Softmax(V, LABELS, n_classes=80).evaluate(z)
        np.testing.assert_allclose(phi, scipy.special.logsumexp(z, axis=1) - z[np.arange(N), LABELS], rtol=1e-12)
        np.testing.assert_allclose(residual + np.eye(80)[LABELS], scipy.special.softmax(z, axis=1), rtol=1e-10)

    def test_full_likelihoods(self) -> None:
        counts = COUNTS.astype(int)
        mean = np.exp(self.z)
        self.check(Poisson(V, counts, "likelihood"), -scipy.stats.poisson.logpmf(counts, mean), mean - counts)
        f = -scipy.stats.expon.logpdf(AMOUNTS.astype(float), scale=mean)
        self.check(Gamma(V, AMOUNTS, "likelihood"), f, 1 - AMOUNTS / mean)

    def test_regression(self) -> None:
        u = self.z - REAL
        self.check(LeastSquares(V, REAL), u**2 / 2, u)
        self.check(Huber(V, REAL, delta=0.8), scipy.special.huber(0.8, u), np.clip(u, -0.8, 0.8))
        self.check(SmoothL1(V, REAL, eps=0.2), scipy.special.pseudo_huber(0.2, u) / 0.2, u / np.hypot(u, 0.2))
        density = scipy.stats.t(df=3.0, scale=0.7)
        f = density.logpdf(0) - density.logpdf(u)
        self.check(StudentT(V, REAL, nu=3.0, sigma=0.7), f, 4 * u / (3 * 0.49 + u**2))

    def test_several_outputs_add_up(self) -> None:
        x = point(LeastSquares(V, REAL_3))
        parts = [LeastSquares(V, REAL_3[:, k]) for k in range(3)]
        total = sum(part.values(x[:, k]) for k, part in enumerate(parts))
        np.testing.assert_allclose(LeastSquares(V, REAL_3).values(x), total, rtol=1e-12)


class TestDeviance:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_zero_at_the_saturated_fit(self, dtype: str) -> None:
        t = np.array([1e-3, 0.3, 0.9, 1, 7, 1e3, 1e6])
        eps = float(np.finfo(dtype).eps)
        V1 = np.ones((len(t), 1), dtype=dtype)
        z = np.log(t).astype(dtype)[:, None]
        for loss in (Poisson(V1, t), Gamma(V1, t)):
            f, r = loss.evaluate(z)
            assert f.dtype == r.dtype == dtype
            assert (f >= 0).all()
            assert (f <= 20 * eps * t + 20 * eps).all()  # the plain formula loses t·log t·eps: 40 times this bound
        shares = np.array([0.0, 0.25, 0.5, 0.99, 1.0])
        logit = np.clip(scipy.special.logit(shares), -200, 200).astype(dtype)[:, None]
        f, r = Logistic(np.ones((5, 1), dtype=dtype), shares).evaluate(logit)
        assert ((f >= 0) & (f <= 4 * eps)).all()
        assert (np.abs(r) <= 4 * eps).all()

    def test_never_negative_and_positive_elsewhere(self) -> None:
        z = np.random.default_rng(0).uniform(-8, 8, (N, 1))
        for loss in (Poisson(V, COUNTS), Gamma(V, AMOUNTS), Logistic(V, SHARES), Logistic(V, LABELS > 0)):
            assert (loss.phi(z) > 0).all()

    def test_trims_fairly(self) -> None:
        """Clean counts at their true rates: the deviance is as large for rare as for frequent events."""
        rng = np.random.default_rng(0)
        rates = np.repeat([3.0, 30.0, 60.0], 4000)
        t = rng.poisson(rates)
        x = np.log(rates)[:, None]
        V1 = np.ones((len(t), 1))
        fair = Poisson(V1, t).phi(x).reshape(3, -1).mean(1)
        unfair = Poisson(V1, t, "likelihood").phi(x).reshape(3, -1).mean(1)
        assert fair.max() < 1.2 * fair.min()
        assert unfair[2] > 1.6 * unfair[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
class TestHugePredictions:
    """Warnings are errors here: no overflow, no NaN, whatever z."""

    Z = np.array([-1e30, -1e6, -1e4, -800.0, -100.0, 0.0, 100.0, 800.0, 1e4, 1e6, 1e30])

    def evaluate(self, make: Callable[[Any], PredictionLoss], z: np.ndarray, kind: str, dtype: str) -> Any:
        wrap = np.asarray if kind == "numpy" else pytest.importorskip("torch").asarray
        loss = make(wrap(np.ones((len(z), 1), dtype=dtype)))
        f, r = loss.evaluate(wrap(z.astype(dtype)))
        return to_numpy(f), to_numpy(r)

    def test_logistic(self, kind: str, dtype: str) -> None:
        t = np.arange(11) % 2
        f, r = self.evaluate(lambda V: Logistic(V, t), self.Z[:, None], kind, dtype)
        np.testing.assert_allclose(f, np.logaddexp(0, np.where(t == 1, -self.Z, self.Z)), rtol=1e-5, atol=1e-37)
        np.testing.assert_allclose(r[:, 0], scipy.special.expit(self.Z) - t, rtol=1e-5, atol=1e-7)

    def test_softmax(self, kind: str, dtype: str) -> None:
        z = np.stack([self.Z, np.zeros(11), -self.Z], axis=1)
        t = np.arange(11) % 3
        f, r = self.evaluate(lambda V: Softmax(V, t), z, kind, dtype)
        expected = scipy.special.logsumexp(z, axis=1) - z[np.arange(11), t]
        np.testing.assert_allclose(f, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(r, scipy.special.softmax(z, axis=1) - np.eye(3)[t], atol=1e-6)

    @pytest.mark.parametrize("normalisation", ["deviance", "likelihood"])
    @pytest.mark.parametrize("family", [Poisson, Gamma])
    def test_log_link(self, family: Any, normalisation: str, kind: str, dtype: str) -> None:
        for t in (0.0, 1e-6, 1.0, 1e6):
            if t == 0 and family is Gamma:
                continue
            f, r = self.evaluate(lambda V, t=t: family(V, np.full(11, t), normalisation), self.Z[:, None], kind, dtype)
            assert np.isfinite(f).all()
            assert np.isfinite(r).all()
            assert (np.diff(r[:, 0]) >= 0).all()  # convex
            far = self.Z > 90 if family is Poisson else self.Z < -90
            assert (f[far] > 1e8).all()

    def test_regression(self, kind: str, dtype: str) -> None:
        z = self.Z[np.abs(self.Z) < 1e10][:, None]
        for family in (LeastSquares, Huber, StudentT, SmoothL1):
            f, r = self.evaluate(lambda V, family=family: family(V, np.zeros(9)), z, kind, dtype)
            assert np.isfinite(f).all()
            assert (np.sign(r) == np.sign(z)).all()
            assert (f >= 0).all()


class TestSubspace:
    def test_is_the_distance_to_the_subspace(self) -> None:
        U = np.linalg.qr(point(Subspace(V, 2)))[0]
        for center in (None, np.arange(P) / 3):
            A = V if center is None else V - center
            distance = ((A - A @ U @ U.T) ** 2).sum(1) / 2
            np.testing.assert_allclose(Subspace(V, 2, center=center).values(U), distance, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("shape", [(N, P), (3, 7), (60, 30), (20, 60)])
    def test_start_spans_the_leading_eigenvectors(self, shape: tuple[int, int]) -> None:
        A = np.random.default_rng(0).standard_normal(shape) * 0.6 ** np.arange(shape[1])
        loss = Subspace(A, 2)
        U = loss.start()
        np.testing.assert_allclose(U.T @ U, np.eye(2), atol=1e-12)
        leading = np.linalg.svd(A)[2][:2].T
        np.testing.assert_allclose(U @ U.T, leading @ leading.T, atol=1e-6)
        np.testing.assert_allclose(np.abs((U * leading).sum(0)), 1, atol=1e-6)  # largest first

    def test_start_does_not_depend_on_the_order_of_the_rows(self) -> None:
        for seed in range(5):
            rng = np.random.default_rng(seed)
            A = rng.standard_normal((200, 30))
            U = Subspace(A, 5).start()
            np.testing.assert_allclose(Subspace(A[rng.permutation(200)], 5).start(), U, atol=1e-9)
            np.testing.assert_allclose(Subspace(A.astype(np.float32), 5).start(), U, atol=1e-3)

    def test_start_does_not_depend_on_the_library(self) -> None:
        """Each LAPACK has its own signs of eigenvectors."""
        torch = pytest.importorskip("torch")
        for seed in range(3):
            A = np.random.default_rng(seed).standard_normal((100, 40))
            U = Subspace(torch.asarray(A), 10).start()
            np.testing.assert_allclose(to_numpy(U), Subspace(A, 10).start(), atol=1e-9)

    def test_start_with_a_sparse_centre(self) -> None:
        rng = np.random.default_rng(0)
        A = sp.csr_array(rng.standard_normal((60, 40)) * (rng.random((60, 40)) < 0.2))
        center = A.toarray().mean(0)
        expected = Subspace(A.toarray() - center, 2).start()
        np.testing.assert_allclose(Subspace(A, 2, center=center).start(), expected, atol=1e-9)

    def test_start_of_nothing_is_orthonormal(self) -> None:
        U = Subspace(np.zeros((5, 4)), 2).start()
        np.testing.assert_allclose(U.T @ U, np.eye(2), atol=1e-12)


class TestHomography:
    src = np.random.default_rng(1).standard_normal((N, 2))
    dst = np.random.default_rng(2).standard_normal((N, 2))

    def test_algebraic_form_is_the_direct_linear_transform(self) -> None:
        H = np.random.default_rng(3).standard_normal((3, 3))
        f = Homography(self.src, self.dst).values(H)
        for i, ((u1, v1), (u2, v2)) in enumerate(zip(self.src, self.dst, strict=True)):
            rows = [
                [-u1, -v1, -1, 0, 0, 0, u2 * u1, u2 * v1, u2],
                [0, 0, 0, -u1, -v1, -1, v2 * u1, v2 * v1, v2],
            ]
            assert f[i] == pytest.approx(np.sum((np.array(rows) @ H.ravel()) ** 2), rel=1e-12)

    def test_printed_form(self) -> None:
        H = np.random.default_rng(3).standard_normal((3, 3))
        one = np.ones((N, 1))
        error = np.hstack([self.src, one]) @ H.T - np.hstack([self.dst, one])
        loss = Homography(self.src, self.dst, form="printed")
        np.testing.assert_allclose(loss.values(H), (error**2).sum(1), rtol=1e-12)

    def test_algebraic_form_vanishes_at_every_multiple_of_the_truth(self) -> None:
        H = np.array([[1.1, 0.1, 3.0], [-0.2, 0.9, 1.0], [1e-2, 2e-2, 1.0]])
        image = np.hstack([self.src, np.ones((N, 1))]) @ H.T
        loss = Homography(self.src, image[:, :2] / image[:, 2:])
        for multiple in (1.0, -0.3, 7.0):
            assert loss.values(multiple * H).max() < 1e-25

    def test_start_has_norm_one(self) -> None:
        H = Homography(self.src, self.dst).start()
        assert np.linalg.norm(H) == pytest.approx(1)
        np.testing.assert_allclose(H, np.eye(3) * H[0, 0])

    def test_integer_pixels(self) -> None:
        pixels = (100 * self.src).astype(np.int64)
        loss = Homography(pixels, pixels)
        assert loss.values(np.eye(3)).max() == 0.0


class TestInput:
    def test_labels_may_be_any_whole_numbers(self) -> None:
        x = point(Softmax(V, LABELS))
        expected = Softmax(V, LABELS).values(x)
        for labels in (LABELS.astype(float), LABELS.astype(np.uint8), LABELS.tolist()):
            np.testing.assert_array_equal(Softmax(V, labels).values(x), expected)

    def test_torch_data_with_numpy_targets_and_back(self) -> None:
        torch = pytest.importorskip("torch")
        loss = Softmax(torch.asarray(V), LABELS)
        assert loss.values(torch.zeros(P, 3, dtype=torch.float64)).dtype == torch.float64
        x = np.ones(P)
        values = LeastSquares(V, torch.asarray(REAL)).values(x)
        np.testing.assert_array_equal(values, LeastSquares(V, REAL).values(x))

    def test_series(self) -> None:
        pd = pytest.importorskip("pandas")
        loss = Logistic(pd.DataFrame(V), pd.Series(LABELS > 0))
        np.testing.assert_array_equal(loss.values(np.ones(P)), Logistic(V, LABELS > 0).values(np.ones(P)))

    def test_integer_data(self) -> None:
        pixels = np.random.default_rng(0).integers(0, 255, (N, 6)).astype(np.uint8)
        loss = Softmax(pixels, LABELS, scale=np.full(6, 255.0))
        x = np.ones((6, 3), dtype=np.float32)
        assert loss.like.dtype == np.float32
        expected = Softmax(pixels / 255, LABELS).values(np.ones((6, 3)))
        np.testing.assert_allclose(loss.values(x), expected, rtol=1e-5)

    BAD: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: LeastSquares(V, REAL[:-1]), "t must hold one target for each of the 40 rows"),
        (lambda: LeastSquares(V, np.ones((N, 2, 2))), "t must be 1-D or 2-D"),
        (lambda: LeastSquares(V, np.ones((N, 0))), "t must hold one target"),
        (lambda: LeastSquares(V, np.where(np.arange(N) == 3, np.nan, 1)), "t holds NaN or infinity"),
        (lambda: LeastSquares(V.astype(np.float32), np.full(N, 1e300)), "t holds NaN or infinity .as float32"),
        (lambda: LeastSquares(V, np.full(N, 1j)), "t must hold real numbers"),
        (lambda: LeastSquares(V, np.full(N, "a")), "t must hold real numbers"),
        (lambda: LeastSquares(V * np.nan, REAL), "V holds NaN"),
        (lambda: LeastSquares(V, REAL, center=np.ones(P + 1)), "center must have shape"),
        (lambda: Huber(V, REAL, delta=0.0), "delta must be a finite number > 0"),
        (lambda: Huber(V, REAL, delta="wide"), "delta must be a finite number > 0"),
        (lambda: StudentT(V, REAL, nu=-1.0), "nu must be a finite number > 0"),
        (lambda: StudentT(V, REAL, sigma=np.nan), "sigma must be a finite number > 0"),
        (lambda: StudentT(V, REAL, scale=1.0), "scale must have shape"),
        (lambda: SmoothL1(V, REAL, eps=np.inf), "eps must be a finite number > 0"),
        (lambda: Logistic(V, np.zeros(N)), "t holds one class only"),
        (lambda: Logistic(V, np.ones(N, dtype=bool)), "t holds one class only"),
        (lambda: Logistic(V, 2 * (LABELS > 0) - 1), r"t must lie in \[0, 1\]"),
        (lambda: Logistic(V, LABELS), r"t must lie in \[0, 1\]"),
        (lambda: Logistic(V, (LABELS > 0)[:, None]), "t must be 1-D"),
        (lambda: Softmax(V, np.ones(N, dtype=int)), "t holds one class only"),
        (lambda: Softmax(V, LABELS + 0.5), "t must hold integers >= 0"),
        (lambda: Softmax(V, LABELS * 1e300), "t must hold integers >= 0"),
        (lambda: Softmax(V, LABELS - 1), "t must hold integers >= 0"),
        (lambda: Softmax(V, np.where(LABELS == 0, np.nan, 1)), "t holds NaN"),
        (lambda: Softmax(V, np.array(["a", "b"] * 20)), "t must hold real numbers"),
        (lambda: Softmax(V, LABELS[1:]), "t must hold one target"),
        (lambda: Softmax(V, LABELS, n_classes=2), "n_classes is 2 but t holds the label 2"),
        (lambda: Softmax(V, LABELS, n_classes=0), "n_classes must be an integer"),
        (lambda: Poisson(V, COUNTS - 1), "t must be >= 0"),
        (lambda: Poisson(V, COUNTS, "aic"), "normalisation must be one of"),
        (lambda: Gamma(V, COUNTS), "t must be > 0"),
        (lambda: Subspace(V, 0), "k must be an integer >= 1 and <= 4"),
        (lambda: Subspace(V, P + 1), "k must be an integer >= 1 and <= 4"),
        (lambda: Subspace(V, 1.5), "k must be an integer"),
        (lambda: Subspace(V * np.nan), "A holds NaN"),
        (lambda: Subspace(V[:, 0]), "A must be 2-D"),
        (lambda: Homography(V, DST), r"src must have shape \(n, 2\)"),
        (lambda: Homography(DST, V), r"dst must have shape \(n, 2\)"),
        (lambda: Homography(DST, DST[1:]), "dst must hold one target"),
        (lambda: Homography(DST * np.nan, DST), "src holds NaN"),
        (lambda: Homography(DST, DST, form="sampson"), "form must be one of"),
    )

    @pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
    def test_errors(self, make: Callable[[], Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            make()


class Quadratic(Loss):
    """A loss without a linear prediction: half the squared distance of a matrix x to aᵢ."""

    def __init__(self, a: np.ndarray) -> None:
        self.a = a
        self.n, self.x_shape, self.like = len(a), a.shape[1:], a

    def values(self, x: Any, rows: Any = None) -> Any:
        return ((x - self.a[slice(None) if rows is None else rows]) ** 2).sum((1, 2)) / 2

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        return np.tensordot(c, x - self.a[slice(None) if rows is None else rows], 1)

    def lipschitz(self) -> Any:
        return np.ones(self.n)


def test_any_other_loss_starts_at_zero() -> None:
    loss = Quadratic(np.ones((5, 2, 3), dtype=np.float32))
    assert loss.start().shape == (2, 3)
    assert loss.start().dtype == np.float32
    np.testing.assert_array_equal(loss.values(loss.start()), np.full(5, 3.0))


def test_interfaces_are_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Loss()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="abstract"):
        PredictionLoss(Linear(V))  # type: ignore[abstract]


def test_public_names() -> None:
    fixed = "LeastSquares Logistic Softmax Poisson Gamma Huber StudentT SmoothL1 Subspace Homography"
    assert set(fixed.split()) <= set(losses.__all__)


def test_counts_of_which_most_are_0_start_at_a_thousandth_of_their_mean() -> None:
    loss = Poisson(np.ones((5, 1)), np.array([0.0, 0.0, 0.0, 0.0, 10.0]), intercept=True)
    assert loss.start()[-1] == pytest.approx(np.log(2e-3))
