"""The page that shows what a check found: one HTML file that works without a network.

The styles and scripts lie beside this module and are put into the page. The results go in as JSON, which is never run;
the content security policy names the styles and scripts by their hashes, so that nothing else runs either.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from string import Template
from typing import Any

from trimlearn._utils.palette import DARK, LIGHT

STYLES = ("page.css", "page_sections.css", "page_table.css", "page_card.css", "page_print.css")
# In the order in which they need each other: all but the charts share one scope.
SCRIPTS = (
    "page_dom.js",
    "page_csv.js",
    "page_decisions.js",
    "page_list.js",
    "page_filters.js",
    "page_card.js",
    "page_review.js",
    "page_files.js",
    "page_keys.js",
    "page_sections.js",
    "page_pictures.js",
    "page_main.js",
)
BUDGET = 3_500_000  # characters of values and neighbours: with all else, 1,000 suspects stay below 5 MB
OPTION = r'<span class="option">\g<0></span>'  # in the page: what re.sub puts around an option of the command
LONG = 2_000  # characters of a cell that the page shows of rows and neighbours: some 30 lines


def make_page(results: dict[str, Any]) -> str:
    """One HTML file with all that a check found, which a person can read, review and print.

    Parameters
    ----------
    results : dict
        The document of a check (``Check.results``): JSON values only, numbers finite or None.

    Returns
    -------
    str
        The HTML. It needs no other file and no network.

    Examples
    --------
    >>> from trimlearn.report.page import make_page
    >>> document = {
    ...     "format": "trimlearn-check/1", "version": "0.1.0", "created": "2026-01-31T12:00:00+00:00", "seed": 0,
    ...     "source": {"name": "<b>.csv", "rows": 3, "columns": 1, "fingerprint": "f00", "first_line": 2},
    ...     "target": None, "headline": ["Nothing looks wrong."], "next": [], "caveats": [], "notes": [],
    ...     "columns": [], "models": [], "counts": {}, "suspects": [], "charts": [], "decisions": None,
    ... }
    >>> "<title>&lt;b&gt;.csv: what looks wrong</title>" in make_page(document)
    True
    """
    styles = "\n".join([palettes(), *map(read, STYLES), *map(read, beside("charts", ".css"))])
    theme, charts = read("page_theme.js"), "\n".join(read(name) for name in beside("charts", ".js"))
    script = "\n".join(["(() => {", '"use strict";', *map(read, SCRIPTS), "})();"])
    headline = results["headline"] or ["Nothing looks wrong."]
    return Template(read("page.html")).substitute(
        policy=policy(styles, [theme, charts, script]),
        title=text(results["source"]["name"]),
        version=text(results["version"]),
        headline=text(headline[0]),
        dek="".join(f"<p>{text(sentence)}</p>" for sentence in headline[1:]),
        next=items(results["next"]),
        caveats=items(results["caveats"]),
        hide_next="" if results["next"] else "hidden",
        hide_caveats="" if results["caveats"] else "hidden",
        styles=styles,
        theme=theme,
        charts=charts,
        script=script,
        results=as_json(within_budget(results)),
    )


def read(name: str) -> str:
    """A style or a script from beside this module."""
    return (files("trimlearn.report") / name).read_text(encoding="utf-8").strip()


def beside(start: str, end: str) -> list[str]:
    """The names of the files beside this module that begin and end like this: "charts.js" before "charts_x.js"."""
    names = [file.name for file in files("trimlearn.report").iterdir()]
    return sorted(name for name in names if name.startswith(start) and name.endswith(end))


def palettes() -> str:
    """The palette as custom properties: light; dark where the system or the reader asks for it; light on paper."""
    return f"""\
:root {{ color-scheme: light; {LIGHT.css()} }}
:root[data-theme="dark"] {{ color-scheme: dark; {DARK.css()} }}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ color-scheme: dark; {DARK.css()} }} }}
@media print {{ :root:root:root {{ color-scheme: light; {LIGHT.css()} }} }}"""


def policy(styles: str, scripts: list[str]) -> str:
    """The content security policy: these styles and scripts, pictures inside the page, and nothing else.

    >>> policy("a {}", ["1"])
    "default-src 'none'; style-src 'sha256-...='; script-src 'sha256-...='; img-src data:; ..."
    """
    allowed = " ".join(map(source_hash, scripts))
    return (
        f"default-src 'none'; style-src {source_hash(styles)}; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def source_hash(source: str) -> str:
    """What a content security policy calls a script that is in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def text(value: object) -> str:
    """A value as text inside HTML; half a surrogate pair, which no file can hold, as a replacement sign.

    >>> text("<b>&\\ud800")
    '&lt;b&gt;&amp;\\ufffd'
    """
    return html.escape(re.sub("[\ud800-\udfff]", "\ufffd", str(value)))


def items(sentences: list[str]) -> str:
    """Sentences as the items of a list; an option of the command stays on one line.

    >>> items(["Use --decisions FILE."])
    '<li>Use <span class="option">--decisions</span> FILE.</li>'
    """
    options = re.compile(r"(?<!\S)--[a-z][a-z-]*")
    return "".join(f"<li>{options.sub(OPTION, text(sentence))}</li>" for sentence in sentences)


def as_json(document: dict[str, Any]) -> str:
    r"""JSON that can stand inside a script element: no character in it ends the element or a line.

    >>> as_json({"a": "</script>\u2028"})
    '{"a":"\\u003c/script\\u003e\\u2028"}'
    """
    plain = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", plain)


def within_budget(results: dict[str, Any]) -> dict[str, Any]:
    """The document with all values of so many suspects, most probable first, that the page stays light.

    ``shown_whole`` counts the suspects that keep their values. The page says where there are others.
    """
    spent, suspects = 0, []
    for suspect in results["suspects"]:
        values = suspect["values"] and [cut(value) for value in suspect["values"]]
        neighbours = [{**near, "values": [cut(v) for v in near["values"]]} for near in suspect["neighbours"]]
        rows = [values or [], *(near["values"] for near in neighbours)]
        spent += sum(len(value) + 3 for row in rows for value in row)  # 3: two quotes and a comma
        if spent > BUDGET:
            values, neighbours = None, []
        suspects.append({**suspect, "values": values, "neighbours": neighbours})
    whole = sum(suspect["values"] is not None for suspect in suspects)
    return {**results, "suspects": suspects, "shown_whole": whole}


def cut(value: str) -> str:
    """A cell as it is, or the beginning of a long one and its length.

    >>> cut("x" * 3000)[-30:]
    'xx … (3,000 characters in all)'
    """
    return value if len(value) <= LONG else f"{value[:LONG]} … ({len(value):,} characters in all)"
