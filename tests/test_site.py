"""What Sphinx and GitHub read beside the pages: the site's own extensions, the workflow, forms, citation, metadata."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import trimlearn
from trimlearn._utils.palette import DARK, LIGHT

ROOT = Path(__file__).parents[1]
YAML = [ROOT / "CITATION.cff", *sorted((ROOT / ".github").rglob("*.yml"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("sphinx", reason="Sphinx is not installed: pip install 'trimlearn[docs]'")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return import_module


def test_docstrings_are_escaped_but_for_code(extension: Any) -> None:
    escaped = extension("plain_docstrings").escaped
    text = ["|u| over ``scale_`` and scale_ [1]_::", "", "    |u| / scale_", "", ">>> a_ | b", "a_", "", "coef_"]
    found = escaped(text)
    assert found[0] == r"\|u\| over ``scale_`` and scale\_ [1]_::"
    assert found[1:7] == text[1:7] and found[7] == r"coef\_"


def test_every_public_name_is_in_the_reference(extension: Any) -> None:
    pages = extension("api_pages")
    text = "\n".join(pages.index())
    modules = ["trimlearn", *(f"trimlearn.{name}" for name in pages.MODULES)]
    assert [name for module in modules for name in pages.names(module) if f"   {name}\n" not in text] == []
    assert "   TrimmedPCA\n" in text and "   plot_scores\n" in text


def test_links_to_sources_lead_to_pages_of_the_site(extension: Any) -> None:
    on_site = extension("source_pages").on_site
    assert on_site("src/trimlearn/solve.py", "#solve", "R") == "source:src/trimlearn/solve.html#solve"
    assert on_site("src/trimlearn/losses/", "", "R") == "source:src/trimlearn/losses/__init__.html"
    assert on_site("examples/plot_05_cells.py", "", "R") == "gallery/plot_05_cells.rst"
    assert on_site("README.md", "", "R") == "index.md"
    assert on_site("LICENSE", "", "R") == "R/blob/main/LICENSE"


def test_names_in_sources_have_anchors(extension: Any) -> None:
    source = extension("source_pages")
    found = source.marked_up(ROOT / "src/trimlearn/smart/algorithm.py")
    assert 'id="Algorithm1.x_step"' in found and 'id="L1"' in found
    assert source.page_of_object("trimlearn", "solve") == "source/src/trimlearn/solve.html#solve"


@pytest.mark.parametrize("file", YAML, ids=lambda path: path.name)
def test_yaml_is_whole(file: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    assert isinstance(yaml.safe_load(file.read_text(encoding="utf-8")), dict)


def test_the_citation_is_of_this_version_and_licence() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], cited["license"]) == (trimlearn.__version__, PROJECT["license"])
    assert cited["repository-code"] == PROJECT["urls"]["Source"]
    assert cited["references"][0]["url"].endswith("1610.01101")


def test_the_workflow_calls_make_targets_that_exist() -> None:
    """On the versions of Python that pyproject.toml promises."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "make " in step.get("run", "")]
    called = {word for line in lines for word in line.split()[1:] if "{" not in word and "}" not in word}
    called |= set(jobs["once"]["strategy"]["matrix"]["target"])
    called -= {"matrix.target"}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert called - targets == set() and {"lint", "types", "test", "docs"} <= called
    promised = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised


def test_one_repository_everywhere() -> None:
    said = (ROOT / "docs/conf.py").read_text(encoding="utf-8")
    assert f'"{PROJECT["urls"]["Source"]}"' in said


def test_the_site_has_the_colours_of_the_report() -> None:
    style = (ROOT / "docs/_static/trimlearn.css").read_text(encoding="utf-8")
    for scheme, colours in (("light", LIGHT), ("dark", DARK)):
        line = next(line for line in style.splitlines() if f'data-theme="{scheme}"' in line)
        assert f"--pst-color-primary: {colours.accent};" in line and f"--pst-color-secondary: {colours.bad};" in line
