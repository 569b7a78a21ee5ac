"""Penalties by the names and on the scales that scikit-learn's users know."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any

from trimlearn.regularizers import L0, L1, MCP, SCAD, ElasticNet, Regularizer, Ridge, Scaled

__all__ = ["PENALTIES", "SELECTING", "make_penalty"]

SELECTING = ("l1", "elasticnet", "scad", "mcp", "l0")  # those that set coefficients to zero
PENALTIES = ("l2", *SELECTING)  # all that estimators take; names as in scikit-learn, where it has them


def make_penalty(penalty: str, alpha: Any, l1_ratio: Any, scale: float) -> Regularizer:
    """scale · alpha · penalty: r2, where the objective a user has in mind, times ``scale``, is F.

    >>> make_penalty("l1", 0.5, None, scale=0.1)
    L1(alpha=0.05)
    """
    if not isinstance(penalty, str) or penalty not in PENALTIES:
        raise ValueError(f"penalty must be None or one of {', '.join(map(repr, PENALTIES))}, got {penalty!r}.")
    strength = _strength("alpha", alpha) * scale
    if penalty == "elasticnet":
        ratio = _strength("l1_ratio", l1_ratio)
        if ratio > 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, got {l1_ratio!r}.")
        return ElasticNet(strength, ratio)
    if penalty in ("scad", "mcp"):  # not homogeneous in alpha
        term = SCAD(float(alpha)) if penalty == "scad" else MCP(float(alpha))
        return Scaled(term, scale)
    plain: dict[str, type[Regularizer]] = {"l2": Ridge, "l1": L1, "l0": L0}
    return plain[penalty](strength)  # type: ignore[call-arg]


def _strength(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}.")
    return float(value)
