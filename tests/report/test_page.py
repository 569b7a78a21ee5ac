"""The page as text: what is in it, what can never be. How it behaves is tried in a browser (tests/browser)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest

from report_sample import HOSTILE, sample
from trimlearn.report.page import BUDGET, SCRIPTS, STYLES, make_page

SOURCES = [file for file in files("trimlearn.report").iterdir() if re.match(r"page.*\.(js|css|html)$", file.name)]


class Parsed(HTMLParser):
    """The elements of a page, as (tag, attributes), and the text of its styles and scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements:
            self.texts.append((self.elements[-1][0], data))

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def document_of(source: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="results">(.*?)</script>', source, re.DOTALL)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


@pytest.mark.parametrize("hostile", [False, True], ids=["plain", "hostile"])
def test_the_results_come_back_whole(hostile: bool) -> None:
    document = sample(40, hostile=hostile)
    found = document_of(make_page(document))
    assert found.pop("shown_whole") == 40
    if hostile:  # but for long cells, which are cut and say so
        for suspect in (*document["suspects"], *found["suspects"]):
            suspect["values"] = suspect["neighbours"] = None
    assert found == document


def test_no_markup_comes_from_the_data() -> None:
    plain, hostile = Parsed(make_page(sample(40))), Parsed(make_page(sample(40, hostile=True)))
    tags = [sorted({tag for tag, _ in parsed.elements}) for parsed in (plain, hostile)]
    assert tags[0] == tags[1]
    assert len(plain.tags("script")) == len(hostile.tags("script")) == 4
    assert not plain.tags("img") and not hostile.tags("img")


def test_a_page_can_always_be_written() -> None:
    source = make_page(sample(40, hostile=True))
    assert "\ud800" in "".join(HOSTILE)  # half a character, which UTF-8 cannot hold
    source.encode("utf-8")
    assert not re.search("[\u2028\u2029]", source)


def test_the_policy_allows_exactly_what_is_in_the_page() -> None:
    source = make_page(sample(3))
    policy = next(m["content"] for m in Parsed(source).tags("meta") if m.get("http-equiv"))
    assert policy is not None
    blocks = re.findall(r"<(style|script)>(.*?)</\1>", source, re.DOTALL)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for _, text in blocks]
    assert len(hashes) == 4 and sorted(re.findall(r"'sha256-[^']+'", policy)) == sorted(hashes)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "http" not in policy


def test_nothing_is_fetched() -> None:
    parsed = Parsed(make_page(sample(3, images=True)))
    for _, attributes in parsed.elements:
        for name in ("src", "href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    for file in SOURCES:
        assert not re.search(r"@import|url\(|https?://|fetch\(|XMLHttpRequest", file.read_text(encoding="utf-8")), file


def test_scripts_make_text_only() -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|\.srcdoc"
    for file in SOURCES:
        assert not re.search(forbidden, file.read_text(encoding="utf-8")), file.name


def test_every_script_and_style_is_in_the_page() -> None:
    named = {*STYLES, *SCRIPTS, "page_theme.js", "page.html"}
    assert named == {file.name for file in SOURCES}


def test_lines_and_files_are_short() -> None:
    for file in SOURCES:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 250 and max(map(len, lines)) <= 120, file.name


def test_headings_are_escaped() -> None:
    document = sample(1)
    document["source"]["name"] = 'a"b<i>&.csv'
    document["headline"], document["caveats"] = ["<b>bold</b>"], ["1 < 2 & 3"]
    source = make_page(document)
    assert "<title>a&quot;b&lt;i&gt;&amp;.csv: what looks wrong</title>" in source
    assert "<h1>&lt;b&gt;bold&lt;/b&gt;</h1>" in source
    assert "<li>1 &lt; 2 &amp; 3</li>" in source


def test_a_name_with_a_dollar_is_no_placeholder() -> None:
    document = sample(1)
    document["source"]["name"] = "$results ${script}.csv"
    assert "<title>$results ${script}.csv: what looks wrong</title>" in make_page(document)


def test_a_thousand_suspects_fit_into_five_megabytes() -> None:
    assert len(make_page(sample(1000)).encode()) < 5_000_000


def test_wide_tables_keep_the_page_light() -> None:
    document = sample(400)
    for suspect in document["suspects"]:
        suspect["values"] = ["0.123456789012345"] * 1500
        suspect["neighbours"] = [{**near, "values": suspect["values"]} for near in suspect["neighbours"]]
    found = document_of(source := make_page(document))
    assert len(source) < BUDGET + 1_000_000
    assert 0 < found["shown_whole"] < 400
    kept = [suspect["values"] is not None for suspect in found["suspects"]]
    assert kept == sorted(kept, reverse=True)  # the most probable keep theirs
    assert all(suspect["values"] is not None for suspect in document["suspects"])  # the document is not changed


def test_numbers_that_are_none_are_refused() -> None:
    document = sample(1)
    document["suspects"][0]["score"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        make_page(document)


def test_the_same_results_give_the_same_page() -> None:
    assert make_page(sample(5)) == make_page(sample(5))
