"""Draw docs/img/report.png and report_card.png: the report of the bundled dirty table, as Chromium shows it.

    python docs/_pictures/report.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import trimlearn
from trimlearn.datasets import load_penguins_dirty

OUT = Path(__file__).parents[1] / "img"


def draw() -> None:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        penguins = load_penguins_dirty()
        trimlearn.check(penguins.path, target=penguins.target).to_html(page_file)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(page_file.as_uri())
        page.add_style_tag(content="[class*=toolbar], [class*=bar][class*=bottom] { display: none }")
        page.screenshot(path=OUT / "report.png")
        page.get_by_role("button", name="Target").first.click()
        page.locator("tbody tr").first.click()
        page.wait_for_timeout(300)
        page.locator("tbody tr").first.scroll_into_view_if_needed()
        page.evaluate("document.querySelector('tbody tr').scrollIntoView({block: 'start'}); window.scrollBy(0, -60)")
        page.screenshot(path=OUT / "report_card.png", clip={"x": 0, "y": 0, "width": 1200, "height": 760})
        browser.close()


if __name__ == "__main__":
    draw()
