"""What a notebook shows of a fitted estimator: the verdict, above scikit-learn's own diagram."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Any, final

from sklearn import get_config
from sklearn.utils import estimator_html_repr

from trimlearn.inference.outlier_table import OutlierTable

# No ground and no colour of its own: it is read on light and on dark paper alike.
BOX = "margin:0.3em 0 0.8em 0;line-height:1.4;color:inherit"
DIM = "opacity:0.75"  # black on white is then 10:1, above the 4.5:1 of WCAG 2.1


@final
@dataclass(frozen=True)
class NotebookVerdict:
    """What a fit found, in a sentence; the worst rows or cells; what to be careful about."""

    sentence: str
    worst: OutlierTable
    caption: str
    caveats: tuple[str, ...] = ()

    def html(self, name: str) -> str:
        """The same as a piece of HTML, in which every value is escaped."""
        parts = [f"<b>{escape(name)}</b>: {escape(self.sentence)}"]
        if len(self.worst):
            parts.append(f'<div style="{DIM}">{escape(self.caption)}</div>{self.worst._repr_html_()}')
        parts += [f"<div><b>Caveat:</b> {escape(caveat)}</div>" for caveat in self.caveats]
        return f'<div class="trimlearn-verdict" style="{BOX}">{"".join(parts)}</div>'


class Notebook(ABC):
    """Adds the verdict to what scikit-learn shows of an estimator, once it is fitted.

    ``_repr_html_`` stays scikit-learn's property: it is there only where ``display="diagram"`` is set.
    """

    @abstractmethod
    def _verdict(self) -> NotebookVerdict | None:
        """What the fit found; None before fit."""

    def _repr_html_inner(self) -> str:
        with warnings.catch_warnings():  # to be shown is no occasion to warn: the fit has done so
            warnings.simplefilter("ignore")
            verdict = self._verdict()
        diagram = str(estimator_html_repr(self))
        return diagram if verdict is None else verdict.html(type(self).__name__) + diagram

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._repr_html_inner()
        return shown


def in_percent(part: float) -> str:
    """A share of 1 in words, not rounded to nothing.

    >>> in_percent(0.0), in_percent(0.0004), in_percent(0.123), in_percent(0.9999)
    ('0 %', 'less than 0.1 %', '12.3 %', 'more than 99.9 %')
    """
    if 0 < part < 0.0005:
        return "less than 0.1 %"
    if 0.9995 <= part < 1:
        return "more than 99.9 %"
    return f"{100 * part:.3g} %"


SHOWN = 5  # rows in a notebook's verdict: they leave room for the next cell (a choice)
