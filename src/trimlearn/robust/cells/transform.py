"""Columns in units in which their bulk is about normal: a robust power transform, location and scale.

A column whose values are positive, a few wrong ones apart, is transformed by Box and Cox, xᵏ or log x; below the bulk,
where a sign error has no logarithm, the curve goes on along its tangent. Any other column is transformed by Yeo and
Johnson. The power is the one for which the bulk, not the tails, is closest to normal.

J. Raymaekers and P. J. Rousseeuw (2021), Transforming variables to central normality, Machine Learning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from trimlearn.robust.scale import Chi
from trimlearn.robust.scatter.units import MAD

__all__ = ["ColumnTransform", "location_and_scale"]

POWERS = np.linspace(0.0, 2.0, 21)  # log at one end, its mirror image at the other: beyond, curves are bounded
POSITIVE = 0.9  # of the values: a column of which a tenth is negative measures something else than sizes
BULK = Chi().upper(0.01)  # in σ: as in the paper, 1 % of normal values lies beyond
WIDER = 3.5  # the same where nothing is transformed: a skew shows in the tail that a narrower bulk would leave out
# Of twice the log-likelihood, χ²₁ at 1 %: what a power must gain to take the place of a simpler one.
GAIN = Chi().upper(0.01) ** 2
TAIL = 3.0  # in σ: where the tangent of a logarithm begins; a third of 1 % of normal values is beyond
SHARES = np.linspace(0.005, 0.995, 100)  # of quantiles that are compared with normal ones: as many as matter
BOUND = 0.5  # of Tukey's biweight for their difference, in σ, as in the paper

Floats = NDArray[np.float64]


def location_and_scale(z: Floats) -> tuple[float, float]:
    """Median and MAD, then one step towards the mean and standard deviation of the values within 2.5 σ.

    Where more than half of the values are equal the MAD is that of the others.
    """
    m = float(np.median(z))
    away = np.abs(z - m)
    sigma = MAD * float(np.median(away))
    if sigma <= 0:
        sigma = MAD * float(np.median(away[away > 0])) if np.any(away > 0) else 0.0
        return m, sigma
    inside = z[away <= 2.5 * sigma]
    m = float(inside.mean())
    spread = float(np.sqrt(np.mean((inside - m) ** 2) / Chi().second_moment(2.5)))
    return m, max(spread, 0.5 * sigma)


@final
@dataclass(frozen=True)
class ColumnTransform:
    """x ↦ z: monotone, and z is about standard normal in the bulk.

    ``kind``: "box-cox" of x/unit, tangents below ``start``; or "yeo-johnson" of (x − origin)/unit. Then z = (· − m)/s.
    """

    kind: str
    power: float
    origin: float
    unit: float
    start: float
    m: float
    s: float

    @classmethod
    def of(cls, x: Floats, transform: bool = True) -> ColumnTransform:
        """The transform for the values x, all of them finite, at least two of them different.

        >>> x = np.exp(np.random.default_rng(0).normal(size=500))
        >>> column = ColumnTransform.of(x)
        >>> column.kind, column.power, column.into(np.array([-1.0])).round() < -3
        ('box-cox', 0.0, array([ True]))
        """
        positive = x > 0
        if transform and positive.mean() >= POSITIVE:
            base = cls("box-cox", 1.0, 0.0, float(np.median(x[positive])), 0.0, 0.0, 1.0)
            bulk = x[positive]
        else:
            m, s = location_and_scale(x)
            base = cls("yeo-johnson", 1.0, m, s, 0.0, 0.0, 1.0)
            bulk = x
        if not transform:
            return base
        return base._settled(bulk, _power(base, bulk))

    def _settled(self, x: Floats, power: float) -> ColumnTransform:
        """With this power, and location and scale of the bulk."""
        raw = ColumnTransform(self.kind, power, self.origin, self.unit, 0.0, 0.0, 1.0)
        m, s = location_and_scale(raw._curve(x))
        start = 0.0
        if self.kind == "box-cox":
            reached = x[np.abs(raw._curve(x) - m) <= TAIL * s]
            start = float(reached.min()) / self.unit
        return ColumnTransform(self.kind, power, self.origin, self.unit, start, m, s if s > 0 else 1.0)

    def into(self, x: Floats) -> Floats:
        """Values in units of σ about the centre; NaN stays NaN."""
        return np.asarray((self._curve(x) - self.m) / self.s)

    def back(self, z: Floats) -> Floats:
        """What `into` was made of."""
        return self._inverse(z * self.s + self.m)

    @property
    def _slope(self) -> float:
        """Below ``start``: that of the tangent, but no less than at the median, or a power above 1 would hide signs."""
        return float(max(1.0, self.start ** (self.power - 1.0)))

    def _curve(self, x: Floats) -> Floats:
        y = (x - self.origin) / self.unit
        if self.kind == "yeo-johnson":
            return _yeo_johnson(y, self.power)
        inside = np.maximum(y, self.start) if self.start > 0 else y
        z = _box_cox(inside, self.power)
        if self.start > 0:
            z = z + (y - inside) * self._slope
        return z

    def _inverse(self, z: Floats) -> Floats:
        if self.kind == "yeo-johnson":
            return np.asarray(self.origin + self.unit * _yeo_johnson_inverse(z, self.power))
        least = float(_box_cox(np.array(self.start), self.power))
        below = np.minimum(z - least, 0.0) / self._slope
        return np.asarray(self.unit * (_box_cox_inverse(np.maximum(z, least), self.power) + below))

    def slope(self, x: Floats) -> Floats:
        """The derivative of `into`: how densely values lie beside transformed ones.

        >>> column = ColumnTransform.of(np.exp(np.random.default_rng(0).normal(size=500)))
        >>> float(np.round(column.slope(np.array([1.0])) / column.slope(np.array([10.0])), 3)[0])
        10.0
        """
        y = (x - self.origin) / self.unit
        if self.kind == "yeo-johnson":
            steep = np.exp((self.power - 1.0) * np.sign(y) * np.log1p(np.abs(y)))
        else:
            at = np.maximum(y, self.start) if self.start > 0 else y
            with np.errstate(divide="ignore", invalid="ignore"):
                steep = np.where(y < self.start, self._slope, at ** (self.power - 1.0))
        return np.asarray(steep / (self.unit * self.s))

    def log_slope(self, x: Floats) -> Floats:
        """log of the derivative of the curve, a constant apart: for likelihoods."""
        y = (x - self.origin) / self.unit
        if self.kind == "yeo-johnson":
            return np.asarray((self.power - 1.0) * np.sign(y) * np.log1p(np.abs(y)))
        return np.asarray((self.power - 1.0) * np.log(y))


def _power(base: ColumnTransform, x: Floats) -> float:
    """The power: 1, or 0, unless the bulk speaks against it.

    1 is asked first. Wild values on both sides look like a tail that a logarithm would tame, and 1 calls them wild.
    """
    for asked in (1.0, None):  # the second is sought only where it is needed: 21 fits
        power = min(POWERS, key=lambda power: _misfit(base, x, float(power))) if asked is None else asked
        for _ in range(3):
            curve = base._settled(x, float(power))
            bulk = x[np.abs(curve.into(x)) <= (WIDER if power == 1.0 else BULK)]
            before, power = power, _simplest(np.array([_likelihood(base, bulk, float(k)) for k in POWERS]))
            if power == before:
                break
        if power == 1.0:
            break
    return float(power)


def _simplest(fits: Floats) -> float:
    """The likeliest power, or a simpler one that is hardly less likely."""
    for simple in (1.0, 0.0, 0.5):
        if fits[np.argmin(np.abs(POWERS - simple))] >= fits.max() - GAIN / 2:
            return simple
    return float(POWERS[np.argmax(fits)])


def _likelihood(base: ColumnTransform, x: Floats, power: float) -> float:
    """The maximal normal log-likelihood of the values under this power."""
    curve = ColumnTransform(base.kind, power, base.origin, base.unit, 0.0, 0.0, 1.0)
    variance = float(np.var(curve._curve(x)))
    if not variance > 0:
        return -np.inf
    return float(-0.5 * len(x) * np.log(variance) + curve.log_slope(x).sum())


def _misfit(base: ColumnTransform, x: Floats, power: float) -> float:
    """How far quantiles are from normal ones, with a bounded loss: those of the tails cost the same for all powers."""
    z = base._settled(x, power).into(np.quantile(x, SHARES))
    off = np.minimum(np.abs(z - ndtri(SHARES)) / BOUND, 1.0)
    return float(np.mean(1.0 - (1.0 - off**2) ** 3))


def _box_cox(y: Floats, power: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(y) if power == 0 else (y**power - 1.0) / power)


def _box_cox_inverse(z: Floats, power: float) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(z) if power == 0 else np.maximum(1.0 + power * z, 0.0) ** (1.0 / power))


def _yeo_johnson(y: Floats, power: float) -> Floats:
    a = np.abs(y)
    with np.errstate(over="ignore"):
        return np.asarray(np.where(y >= 0, _box_cox(1.0 + a, power), -_box_cox(1.0 + a, 2.0 - power)))


def _yeo_johnson_inverse(z: Floats, power: float) -> Floats:
    a = np.abs(z)
    up, down = _box_cox_inverse(a, power), _box_cox_inverse(a, 2.0 - power)
    return np.asarray(np.where(z >= 0, up - 1.0, 1.0 - down))
