"""The source of the package as pages of the site, so that every link from a page to a file leads somewhere offline.

A page writes ``[smart/algorithm.py](../src/trimlearn/smart/algorithm.py)``, which is right in the repository; on the
site it leads to ``source/src/trimlearn/smart/algorithm.html``. A fragment is a line (``#L40``) or the name of a
function or class (``#Algorithm1.x_step``).
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/trimlearn", "paper", "benchmarks")  # what pages link to
LINK = re.compile(r"\]\(\.\./([^)\s#]+)(#[^)\s]+)?\)")  # a Markdown link to a file above docs/
LOCAL = re.compile(r"\]\((?!https?:|#|\.\./)")  # a link to a file, of a page that lies above docs/
ABOVE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}  # pages of the site that lie above docs/
PAGES = {name: f"{page}.md" for page, name in ABOVE.items()} | {
    "README.md": "index.md",
    "examples": "gallery/index.rst",
    "src/trimlearn/__init__.py": "api/index.rst",
}


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("repository", "", "env")
    app.connect("source-read", rewrite)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let links of a Markdown page to source files lead to their pages on the site."""
    if docname in ABOVE:
        text = (ROOT / ABOVE[docname]).read_text(encoding="utf-8")
        source[0] = LOCAL.sub("](../", text).replace("](../docs/", "](")
    if app.env.doc2path(docname).suffix == ".md":
        source[0] = LINK.sub(lambda link: f"]({on_site(link[1], link[2] or '', app.config.repository)})", source[0])


def on_site(target: str, fragment: str, repository: str) -> str:
    """Where a file of the repository is on the site, or else in the repository."""
    path = ROOT / target
    if target.rstrip("/") in PAGES:
        return PAGES[target.rstrip("/")] + fragment
    if path.parent == ROOT / "examples":
        return f"gallery/{path.stem}.rst"
    if path.is_dir():
        path = path / "__init__.py"
    if any(path.is_relative_to(ROOT / folder) for folder in FOLDERS) and path.suffix == ".py":
        return f"source:{page_of(path).removeprefix('source/')}{fragment}"  # a scheme of conf.py
    return f"{repository}/blob/main/{target}"


def page_of(path: Path) -> str:
    return f"source/{path.relative_to(ROOT).with_suffix('').as_posix()}.html"


def page_of_object(module: str, name: str) -> str | None:
    """The page, with its fragment, where an object is defined; None for what is no class, function or method."""
    thing: Any = import_module(module)
    for part in name.split("."):
        thing = inspect.getattr_static(thing, part, None) if inspect.isclass(thing) else getattr(thing, part, None)
    thing = inspect.unwrap(getattr(thing, "fget", None) or getattr(thing, "__func__", None) or thing)
    try:
        path = Path(inspect.getsourcefile(thing) or "").resolve()
    except TypeError:
        return None
    name = thing.__qualname__.split(".<locals>")[0]  # what a function returns is found where the function is
    return f"{page_of(path)}#{name}" if path.is_relative_to(ROOT / "src") else None


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            body = f"<h1><code>{html.escape(name.removeprefix('src/'))}</code></h1>\n{marked_up(path)}"
            yield page_of(path).removesuffix(".html"), {"title": name.removeprefix("src/"), "body": body}, "page.html"


def marked_up(path: Path) -> str:
    """The file highlighted, every line with an anchor, and every class, function and method too."""
    text = path.read_text(encoding="utf-8")
    formatter = HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="L", wrapcode=True)
    shown = highlight(text, PythonLexer(stripnl=False), formatter)
    shown = shown.replace('id="L-', 'id="L').replace('href="#L-', 'href="#L')
    for number, name in definitions(path).items():
        shown = shown.replace(f'<a id="L{number}"', f'<span id="{name}"></span><a id="L{number}"', 1)
    return f'<div class="highlight source">{shown}</div>'


@cache
def definitions(path: Path) -> dict[int, str]:
    """Line → dotted name of every class and function at its first line, decorators included."""
    found: dict[int, str] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found[first] = prefix + child.name
                if isinstance(child, ast.ClassDef):
                    walk(child, f"{prefix}{child.name}.")

    walk(ast.parse(path.read_text(encoding="utf-8")), "")
    return found
