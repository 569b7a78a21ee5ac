"""A real browser for the page: Debian's chromium, headless. `make test-browser` runs these tests, `make test` does not.

Each test gets pages by ``visit``, which writes a document's page to a file, opens it by file:// and listens: an error
in the console, or a request for anything but the file, fails the test.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

collect_ignore_glob = [] if os.environ.get("TRIMLEARN_BROWSER") else ["test_*.py"]

Visit = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `browser`)")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Visit]:
    """visit(document, width=1280, height=900, dark=False, script=None): the page, opened in a browser of its own."""
    from trimlearn.report.page import make_page

    troubles: list[str] = []
    contexts = []

    def open_(
        document: dict[str, Any], width: int = 1280, height: int = 900, dark: bool = False, script: str = ""
    ) -> Any:
        file = tmp_path / f"report{len(contexts)}.html"
        file.write_text(make_page(document), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda said: said.type in ("error", "warning") and troubles.append(f"console: {said.text}"))
        tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        tab.on(
            "request",
            lambda r: r.url.startswith(("file:", "data:", "blob:")) or troubles.append(f"request: {r.url}"),
        )
        if script:
            tab.add_init_script(script)
        tab.goto(file.as_uri())
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []
