"""A check in plain text, for a terminal."""

from __future__ import annotations

from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from trimlearn._utils.text import grid

SHOWN = 10  # suspects: with the headline they fit on a screen of 24 lines
NARROW, WIDE = 80, 160  # letters of a line, whatever the terminal says
ID = 20  # letters of an id in a line
WHY = 20  # letters of a reason, at the least


def summary(results: dict[str, Any]) -> str:
    """The headline, the first suspects, caveats and what to do next."""
    width = min(max(get_terminal_size((100, 24)).columns, NARROW), WIDE)
    lines = wrap(" ".join(results["headline"]), width)
    suspects = results["suspects"]
    if suspects:
        lines += ["", *_table(_first(suspects), results["source"]["first_line"], width)]
        if len(suspects) > SHOWN:
            lines.append(f"({len(suspects) - SHOWN:,} more)")
    if results["decisions"] is not None:
        lines += _listed("Your decisions", results["decisions"]["sentences"], width)
    lines += _listed("To bear in mind", results["caveats"], width)
    lines += _listed("What to do next", results["next"], width)
    return "\n".join(lines)


def _first(suspects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most probable ones, half of them with a wrong target, where there are as many: it was asked for."""
    wrong = [k for k, suspect in enumerate(suspects) if suspect["kinds"][0] == "target"][: SHOWN // 2]
    others = [k for k in range(len(suspects)) if k not in wrong][: SHOWN - len(wrong)]
    return [suspects[k] for k in sorted([*wrong, *others])]


def percent(probability: float | None) -> str:
    """A probability in words that do not claim more than is known."""
    if probability is None:
        return "–"
    return "> 99 %" if probability > 0.99 else f"{probability:.0%}".replace("%", " %")


def _table(suspects: list[dict[str, Any]], first_line: int, width: int) -> list[str]:
    named = any(suspect["id"] for suspect in suspects)
    head = ["line" if first_line else "row", *(["id"] if named else []), "what", "probably", "why"]
    rows = [
        [
            str(suspect["line"] if first_line else suspect["row"]),
            *([_clip(suspect["id"] or "", ID)] if named else []),
            suspect["kind"],
            percent(suspect["probability"]),
            "",
        ]
        for suspect in suspects
    ]
    left = [j for j, name in enumerate(head) if name in ("id", "what", "why")]
    taken = max(map(len, grid([[*head[:-1], ""], *rows], left)))
    for row, suspect in zip(rows, suspects, strict=True):
        row[-1] = _clip(suspect["why"], max(width - taken - 2, WHY))
    return grid([head, *rows], left)


def _listed(title: str, sentences: list[str], width: int) -> list[str]:
    if not sentences:
        return []
    lines = ["", f"{title}:"]
    for sentence in sentences:
        lines += wrap(sentence, width, initial_indent="- ", subsequent_indent="  ")
    return lines


def _clip(text: str, width: int) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= width else text[: width - 1] + "…"
