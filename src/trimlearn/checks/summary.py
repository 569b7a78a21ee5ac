"""A check in plain text, for a terminal."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from trimlearn._utils.text import grid

__all__ = ["percent", "summary"]

SHOWN = 10  # suspects: with the headline they fit on a screen of 24 lines
WIDTH = 100  # letters of a line
WHY = 60  # letters of a reason in a line


def summary(results: dict[str, Any]) -> str:
    """The headline, the first suspects, caveats and what to do next."""
    lines = wrap(" ".join(results["headline"]), WIDTH)
    suspects = results["suspects"]
    if suspects:
        lines += ["", *_table(suspects[:SHOWN], results["source"]["first_line"])]
        if len(suspects) > SHOWN:
            lines.append(f"({len(suspects) - SHOWN:,} more)")
    if results["decisions"] is not None:
        lines += _listed("Your decisions", results["decisions"]["sentences"])
    lines += _listed("To bear in mind", results["caveats"])
    lines += _listed("What to do next", results["next"])
    return "\n".join(lines)


def percent(probability: float | None) -> str:
    """A probability in words that do not claim more than is known."""
    if probability is None:
        return "–"
    return "> 99 %" if probability > 0.99 else f"{probability:.0%}".replace("%", " %")


def _table(suspects: list[dict[str, Any]], first_line: int) -> list[str]:
    named = any(suspect["id"] for suspect in suspects)
    head = ["line" if first_line else "row", *(["id"] if named else []), "what", "probably", "why"]
    rows = [
        [
            str(suspect["line"] if first_line else suspect["row"]),
            *([_clip(suspect["id"] or "", 20)] if named else []),
            suspect["kind"],
            percent(suspect["probability"]),
            _clip(suspect["why"], WHY),
        ]
        for suspect in suspects
    ]
    return grid([head, *rows], left=[j for j, name in enumerate(head) if name in ("id", "what", "why")])


def _listed(title: str, sentences: list[str]) -> list[str]:
    if not sentences:
        return []
    lines = ["", f"{title}:"]
    for sentence in sentences:
        lines += wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ")
    return lines


def _clip(text: str, width: int) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= width else text[: width - 1] + "…"
