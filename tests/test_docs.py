"""The documentation says what is true: its examples run and print what they promise, its names and links exist."""

from __future__ import annotations

import ast
import html
import importlib
import inspect
import io
import re
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest

import lint_docstrings
import trimlearn
from benchmarks.pictures.house import FLOORS
from blocks import blocks, run
from trimlearn import losses, regularizers, smart, weights
from trimlearn.engines import Counts, Engine
from trimlearn.smart.method import Record, State

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(trimlearn.__file__).parent
ABOVE = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "CODE_OF_CONDUCT", "RELEASING")]
PAGES = [*ABOVE, *sorted(DOCS.glob("*.md"))]
SAYS = "#> "  # a line of a python block that begins so is what the block prints


def page_name(page: Path) -> str:
    return page.name


@cache
def session(page: Path) -> list[tuple[str, list[str], dict[str, Any]]]:
    """Each block of a page, the lines it prints, and the names known after it."""
    found, printed = [], io.StringIO()
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(printed):  # examples may write files
        for block, names in run(page):
            found.append((block, printed.getvalue().splitlines(), dict(names)))
            printed.seek(0)
            printed.truncate()
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=page_name)
def test_every_example_runs_and_prints_what_it_says(page: Path) -> None:
    for block, printed, _ in session(page):
        promised = [line.removeprefix(SAYS) for line in block.splitlines() if line.startswith(SAYS)]
        assert printed == promised or not promised


def test_the_readme_example_finds_the_wrong_labels_in_ten_lines() -> None:
    block, _, names = session(ROOT / "README.md")[0]
    assert len([line for line in block.splitlines() if line.strip() and not line.startswith(SAYS)]) <= 11
    digits, found = names["digits"], names["found"]
    assert abs(names["model"].contamination_ - 0.3) < 0.03
    assert found[digits.is_wrong].mean() > 0.95
    assert found[~digits.is_wrong].mean() < 0.03


# -- links ------------------------------------------------------------------------------------------------------------


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, by GitHub's rule; of a Python file its classes, functions and methods."""
    if page.suffix == ".py":
        return definitions(ast.parse(page.read_text(encoding="utf-8")))
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def definitions(tree: ast.AST, prefix: str = "") -> set[str]:
    inside = [node for node in ast.iter_child_nodes(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    nested = [definitions(node, f"{prefix}{node.name}.") for node in inside if isinstance(node, ast.ClassDef)]
    return {prefix + node.name for node in inside}.union(*nested)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_relative_link_resolves(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    for target in (t for t in targets if not t.startswith(("http://", "https://"))):
        name, _, anchor = target.partition("#")
        path = page if not name else page.parent / name
        assert path.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(path), f"{page.name} links to {target}: no such heading"


def test_docstrings_are_held_to_numpydocs_rules() -> None:
    pytest.importorskip("numpydoc", reason="numpydoc is not installed: pip install numpydoc")
    assert len(list(lint_docstrings.public_names())) > 50
    broken = lint_docstrings.errors("lint_docstrings.public_names")
    assert [line.split()[2] for line in broken] == ["YD01", "EX01"]  # it says neither what it yields nor an example
    assert lint_docstrings.errors("trimlearn.datasets.shift_labels") == []


def contents(page: Path) -> list[str]:
    """What the toctrees of a page list, without titles."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines]


def test_every_page_is_in_the_contents_once() -> None:
    """Else the site has no way to it: add it to the toctree of start.md, guide.md or inside.md."""
    listed = [name for page in DOCS.glob("*.md") for name in contents(page)]
    assert sorted(page.stem for page in DOCS.glob("*.md") if page.stem != "index") == sorted(
        name for name in listed if "/" not in name
    )


def test_every_page_in_the_contents_is_linked_and_introduced() -> None:
    for page in (DOCS / "start.md", DOCS / "guide.md", DOCS / "inside.md"):
        text = page.read_text(encoding="utf-8")
        assert [name for name in contents(page) if f"({name}.md)" not in text] == []


def test_the_first_screen_of_the_site_has_no_formula() -> None:
    first = (DOCS / "index.md").read_text(encoding="utf-8").split("## ")[0]
    assert "trimlearn check" in first and "![" in first
    assert not re.search("[Σ∇ᵢ≤λ]", first)


# -- the names in docs/notation.md ------------------------------------------------------------------------------------


def rows(page: Path, columns: int) -> list[list[str]]:
    """The cells of every table row with so many columns; an escaped bar is part of its cell."""
    lines = [line for line in prose(page).splitlines() if line.startswith("|") and not line.startswith("|---")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if len(row) == columns]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def notation() -> list[tuple[str, str, list[str]]]:
    """(symbol, code name, files) for each code name: the last two columns of all tables are names and files."""
    tables = rows(DOCS / "notation.md", 4) + rows(DOCS / "notation.md", 5)
    return [(row[0], name, code(row[-1])) for row in tables for name in code(row[-2])]


def source(file: str) -> Path:
    """A file of the package, or of the paper's experiments beside it."""
    return ROOT / file if file.startswith("paper/") else PACKAGE / file


@cache
def module(file: str) -> ModuleType:
    parts = [*([] if file.startswith("paper/") else ["trimlearn"]), *Path(file).with_suffix("").parts]
    return importlib.import_module(".".join(parts))


@cache
def defined_in(file: str) -> set[str]:
    """What a file itself defines at its top level; imports do not count."""
    found = set()
    for node in ast.parse(source(file).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found


def set_on_self(cls: type) -> set[str]:
    """The attributes that the methods of a class assign."""
    tree = ast.parse(inspect.getsource(cls))
    stores = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {node.attr for node in stores if isinstance(node.value, ast.Name) and node.value.id == "self"}


def has_member(owner: Any, name: str) -> bool:
    """An attribute or field of a class, or a parameter or variable of a function."""
    if inspect.isfunction(owner):
        return name in owner.__code__.co_varnames
    if not inspect.isclass(owner):
        return False
    family = [cls for cls in owner.__mro__ if cls.__module__.startswith("trimlearn")]
    return any(name in vars(cls) or name in inspect.get_annotations(cls) or name in set_on_self(cls) for cls in family)


def is_defined(name: str, file: str) -> bool:
    """Whether `Class.method.variable`, `function.parameter`, … is to be found in the file."""
    first, *rest = name.split(".")
    if first not in defined_in(file):
        return False
    owner = getattr(module(file), first)
    for part in rest:
        if not has_member(owner, part):
            return False
        owner = inspect.getattr_static(owner, part, None)
    return True


def test_the_search_for_names_can_fail() -> None:
    assert is_defined("State.x", "smart/method.py")
    assert is_defined("Problem.S", "problem.py")
    assert is_defined("Algorithm1.x_step.g", "smart/algorithm.py")
    assert not is_defined("State.nothing", "smart/method.py")
    assert not is_defined("Algorithm1.x_step.nothing", "smart/algorithm.py")
    assert not is_defined("State", "smart/algorithm.py")  # imported there, not defined


def test_every_file_in_the_notation_exists() -> None:
    files = {file for _, _, where in notation() for file in where}
    assert len(files) > 15
    assert [file for file in sorted(files) if not source(file).is_file()] == []


def test_every_name_in_the_notation_is_defined_where_it_says() -> None:
    named = notation()
    assert len(named) > 100
    lost = [(symbol, name) for symbol, name, files in named if not any(is_defined(name, file) for file in files)]
    assert lost == []


def test_every_name_has_a_file_and_every_row_a_meaning() -> None:
    for symbol, meaning, names, files in rows(DOCS / "notation.md", 4)[1:]:
        assert symbol and meaning, (symbol, meaning)
        assert bool(code(names)) == bool(code(files)), symbol


SYMBOLS = """
    w x f_i n r1 r2 F Δ_h h B_i L I_k j_k D_k q q' ρ_i b y_i φ_i γ γ_k τ η ε ε₀ a β_i α_i θ_i δ μ κ t₀ T x̄ w̄ z̄ V_i^k
    v^k K X v_i e_j λ LSE U A a_i H b_{1,i} k δ_{r1} R_w̄ X_k Y_k
"""


def test_every_symbol_of_the_paper_has_a_row() -> None:
    listed = {symbol for row in rows(DOCS / "notation.md", 4) for symbol in row[0].split(", ")}
    assert [symbol for symbol in SYMBOLS.split() if symbol not in listed] == []


@pytest.mark.parametrize("kind", [State, Record, Counts], ids=lambda kind: kind.__name__)
def test_every_field_a_reader_meets_is_explained(kind: Any) -> None:
    named = {name for _, name, _ in notation()}
    assert [field for field in kind.__dataclass_fields__ if f"{kind.__name__}.{field}" not in named] == []


# -- docs/algorithm.md and docs/comparison.md --------------------------------------------------------------------------


def test_every_line_of_the_algorithm_has_its_code() -> None:
    """A link there names the function it leads to; that it exists is tested with all links."""
    table = rows(DOCS / "algorithm.md", 3)[1:]
    numbers = [line for row in table for line in re.findall(r"\d+", row[0])]
    assert [numbers[0], numbers[-1]] == ["1", "15"]
    for line, what, where in table:
        links = re.findall(r"\[`([^`]+)`\]\([^)#]+#([^)]+)\)", where)
        assert links or "stays" in what, line
        assert all(name == target for name, target in links), line


def test_the_comparison_quotes_what_was_measured() -> None:
    """Every number in its tables stands in a table of the pages that it cites."""
    numbers = r"\d[\d.,e+-]*\d|\d"
    measured: set[str] = set()
    for name in ("performance", "pca", "covariance", "homography", "cells"):
        tables = [line for line in prose(DOCS / f"{name}.md").splitlines() if line.startswith("|")]
        measured.update(re.findall(numbers, "\n".join(tables)))
    quoted = [line for line in prose(DOCS / "comparison.md").splitlines() if line.startswith("|")]
    figures = [number for line in quoted[9:] for number in re.findall(numbers, line)]  # the first table has words only
    assert len(figures) > 100
    assert [number for number in figures if number not in measured] == []


# -- docs/methods.md and docs/architecture.md against the package ------------------------------------------------------

INFRASTRUCTURE = {"Block", "Linear", "Loss", "PredictionLoss", "Regularizer", "Separable", "Indicator", "WeightSet"}
INFRASTRUCTURE |= {"check_regularizer"}


@pytest.mark.parametrize("part", [losses, weights, regularizers, smart], ids=lambda part: part.__name__)
def test_methods_names_everything_public(part: ModuleType) -> None:
    text = (DOCS / "methods.md").read_text(encoding="utf-8")
    assert [name for name in set(part.__all__) - INFRASTRUCTURE if f"`{name}" not in text] == []


def test_the_table_of_regularizers_has_their_properties() -> None:
    """Its columns convex, separable and smooth are the classes' own."""
    said = {code(row[0])[0].split("(")[0]: row[3:] for row in rows(DOCS / "methods.md", 6) if code(row[0])}
    terms = set(regularizers.__all__) - INFRASTRUCTURE - {"ExceptIntercept", "Scaled"}
    assert said.keys() == terms
    for name, (convex, separable, smooth) in said.items():
        r2 = regularizers.L0(alpha=1.0) if name == "L0" else getattr(regularizers, name)()
        for word, fact in ((convex, r2.convex), (separable, r2.separable), (smooth, r2.smooth)):
            assert word.startswith("yes" if fact else "no"), name


def test_the_seam_is_walked_through_whole() -> None:
    walked = {name for row in rows(DOCS / "architecture.md", 4) for name in code(row[0])}
    assert Engine.__abstractmethods__ - walked == set()


def layer(file: Path) -> str:
    path = file.relative_to(PACKAGE)
    return path.parts[0] if len(path.parts) > 1 else path.stem


@cache
def imported(file: Path) -> set[str]:
    """The layers a file imports, those that only type checkers see left out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    ours = [name.split(".") for name in modules if name.split(".")[0] == "trimlearn"]
    return {parts[1] if len(parts) > 1 else "trimlearn" for parts in ours} - {layer(file)}


def test_layers_import_only_what_the_architecture_allows() -> None:
    allowed = {name: set(code(row[2])) for row in rows(DOCS / "architecture.md", 3) for name in code(row[0])}
    for file in PACKAGE.rglob("*.py"):
        if file == PACKAGE / "__init__.py":
            continue
        assert layer(file) in allowed, f"{layer(file)} is in no layer"
        assert imported(file) <= allowed[layer(file)], f"{file.name}: {imported(file) - allowed[layer(file)]}"


def test_the_picture_of_the_house_has_every_package_and_its_folders() -> None:
    table = {name for row in rows(DOCS / "architecture.md", 3) for name in code(row[0])}
    rooms = {room.name: room for floor in FLOORS for room in floor.rooms}
    assert rooms.keys() == table - {"__main__", "_version"}
    for name, room in rooms.items():
        inside = {path.name for path in (PACKAGE / name).glob("*") if (path / "__init__.py").is_file()}
        assert set(room.folders) == inside, name
    drawn = html.unescape((DOCS / "img" / "house.svg").read_text(encoding="utf-8"))
    words = [word for room in rooms.values() for word in (room.name, room.what, *room.folders)]
    assert [word for word in words if word not in drawn] == []  # else: python -m benchmarks.pictures


def test_every_floor_rests_on_those_below() -> None:
    level = {room.name: number for number, floor in enumerate(FLOORS) for room in floor.rooms}
    for file in PACKAGE.rglob("*.py"):
        if layer(file) in level:
            above = [name for name in imported(file) if level.get(name, len(FLOORS)) < level[layer(file)]]
            assert above == [], file.name
