"""One palette for the whole project: the page and the plots draw with the same colours.

The hues are those of Okabe and Ito (2008), which people with any of the three colour blindnesses tell apart, made
darker on light paper and lighter on dark paper. Text in ``ink``, ``muted``, ``accent``, ``good``, ``bad`` and ``doubt``
has a contrast of 4.5 to 1 or more with ``paper`` and with ``raised`` (WCAG 2.2, AA); a line or a point in
``categories`` of 3 to 1 or more. Colour never stands alone: signs or words say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import final


@final
@dataclass(frozen=True)
class Palette:
    """Colours by what they are for, as ``#rrggbb``.

    Examples
    --------
    >>> LIGHT.accent, LIGHT.categories[1]
    ('#0b5c92', '#c8501e')
    """

    ink: str  # text, axes
    muted: str  # text that may be passed over
    paper: str  # the ground
    raised: str  # the ground of cards, tables, figures
    line: str  # rules, grids, borders
    accent: str  # what one can press; the trimmed fit; rows that are kept
    good: str  # right, expected, suggested
    bad: str  # wrong, flagged, trimmed
    doubt: str  # undecided, caveats, thresholds
    categories: tuple[str, str, str, str, str, str, str, str]  # classes and models, in this order

    def css(self) -> str:
        """The palette as CSS custom properties: ``--ink``, …, ``--category-1`` to ``--category-8``."""
        single = [f"--{f.name}: {getattr(self, f.name)};" for f in fields(self) if f.name != "categories"]
        return " ".join([*single, *(f"--category-{k}: {c};" for k, c in enumerate(self.categories, start=1))])


LIGHT = Palette(
    ink="#1d2430",
    muted="#5b6472",
    paper="#faf8f4",
    raised="#ffffff",
    line="#dbd8d0",
    accent="#0b5c92",
    good="#0f6b5c",
    bad="#b3361e",
    doubt="#855600",
    categories=("#0b6fb0", "#c8501e", "#13856b", "#b0529a", "#8a6d00", "#3b8fc9", "#6b6f76", "#7a3f12"),
)

DARK = Palette(
    ink="#e9e7e1",
    muted="#a6acb6",
    paper="#14171c",
    raised="#1c2027",
    line="#383e48",
    accent="#7cbcec",
    good="#5cc6ae",
    bad="#ff8f72",
    doubt="#e0b04c",
    categories=("#5aaee8", "#f08a5d", "#3fc1a0", "#dd8fc9", "#e0b93c", "#8fd0f5", "#a9adb5", "#c99468"),
)
