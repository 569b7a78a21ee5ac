"""A fit as a table, the way R prints one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from trimlearn._utils.text import grid
from trimlearn.inference.outlier_table import data_frame

Vector = NDArray[np.float64]

DIFFERENT = 0.05  # of the share flagged and the contamination: one row in 20 is more than both round by, and asks why
SCATTERED = 1.5  # deviance over its degrees of freedom: 1.16 at most of Poisson's own counts (at a mean of 2), and room
BY_CHANCE = 1e-3  # chance of such a deviance, below which that is told (a choice)
HEADINGS = ("estimate", "std. error", "{statistic}", "p", "from", "to")


@final
@dataclass(frozen=True)
class Summary:
    """Numbers about a fit; ``str`` shows them. Arrays follow ``names``; infinite standard errors print as NA."""

    name: str
    names: tuple[str, ...]
    estimate: Vector
    std_error: Vector
    statistic: Vector
    p_value: Vector
    conf_int: NDArray[np.float64]
    level: float
    statistic_name: str
    covariance: str
    scale: float
    df_resid: float
    df_model: float
    family: str
    ridge: float
    deviance: float
    null_deviance: float
    deviance_explained: float
    adjusted: float | None
    f_test: tuple[float, float, float, float] | None
    residual_quantiles: Vector
    n_rows: int
    n_kept: int
    contamination: float | None
    flagged_share: float  # of the weight of all rows
    in_doubt: int = 0  # rows that several fits judge differently

    @property
    def n_flagged(self) -> int:
        return self.n_rows - self.n_kept

    @property
    def r2(self) -> float:
        """R² of the rows that count, by the same scale as the F test; or the share of deviance explained."""
        return self.deviance_explained

    def to_frame(self) -> Any:
        """The coefficients as a pandas DataFrame, one row each."""
        columns = dict(zip(self._headings, self._columns, strict=True))
        return data_frame(columns, "use the attributes of this summary, which hold the same numbers", self.names)

    def __str__(self) -> str:
        return "\n".join([self._title, "", *self._residuals, "", *self._coefficients, "", *self._quality])

    @property
    def _headings(self) -> tuple[str, ...]:
        return tuple(heading.format(statistic=self.statistic_name) for heading in HEADINGS)

    @property
    def _columns(self) -> tuple[Vector, ...]:
        return (self.estimate, self.std_error, self.statistic, self.p_value, self.conf_int[:, 0], self.conf_int[:, 1])

    @property
    def _title(self) -> str:
        bad = "" if self.contamination is None else f", contamination {self.contamination:.1%}"
        title = f"{self.name} ({self.family}): {self.n_kept} of {self.n_rows} rows count, {self.n_flagged} flagged{bad}"
        doubt = [f"{self.in_doubt} rows are in doubt, as fits judge them differently: see outlier_probability_."]
        return "\n".join([title, *self._shares, *doubt[: self.in_doubt]])

    @property
    def _shares(self) -> list[str]:
        """Why the share flagged is not the contamination, where the two differ."""
        flagged, bad = self.flagged_share, self.contamination
        if bad is None or abs(flagged - bad) <= DIFFERENT:
            return []
        if flagged < bad:
            return [
                f"{bad:.1%} of the rows are taken for bad (contamination), {flagged:.1%} are flagged: the others lie "
                "too near the fit to be told from good ones."
            ]
        return [
            f"{flagged:.1%} of the rows are flagged, more than the {bad:.1%} taken for bad (contamination): good rows "
            "of a heavy tail are among them, or the contamination given was too small."
        ]

    @property
    def _scattered(self) -> list[str]:
        """What it means for standard errors that counts scatter more than their law has it."""
        ratio = self.deviance / max(self.df_resid, 1.0)
        if self.family != "poisson" or self.covariance != "classical" or ratio < SCATTERED:
            return []
        if chdtrc(self.df_resid, self.deviance) > BY_CHANCE:
            return []
        return [
            f"The counts scatter {ratio:.1f} times as much as the family has it: standard errors are some "
            f"{np.sqrt(ratio):.1f} times too small. Take covariance='HC1'."
        ]

    @property
    def _residuals(self) -> list[str]:
        kind = "Residuals" if self.family == "normal" else "Deviance residuals"
        values = [_short(q) for q in self.residual_quantiles]
        return [f"{kind} of the rows that count:", *grid([("min", "25%", "median", "75%", "max"), values])]

    @property
    def _coefficients(self) -> list[str]:
        lines = [("", *self._headings)]
        for name, *values in zip(self.names, *self._columns, strict=True):
            unknown = not np.isfinite(values[1])
            cells = ["NA"] * 5 if unknown else [*map(_short, values[1:3]), f"{values[3]:.3g}", *map(_short, values[4:])]
            lines.append((name, _short(values[0]), *cells))
        notes = [f"Intervals at {self.level:g}; covariance {self.covariance}."]
        if not np.all(np.isfinite(self.std_error)):
            notes.append("NA: the columns depend on each other; the data do not determine this coefficient.")
        if self.ridge > 0:
            notes.append("Penalised: estimates are shrunk, and the intervals do not know by how much.")
        if self.family == "multinomial":
            notes.append("Coefficients sum to 0 over the classes.")
        return [*grid(lines, left=[0]), *notes]

    @property
    def _quality(self) -> list[str]:
        df = f"{self.df_resid:g}" if self.df_resid == round(self.df_resid) else f"{self.df_resid:.1f}"
        if self.family != "normal":
            return [
                f"Deviance {_short(self.deviance)}, of a constant {_short(self.null_deviance)}: "
                f"{self.deviance_explained:.1%} explained",
                f"Dispersion {_short(self.scale**2)}, {df} degrees of freedom",
                *self._scattered,
            ]
        lines = [
            f"Residual scale {_short(self.scale)} on {df} degrees of freedom",
            f"R² {self.r2:.4f}, adjusted {self.adjusted:.4f}",
        ]
        if self.f_test is not None:
            F, k, _, p = self.f_test
            lines.append(f"F {_short(F)} on {k:.0f} and {df} degrees of freedom, p {p:.3g}")
        return lines


def flagged_share(weights: NDArray[Any], sample_weight: NDArray[Any] | None) -> float:
    """The share of the rows, each as often as its sample weight counts it, that have weight 0.

    >>> flagged_share(np.array([1.0, 0.0, 0.5]), np.array([3.0, 1.0, 0.0]))
    0.25
    """
    s = np.ones(len(weights)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return float(s @ (np.asarray(weights) <= 0) / s.sum())


def _short(value: float) -> str:
    return f"{value:.4g}"
