"""The palette is readable, on light and on dark paper."""

from __future__ import annotations

import pytest

from trimlearn._utils.palette import DARK, LIGHT, Palette


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_and_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "raised"])
def test_text_is_readable(palette: Palette, ground: str) -> None:
    names = ("ink", "muted", "accent", "good", "bad", "doubt")
    assert [n for n in names if contrast(getattr(palette, n), getattr(palette, ground)) < 4.5] == []
    assert min(contrast(c, getattr(palette, ground)) for c in palette.categories) >= 3


def test_css_names_every_colour() -> None:
    css = LIGHT.css()
    assert "--ink: #1d2430;" in css and "--category-8: #7a3f12;" in css
    assert css.count("--") == 9 + 8
