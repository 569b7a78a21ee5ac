"""The tables of the rates: passes to a relative error, and Table 1 with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from paper.outcome import Sheet
from paper.rates.counts import COLUMNS, Algorithm, CountSettings, Row, power
from paper.rates.level import METHODS, Level

__all__ = ["ERRORS", "count_sheets", "level_sheet", "order"]

ERRORS = (100.0, 10.0, 1.0, 0.1)  # relative: the decades that Figure 2 shows
NAMES = dict(zip(COLUMNS, ("∇fᵢ", "fᵢ", "prox of r1", "prox of r2"), strict=True))
POWERS = {1.0: "n", 2 / 3: "n^(2/3)", 0.0: "", -1 / 3: "n^(1/3)", -1.0: "n"}  # without the sign


def level_sheet(levels: Sequence[Level], passes: float) -> Sheet:
    """Passes that each method needs to each of `ERRORS`, and what it has in the end."""
    rows = []
    for level in levels:
        for name in METHODS:
            needs = [_passes(level.needs(name, error)) for error in ERRORS]
            rows.append([f"{level.wrong:.0%}", name, _setting(level, name), *needs, _error(level.final(name))])
    header = ["wrong", "method", "setting", *(f"to {error:g}" for error in ERRORS), f"after {passes:g} passes"]
    stars = ", ".join(f"{level.f_star:.4g} ({level.wrong:.0%} wrong)" for level in levels)
    note = f"∞: not within {passes:g} passes. F* = {stars}."
    return Sheet("Passes until (F − F*)/F* is down to 100, 10, 1, 0.1, and what is left in the end", header, rows, note)


def _setting(level: Level, name: str) -> str:
    entry, tried = level.runs[name].entry, level.tried[name]
    if tried == 1:
        return entry.settings
    return f"{entry.settings} (best of {tried}{', an end of the grid' if entry.at_end else ''})"


def _error(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _passes(value: float) -> str:
    return f"{value:.0f}" if isfinite(value) else "∞"


def count_sheets(rows: Sequence[Row], settings: CountSettings) -> list[Sheet]:
    """Table 1 in two halves: without and with an error bound."""
    header = [
        *("algorithm", "evaluations of", "order", "guaranteed", "counted"),
        *("power of n: order", "guaranteed", "counted", "power of 1/ε, counted"),
    ]
    first = Sheet(
        f"Table 1: squared residuals ε = {min(settings.residuals):g} on average, n = {settings.shown}",
        header,
        [line for row in _shown(rows, settings, False) for line in _lines(row, rows)],
        FIRST_NOTE,
    )
    second = Sheet(
        f"Table 1 with an error bound: F − F* = ε = {min(settings.gaps):g}·(F⁰ − F*), n = {settings.shown}",
        [*header[:5], "power of n: order, without κ", "guaranteed", "counted", "κ = L/μ; its power of n"],
        [line for row in _shown(rows, settings, True) for line in _lines(row, rows)],
        f"{_fewest(rows, settings)} {SECOND_NOTE}",
    )
    return [first, second]


def _fewest(rows: Sequence[Row], settings: CountSettings) -> str:
    """Which method counts the fewest gradients with an error bound, at each n where one gets there."""
    best = {}
    for n in settings.sizes:
        counted = {
            row.algorithm.name: row.counted[min(row.counted)][0]
            for row in rows
            if row.n == n and row.algorithm.error_bound
        }
        if counted and min(counted.values()) < inf:
            best[n] = min(counted, key=counted.__getitem__)
    places = ", ".join(f"{name} at n = {n}" for n, name in best.items())
    return f"Fewest gradients counted: {places or 'none gets there'}."


FIRST_NOTE = (
    "Guaranteed: Theorem 1 with its constants, from F⁰ − F* and L = 1, averages over jₖ. Counted: by the engine, at "
    "the corollaries' own γ and τ; draws that cost nothing (weight 0, a row drawn twice, x where y was just renewed) "
    "are not in it, which saves most at small n and so raises the fitted powers a little. Powers are fitted over n, "
    "those of ∇fᵢ without the n that it takes to start; means over the seeds."
)
SECOND_NOTE = (
    "μ is the largest constant that the runs allow, so that the guarantee is optimistic; SAGA's rests on a handful of "
    "w-steps, too few to fit a power. κ grows like n: where x is optimal and w is not, F − F* is of order 1, but the "
    "squared residual of w, n entries of order 1/n each, is of order 1/n. On a trimmed problem κ·n^(2/3) is therefore "
    "n^(5/3), and PALM's κ·n is n²: the factor n^(1/3) between them stays. The paper prints SAGA's prox columns "
    "exchanged here. For PALM, Theorem 2 itself gives no step (its γ is 0 at ρ = 1); as there are no dual errors, "
    "Theorem 1's decrease suffices."
)


def _shown(rows: Sequence[Row], settings: CountSettings, error_bound: bool) -> list[Row]:
    return [row for row in rows if row.n == settings.shown and row.algorithm.error_bound is error_bound]


def _lines(shown: Row, rows: Sequence[Row]) -> list[list[str]]:
    """One line per column of Table 1."""
    algorithm = shown.algorithm
    mine = [row for row in rows if row.algorithm == algorithm]
    epsilon = min(shown.counted)
    last = ""
    if algorithm.error_bound:
        last = f"{shown.kappa:.3g}; {_power(power([(row.n, row.kappa) for row in mine]))}"
    lines = []
    for i, column in enumerate(COLUMNS):
        start = 1 if column == "gradients" else 0  # the n gradients to start belong to no power
        fits = [
            power([(row.n, counts[epsilon][i] - start * row.n) for row, counts in pairs])
            for pairs in ([(row, row.guaranteed) for row in mine], [(row, row.counted) for row in mine])
        ]
        if not algorithm.error_bound:
            last = _power(power([(1 / eps, counts[i] - start * shown.n) for eps, counts in shown.counted.items()]))
        numbers = [_number(counts[epsilon][i]) for counts in (shown.guaranteed, shown.counted)]
        powers = [_power(algorithm.powers[i]), *map(_power, fits)]
        lines.append([algorithm.name, NAMES[column], f"O({order(algorithm, column)})", *numbers, *powers, last])
    return lines


def order(algorithm: Algorithm, column: str) -> str:
    """Table 1's entry.

    >>> from paper.rates.counts import algorithms
    >>> saga, saga_bound, *_ = algorithms()
    >>> order(saga, "gradients"), order(saga, "prox_r1"), order(saga_bound, "prox_r1")
    ('n + n^(2/3)/ε', '1/(nε)', '(κ/n)·log(1/ε)')
    """
    exponent = algorithm.powers[COLUMNS.index(column)]
    factor = POWERS[exponent]
    if algorithm.error_bound:
        scale = f"(κ/{factor})" if exponent < 0 else f"κ·{factor}" if factor else "κ"
        term = f"{scale}·log(1/ε)"
    else:
        term = f"1/({factor}·ε)" if exponent < 0 else f"{factor or 1}/ε"
        term = term.replace("(n·ε)", "(nε)")
    starts = column == "gradients" and algorithm.name != "PALM"
    return f"n + {term}" if starts else term


def _number(value: float) -> str:
    if value == inf:
        return "not reached"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _power(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "–"
