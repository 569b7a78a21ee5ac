"""What all pictures share: Axes, colours, axes that are logarithmic where the range asks for it, and text as it is."""

from __future__ import annotations

import re
from math import floor, inf, isfinite, log10
from typing import Any

import numpy as np

from trimlearn._utils.palette import DARK, LIGHT, Palette

WIDE = 12.0  # times its unit: an axis that reaches further is logarithmic beyond the unit (a choice: a decade fits)
NEAR = 3.0  # times its unit, up to where an axis is all but linear: half a decade
FEW_DECADES = 2  # up to which an axis has ticks at 1, 2 and 5, and only powers of ten beyond: more would touch
MANY_DECADES = 9  # from which on powers of ten are left out: ten ticks fit on an axis of a small picture
BELOW = 3.7  # lines of text from the lower edge of a picture to its legend: the numbers and words at the axis
RATIO = 30.0  # of the largest to the least objective, from which on its axis is logarithmic (a choice)
SAME = 1e-6  # of an objective: a difference that nobody would see (a choice)
LONGEST = 28  # letters of a name: a third of a small picture (a choice)
MIDDLE = 0.5  # lightness below which a background is dark: halfway


def axes(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The Axes given, or those of a new figure."""
    if ax is None:
        return _pyplot().subplots(figsize=size, layout="constrained")[1]
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be one Axes of matplotlib, or None for a new figure, got {type(ax).__name__}.")
    return ax


def panels(ax: Any, count: int, size: tuple[float, float]) -> Any:
    """So many Axes side by side: those given, or those of a new figure."""
    if ax is None:
        return _pyplot().subplots(1, count, figsize=size, layout="constrained")[1]
    given = np.asarray(ax, dtype=object)
    if given.shape != (count,):
        raise ValueError(f"ax must hold {('no', 'one', 'two', 'three')[count]} Axes, got {ax!r}.")
    return given


def colours(ax: Any) -> Palette:
    """The project's palette, for the background that the Axes have."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(ax.get_facecolor())
    light = alpha * (0.2126 * red + 0.7152 * green + 0.0722 * blue) + (1.0 - alpha)  # by ITU-R BT.709, over white
    return DARK if light < MIDDLE else LIGHT


def label_axes(ax: Any, xlabel: str = "", ylabel: str = "", title: str = "") -> None:
    """Words at the axes and above; what comes from data is shown as it is, never as a formula."""
    ax.set_xlabel(xlabel, parse_math=False)
    ax.set_ylabel(ylabel, parse_math=False)
    ax.set_title(title, fontsize="medium", parse_math=False)


def legend(ax: Any, below: float = BELOW) -> None:
    """Below the picture, where it covers no point and leaves room for another title. ``below``: lines of text."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    down = ScaledTranslation(0.0, -below * rcParams["font.size"] / 72.0, ax.figure.dpi_scale_trans)
    ax.legend(
        handles, [tick_text(label) for label in labels], loc="upper left", bbox_to_anchor=(0.0, 0.0), ncols=4,
        bbox_transform=ax.transAxes + down, frameon=False, fontsize="small", borderaxespad=0.0, borderpad=0.0,
        handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


def line_at(ax: Any, which: str, at: float, label: str | None = None) -> None:
    """A dashed line across the picture, at a value of the x or the y axis."""
    if isfinite(at):
        draw = ax.axvline if which == "x" else ax.axhline
        draw(at, color=colours(ax).muted, linestyle="--", linewidth=1.0, zorder=1, label=label)


def drawable(values: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Values to draw, and which of them are infinite: these are drawn beyond all others. NaN stays out.

    >>> drawable(np.array([1.0, -np.inf, 3.0]), unit=1.0)
    (array([ 1. , -4.5,  3. ]), array([False,  True, False]))
    """
    beyond = np.isinf(values)
    top = max(float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0)), _positive(unit))
    return np.where(beyond, np.sign(values) * 1.5 * top, values), beyond


def wide(ax: Any, which: str, values: np.ndarray, unit: float, decided_by: np.ndarray | None = None) -> None:
    """Make an axis linear up to ``unit`` and logarithmic beyond, if the values, or those that it is ``decided_by``,
    reach far beyond it."""
    from matplotlib.ticker import NullLocator

    top, size = _top(values)
    unit = unit if isfinite(unit) and unit > 0 else 3.0 * _positive(float(np.median(size)) if len(size) else 0.0)
    if (top if decided_by is None else _top(decided_by)[0]) <= WIDE * unit:
        return
    axis, set_scale = (ax.xaxis, ax.set_xscale) if which == "x" else (ax.yaxis, ax.set_yscale)
    set_scale("symlog", linthresh=unit, linscale=1.0)
    ticks = _ticks(unit, top)
    signed = bool(np.any(np.asarray(values) < 0))
    axis.set_ticks(sorted({-t for t in ticks if t > 0} | set(ticks)) if signed else ticks)
    axis.set_major_formatter(_number)  # by name: a figure can be pickled
    axis.set_minor_locator(NullLocator())


def _top(values: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest size of finite values, and the sizes."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    size = size[np.isfinite(size)]
    return float(size.max(initial=0.0)), size


def even_axis(ax: Any, F: np.ndarray) -> None:
    """Logarithmic where objectives are of very different size; not of rounding errors where they are all the same."""
    known = F[np.isfinite(F)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if 0 < RATIO * low < high:
        ax.set_yscale("log")
    elif high - low <= SAME * abs(high):
        ax.set_ylim(*sorted((0.9 * high, 1.1 * high)) if high else (-1.0, 1.0))


def one_line(text: Any) -> str:
    """A name in one line, cut where it is very long.

    >>> one_line("a name\\nof two lines, and much longer than this")
    'a name of two lines, and mu…'
    """
    line = re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in str(text))).strip()
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"


def tick_text(text: Any) -> str:
    """The same for the ends of axes and for legends, where matplotlib takes what is between two $ for a formula."""
    return str(text).replace("$", r"\$")


def _ticks(unit: float, top: float) -> list[float]:
    """0, and round numbers from about the unit to the top; evenly, where the top is not far beyond the unit."""
    if top < NEAR * unit:
        from matplotlib.ticker import MaxNLocator

        return [float(t) for t in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(0.0, top)]
    low, high = floor(log10(unit)), floor(log10(top)) + 1
    decades = log10(top / unit)
    step = max(1, round((high - low) / MANY_DECADES))
    digits = (1.0, 2.0, 5.0) if decades <= FEW_DECADES else (1.0,)
    powers = range(low, high + 1, step)
    least = unit / 4 if decades <= MANY_DECADES / 2 else unit  # below the unit there is one decade's room
    return [0.0, *(d * 10.0**k for k in powers for d in digits if least <= d * 10.0**k < inf)]


def _number(t: float, _: int = 0) -> str:
    size = abs(t)
    if size == 0 or 1e-3 <= size < 1e5:
        return f"{t:,.10g}".replace("-", "−")
    return f"${'-' if t < 0 else ''}10^{{{round(log10(size))}}}$"


def _positive(value: float) -> float:
    return value if isfinite(value) and value > 0 else 1.0


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'trimlearn[cli]'.") from error
    return pyplot
