"""Draw the pictures of the report in docs/img: that of the bundled dirty table, as Chromium shows it.

    python docs/_pictures/report.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import trimlearn
from trimlearn.datasets import load_penguins_dirty

OUT = Path(__file__).parents[1] / "img"
SIZE = {"width": 1200, "height": 1400}  # of the window; the bar at its bottom is cut off

# Scrolls until three suspects are left above the one that is open.
ABOVE = "document.querySelector('tr.suspect.open').scrollIntoView({behavior: 'instant'}); scrollBy(0, -166)"


def draw() -> None:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder) / "report.html"
        penguins = load_penguins_dirty()
        trimlearn.check(penguins.path, target=penguins.target).to_html(report)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for scheme, suffix in (("light", ""), ("dark", "_dark")):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(report.as_uri())
            if scheme == "light":
                page.screenshot(path=OUT / "report.png", clip={"x": 0, "y": 0, "width": 1200, "height": 1180})
            page.locator("tr.suspect", has_text=penguins.target).locator("button.toggle").first.click()
            page.wait_for_selector("tr.detail")
            page.evaluate(ABOVE)
            page.wait_for_timeout(300)
            page.screenshot(path=OUT / f"report_card{suffix}.png", clip={"x": 0, "y": 0, "width": 1200, "height": 800})
        browser.close()


if __name__ == "__main__":
    draw()
