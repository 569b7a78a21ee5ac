"""How a fit moved when a person's decisions were put into it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from trimlearn.checks.findings import TargetFindings

if TYPE_CHECKING:
    from trimlearn.checks.parts import Parts

__all__ = ["how_it_moved"]


def how_it_moved(before: Parts, after: Parts, flagged: tuple[int, int]) -> list[str]:
    """Sentences on what changed. ``flagged``: the suspects before and after."""
    was, now = flagged
    sentences = [
        f"Before your decisions {was:,} {'row was' if was == 1 else 'rows were'} suspect; now {now:,} "
        f"{'is' if now == 1 else 'are'}."
    ]
    if before.target is not None and after.target is not None:
        sentences += _errors(before.target, after.target)
        sentences += _coefficients(before.target, after.target)
    return sentences


def _errors(before: TargetFindings, after: TargetFindings) -> list[str]:
    """One sentence for each trimmed model."""
    was = {(score.model, score.measure): score.value for score in before.scores if score.fit == "trimmed"}
    sentences = []
    for score in after.scores:
        old = was.get((score.model, score.measure))
        if score.fit == "trimmed" and old is not None and isfinite(old) and isfinite(score.value):
            was_, is_ = f"{old:.3g}", f"{score.value:.3g}"
            how = f"stayed at {is_}" if was_ == is_ else f"went from {was_} to {is_}"
            sentences.append(f"The {score.measure} of the {score.model} model {how}.")
    return sentences


def _coefficients(before: TargetFindings, after: TargetFindings) -> list[str]:
    """The coefficient that moved most, in units of the width of its interval where that is known."""
    was = {entry["name"]: entry["trimmed"] for entry in before.coefficients}
    moved = []
    for entry in after.coefficients:
        old, new = was.get(entry["name"]), entry["trimmed"]
        if old is None or new is None or not (isfinite(old) and isfinite(new)):
            continue
        moved.append((abs(new - old) / (_width(entry) or abs(old) or 1.0), entry["name"], old, new))
    if not moved:
        return []
    size, name, old, new = max(moved)
    if size == 0 or f"{old:.3g}" == f"{new:.3g}":
        return ["The coefficients of the linear model stayed as they were."]
    return [f"The coefficient that moved most is that of {name}: from {old:.3g} to {new:.3g}."]


def _width(entry: dict[str, Any]) -> float:
    """Of the interval of a coefficient; 0 where it has none."""
    low, high = entry.get("low"), entry.get("high")
    return 0.0 if low is None or high is None or not isfinite(high - low) else float(high - low)
