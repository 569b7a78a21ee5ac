"""check_loss is silent where a loss is right, and says in a sentence what is wrong where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from odd_losses import Distance, Hinge, Ordinal, Pinball, Tukey, Weibull

from trimlearn.losses import (
    Gamma,
    Huber,
    LeastSquares,
    Linear,
    Logistic,
    Loss,
    Poisson,
    PredictionLoss,
    Softmax,
    StudentT,
    Subspace,
    check_loss,
    select,
)

RNG = np.random.default_rng(0)
V = RNG.standard_normal((60, 3))
T = V @ [1.0, 2.0, -1.0] + 0.1 * RNG.standard_normal(60)
SIGN = np.where(T > 0, 1.0, -1.0)
CLASSES = RNG.integers(0, 3, 60)

RIGHT: dict[str, Loss] = {
    "squares": LeastSquares(V, T, intercept=True),
    "squares of one row": LeastSquares(V[:1], T[:1]),
    "squares, more columns than rows": LeastSquares(RNG.standard_normal((5, 40)), T[:5]),
    "squares, float32": LeastSquares(V.astype(np.float32), T.astype(np.float32)),
    "squares of large numbers": LeastSquares(1e4 * V + 1e5, 1e3 * T, intercept=True),
    "squares of small numbers": LeastSquares(1e-8 * V, 1e-6 * T),
    "logistic": Logistic(V, SIGN > 0),
    "softmax": Softmax(V, CLASSES),
    "softmax, float32": Softmax(V.astype(np.float32), CLASSES),
    "poisson": Poisson(V, np.abs(T)),
    "gamma": Gamma(V, np.abs(T) + 0.1),
    "subspace": Subspace(V),
    "tukey": Tukey(V, T),
    "weibull": Weibull(V, np.exp(T), SIGN > 0),
    "ordinal": Ordinal(V, CLASSES),
    "distance": Distance(V),
    "distance, float32": Distance(V.astype(np.float32)),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RIGHT)
def test_silent_where_a_loss_is_right(name: str, seed: int) -> None:
    check_loss(RIGHT[name], seed=seed)


def test_silent_on_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    for dtype in (torch.float32, torch.float64):
        check_loss(Distance(torch.as_tensor(V, dtype=dtype)))


@pytest.mark.parametrize("loss", [Huber(V, T), StudentT(V, T)], ids=["huber", "student"])
def test_a_parabola_above_the_loss_must_be_meant(loss: Loss) -> None:
    with pytest.raises(ValueError, match=r"phi_hessp is not the derivative.*exact_hessian=False"):
        check_loss(loss)
    check_loss(loss, exact_hessian=False)


@pytest.mark.parametrize("loss", [Pinball(V, T), Hinge(V, SIGN)], ids=["pinball", "hinge"])
def test_a_kink_is_named(loss: Loss) -> None:
    with pytest.raises(ValueError, match=r"gradient jumps from .* at a kink \(example \d+\)"):
        check_loss(loss)
    check_loss(loss, smooth=False)


def test_a_point_may_be_given() -> None:
    check_loss(RIGHT["ordinal"], np.array([0.1, 0.2, 0.3, -0.5, 0.1]))
    with pytest.raises(ValueError, match=r"x must have the shape x_shape = \(5,\), got \(2,\)"):
        check_loss(RIGHT["ordinal"], np.zeros(2))


# -- what is wrong ----------------------------------------------------------------------------------------------------


def wrong(**methods: Any) -> Loss:
    """`Distance` with other methods."""
    return type("Wrong", (Distance,), methods)(V)


def _all_rows(self: Any, x: Any, rows: Any = None) -> Any:
    return 0.5 * np.sum((x - self.V) ** 2, axis=1)


def _no_slices(self: Any, x: Any, rows: Any = None) -> Any:
    return 0.5 * np.sum((x - self.V[np.arange(self.n) if rows is None else rows[:]]) ** 2, axis=1)


def _sum(self: Any, x: Any, c: Any, rows: Any = None) -> Any:
    return np.sum((x - select(self.V, rows)), axis=0)


def _nan(self: Any, x: Any, c: Any, rows: Any = None) -> Any:
    return np.sum(c[:, None] * (x - select(self.V, rows)), axis=0)


def _asymmetric(self: Any, x: Any, u: Any, c: Any, rows: Any = None) -> Any:
    return np.sum(c) * np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) @ u


def _noisy(self: Any, x: Any, rows: Any = None) -> Any:
    return Distance.values(self, x, rows) + np.random.default_rng().random(len(select(self.V, rows)))


def _greedy(self: Any, x: Any, rows: Any = None) -> Any:
    x += 1.0
    return Distance.values(self, x, rows)


def _off_in_one(self: Any, x: Any, c: Any, rows: Any = None) -> Any:
    c = np.where(select(np.arange(self.n), rows) < 3, 2 * c, c)
    return Distance.gradient(self, x, c, rows)


FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        {"values": lambda self, x, rows=None: np.sum((x - select(self.V, rows)) ** 2)},
        r"one loss per example, shape \(60,\)",
    ),
    ({"values": _all_rows}, r"values\(x, rows\) must give one loss per row; for a slice"),
    ({"values": _no_slices}, r"rows: the loss raised TypeError"),
    ({"values": _noisy}, r"values gives other numbers at the same x"),
    ({"values": _greedy}, r"values changes the x that it is given"),
    (
        {"values": lambda self, x, rows=None: np.nan * Distance.values(self, x, rows)},
        r"NaN or infinite for every example",
    ),
    (
        {"values": lambda self, x, rows=None: Distance.values(self, x, rows).astype(np.float32)},
        r"values must give what",
    ),
    (
        {"gradient": lambda self, x, c, rows=None: 2 * Distance.gradient(self, x, c, rows)},
        r"gradient is 2 times what it",
    ),
    ({"gradient": lambda self, x, c, rows=None: -Distance.gradient(self, x, c, rows)}, r"gradient is -1 times what it"),
    (
        {"gradient": lambda self, x, c, rows=None: Distance.gradient(self, x, c, rows)[:2]},
        r"shape of x, \(3,\), got \(2,\)",
    ),
    ({"gradient": lambda self, x, c, rows=None: x * np.sum(c)}, r"gradient is not that of values"),
    ({"gradient": _off_in_one}, r"gradient is (2 times what|not that).*\(examples? "),
    ({"gradient": _sum}, r"not the sum of c times the gradients"),
    ({"gradient": _nan}, r"weight 0 whose data is NaN makes the whole gradient NaN.*weighted"),
    ({"hessp": lambda self, x, u, c, rows=None: 2 * np.sum(c) * u}, r"hessp is not the derivative of gradient"),
    ({"hessp": _asymmetric}, r"hessp is not symmetric"),
    ({"lipschitz": lambda self: np.full(self.n, 0.5)}, r"lipschitz is too small: it gives 0.5 where .* by 1 per"),
    ({"lipschitz": lambda self: 1.0}, r"lipschitz must give 60 numbers"),
    ({"minimiser": lambda self, c, r2, x: x + 1.0}, r"minimiser is not the minimum"),
    ({"minimiser": lambda self, c, r2, x: x[:1]}, r"minimiser must give an x of shape \(3,\)"),
    ({"value_gradient": lambda self, x, c, rows=None: (0.0, x)}, r"value_gradient differs"),
    ({"start": lambda self: np.zeros(2)}, r"start\(\) must have the shape x_shape = \(3,\)"),
    ({"start": lambda self: np.full(3, np.nan)}, r"start\(\) must be finite"),
]


@pytest.mark.parametrize(
    ("methods", "sentence"), FAULTS, ids=[f"{next(iter(m))}-{k}" for k, (m, _) in enumerate(FAULTS)]
)
def test_a_fault_is_named_in_one_line(methods: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        check_loss(wrong(**methods))
    first, *sentences = str(caught.value).splitlines()
    assert first == "Wrong is not right yet:" and all(line.startswith("- ") for line in sentences)


def test_too_small_a_bound_on_the_curvature() -> None:
    class Flat(PredictionLoss):
        def __init__(self) -> None:
            super().__init__(Linear(V))

        def evaluate(self, z: Any, rows: Any = None) -> tuple[Any, Any]:
            return 0.5 * z[:, 0] ** 2, z

        def curvature_bound(self) -> float:
            return 0.9

        def phi_hessp(self, z: Any, u: Any, rows: Any = None) -> Any:
            return u

    with pytest.raises(ValueError, match="curvature_bound is too small"):
        check_loss(Flat())


def test_attributes_that_were_forgotten() -> None:
    class Empty(Distance):
        def __init__(self) -> None:
            pass

    with pytest.raises(ValueError, match=r"the constructor must set self\.n, self\.x_shape, self\.like"):
        check_loss(Empty())
    for name, value, sentence in (
        ("n", 2.5, "n must be the number of examples"),
        ("x_shape", [3], "x_shape must be a tuple"),
        ("like", np.arange(3), "like must be a floating-point array"),
    ):
        loss = Distance(V)
        setattr(loss, name, value)
        with pytest.raises(ValueError, match=sentence):
            check_loss(loss)
    with pytest.raises(ValueError, match="loss must be a Loss, got ndarray"):
        check_loss(V)  # type: ignore[arg-type]
