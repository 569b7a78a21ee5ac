"""The review in a browser: mark, undo, export, import; by keyboard only; with storage denied; for screen readers."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import trimlearn.report
from report_sample import sample
from trimlearn.tables.write import harmless

DENIED = """Object.defineProperty(window, "localStorage", {
    get() { throw new DOMException("The operation is insecure.", "SecurityError"); } });"""


def progress(tab: Any) -> str:
    words: str = tab.locator("#progress-words").inner_text()
    return words


def export(tab: Any) -> list[dict[str, str]]:
    """The decisions as they are in the downloaded file."""
    with tab.expect_download() as download:
        tab.locator("#export").click()
    assert download.value.suggested_filename == "decisions.csv"
    text = Path(download.value.path()).read_bytes().decode("utf-8")
    return list(csv.DictReader(StringIO(text, newline="")))


def line(document: dict[str, Any], k: int, what: str, column: str = "", value: str = "") -> dict[str, str]:
    row = document["suspects"][k]["row"]
    return {
        "fingerprint": document["source"]["fingerprint"],
        "row": str(row),
        "what": what,
        "column": column,
        "value": value,
    }


def button(tab: Any, k: int, act: str) -> Any:
    return tab.locator("#rows .suspect").nth(k).locator(f"[data-act={act}]")


def test_mark_undo_redo_and_export(visit: Any) -> None:
    document = sample()
    tab = visit(document)
    assert progress(tab) == "0 of 38 decided"
    button(tab, 0, "keep").click()
    button(tab, 1, "drop").click()
    assert button(tab, 1, "drop").get_attribute("aria-pressed") == "true"
    assert progress(tab) == "2 of 38 decided"
    assert tab.locator("#status").inner_text() == "Line 6: drop."
    button(tab, 2, "suggested").click()
    tab.locator("#undo").click()
    assert progress(tab) == "2 of 38 decided"
    tab.locator("#redo").click()
    assert export(tab) == [
        line(document, 0, "keep"),
        line(document, 1, "drop"),
        line(document, 2, "relabel", "Fuel", document["suspects"][2]["target"]["suggested"]),
    ]
    for _ in range(3):
        tab.locator("#undo").click()
    assert progress(tab) == "0 of 38 decided"
    assert tab.locator("#undo").get_attribute("aria-disabled") == "true"
    tab.keyboard.press("u")
    assert tab.locator("#status").inner_text() == "There is nothing to undo."


def test_a_second_press_takes_a_decision_back(visit: Any) -> None:
    tab = visit(sample())
    button(tab, 0, "keep").click()
    button(tab, 0, "keep").click()
    assert progress(tab) == "0 of 38 decided"
    tab.locator("#undo").click()
    assert progress(tab) == "1 of 38 decided"


def test_relabel_and_correct_in_the_card(visit: Any) -> None:
    document = sample()
    suspect = document["suspects"][0]
    tab = visit(document)
    tab.locator("#rows .toggle").first.click()
    card = tab.locator("article.card")
    assert card.locator("[data-entry=target]").input_value() == suspect["target"]["suggested"]
    price = card.locator(".matter.cell").first
    assert price.locator("input").input_value() == suspect["cells"][0]["expected"]
    card.locator("[data-entry=target]").select_option("Diesel")
    card.get_by_role("button", name="Relabel").click()
    price.locator("input").fill("=1+1")
    price.get_by_role("button", name="Correct").click()
    card.locator(".matter.cell").nth(1).get_by_role("button", name="It is right").click()
    assert progress(tab) == "1 of 38 decided"
    assert export(tab) == [
        line(document, 0, "relabel", "Fuel", "Diesel"),
        line(document, 0, "correct", "Price", "'=1+1"),  # a spreadsheet would run it
        line(document, 0, "keep", "Weight"),
    ]
    card.get_by_role("button", name="Drop").click()
    assert [entry["what"] for entry in export(tab)] == ["drop"]
    tab.locator("#undo").click()
    assert [entry["what"] for entry in export(tab)] == ["relabel", "correct", "keep"]


def test_a_number_is_asked_for_where_the_target_is_one(visit: Any) -> None:
    document = sample(regression=True)
    tab = visit(document)
    tab.locator("#rows .toggle").first.click()
    entry = tab.locator("article.card [data-entry=target]")
    entry.fill("many")
    tab.get_by_role("button", name="Set", exact=True).click()
    assert progress(tab) == "0 of 38 decided"
    assert tab.locator("#status").inner_text() == "This should be a number."
    entry.fill("-12.5")
    tab.get_by_role("button", name="Set", exact=True).click()
    assert export(tab) == [line(document, 0, "relabel", "MPG", "-12.5")]  # a number is not taken for a formula


def test_decisions_outlive_a_reload(visit: Any) -> None:
    document = sample()
    tab = visit(document)
    button(tab, 0, "drop").click()
    tab.locator("#rows .toggle").first.click()
    button(tab, 3, "suggested").click()
    before = export(tab)
    tab.reload()
    assert progress(tab) == "2 of 38 decided"
    assert export(tab) == before


def test_import_gives_back_what_was_exported(visit: Any, tmp_path: Path) -> None:
    document = sample(40, hostile=True)
    tab = visit(document)
    tab.get_by_role("button", name="use suggestions").click()
    with tab.expect_download() as download:
        tab.locator("#export").click()
    file = tmp_path / "decisions.csv"
    file.write_bytes(Path(download.value.path()).read_bytes())
    before, words = file.read_text(encoding="utf-8"), progress(tab)
    tab.get_by_role("button", name="clear", exact=True).first.click()
    assert progress(tab) == "0 of 40 decided"
    tab.locator("#file").set_input_files(file)
    tab.locator("#progress-words", has_text=words).wait_for()
    with tab.expect_download() as download:
        tab.locator("#export").click()
    assert Path(download.value.path()).read_bytes().decode() == file.read_bytes().decode()
    assert before.count("fingerprint") == 1
    tab.locator("#undo").click()
    assert progress(tab) == "0 of 40 decided"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "This is not a file of decisions"),
        ("fingerprint,row,what,column,value\nother,1,keep,,\n", "belong to another table"),
        ("fingerprint,row,what,column,value\nf1ce3800,9999999,keep,,\n", "is not a row of this table"),
        ("fingerprint,row,what,column,value\nf1ce3800,1,burn,,\n", "is none of keep, drop, relabel, correct"),
        ("fingerprint,row,what,column,value\n", "holds no decisions"),
    ],
)
def test_other_files_are_refused_in_a_sentence(visit: Any, tmp_path: Path, text: str, says: str) -> None:
    tab = visit(sample())
    file = tmp_path / "other.csv"
    file.write_text(text, encoding="utf-8")
    tab.locator("#file").set_input_files(file)
    tab.locator("#status", has_text=says).wait_for()
    assert progress(tab) == "0 of 38 decided"


def test_a_spreadsheet_may_have_touched_the_file(visit: Any, tmp_path: Path) -> None:
    document = sample()
    tab = visit(document)
    file = tmp_path / "decisions.csv"
    file.write_bytes('\ufefffingerprint;row;what;column;value\r\nf1ce3800;1;correct;Price;"9;5"\r\n'.encode())
    tab.locator("#file").set_input_files(file)
    tab.locator("#progress-words", has_text="1 of 38").wait_for()
    assert export(tab) == [line(document, 0, "correct", "Price", "9;5")]


def test_decisions_on_rows_that_are_not_listed_are_kept(visit: Any, tmp_path: Path) -> None:
    tab = visit(sample())
    file = tmp_path / "decisions.csv"
    file.write_text("fingerprint,row,what,column,value\nf1ce3800,0,keep,,\n", encoding="utf-8")
    tab.locator("#file").set_input_files(file)
    tab.locator("#elsewhere", has_text="1 decision on rows not listed here").wait_for()
    assert progress(tab) == "0 of 38 decided"
    assert len(export(tab)) == 1


def test_bulk_acts_on_the_filtered_rows_in_one_step(visit: Any) -> None:
    document = sample()
    tab = visit(document)
    button(tab, 0, "keep").click()
    tab.get_by_role("radio", name="Cells").check()
    cells = [s for s in document["suspects"] if "cell" in s["kinds"]]
    tab.get_by_role("button", name="drop", exact=True).first.click()
    tab.get_by_role("radio", name="All").check()
    assert progress(tab) == f"{len(cells)} of 38 decided"
    tab.locator("#undo").click()
    assert progress(tab) == "1 of 38 decided"


def test_only_undecided_shrinks_as_one_decides(visit: Any) -> None:
    tab = visit(sample())
    tab.locator("#undecided").check()
    button(tab, 0, "keep").click()
    assert tab.locator("#rows .suspect").count() == 37
    tab.locator("#rows .toggle").first.click()
    tab.locator("article.card").get_by_role("button", name="Drop").click()
    assert tab.locator("article.card").count() == 1  # it stays while it is open
    tab.locator("#rows .toggle").first.click()
    assert tab.locator("#rows .suspect").count() == 36


def test_keyboard_only(visit: Any) -> None:
    document = sample()
    tab = visit(document)
    press = tab.keyboard.press
    for _ in range(40):  # Tab gets to the first row
        press("Tab")
        if tab.evaluate("document.activeElement.classList.contains('toggle')"):
            break
    assert tab.evaluate("document.activeElement.closest('tr').dataset.suspect") == "0"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press("ArrowDown")
    press("j")
    press("k")
    assert tab.evaluate("document.activeElement.closest('tr').dataset.suspect") == "1"
    press("Enter")
    assert tab.locator("article.card").count() == 1
    press("c")  # to the cell's field
    tab.keyboard.type("12345")
    press("Enter")
    press("Escape")  # back to the row
    press("j")  # the card follows
    assert tab.locator("tr.detail").get_attribute("data-suspect") == "2"
    press("Escape")
    assert tab.locator("article.card").count() == 0
    press("d")
    press("y")
    press("s")
    press("u")
    press("U")
    exported = export(tab)
    assert exported[0] == line(document, 1, "correct", "Price", "12345")
    assert [e["what"] for e in exported[1:3]] == ["drop", "keep"]
    press("/")
    assert tab.evaluate("document.activeElement.id") == "query"
    tab.keyboard.type("dyu")  # letters, not commands
    assert len(export(tab)) == len(exported)


def test_keys_are_shown_and_can_be_turned_off(visit: Any) -> None:
    tab = visit(sample())
    tab.locator("#rows .toggle").first.focus()
    tab.keyboard.press("?")
    assert tab.locator("#keys").is_visible()
    tab.get_by_label("Single keys are on").uncheck()
    tab.keyboard.press("Escape")
    assert not tab.locator("#keys").is_visible()
    tab.locator("#rows .toggle").first.focus()
    tab.keyboard.press("d")
    assert progress(tab) == "0 of 38 decided"
    tab.keyboard.press("Enter")
    assert tab.locator("article.card").count() == 1


def test_focus_stays_where_it_was(visit: Any) -> None:
    tab = visit(sample())
    button(tab, 4, "keep").focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.dataset.act") == "keep"
    assert tab.evaluate("document.activeElement.closest('tr').dataset.suspect") == "4"


def test_storage_denied(visit: Any) -> None:
    tab = visit(sample(), script=DENIED)
    assert "last only as long as the page is open" in tab.locator("#storage").inner_text()
    button(tab, 0, "drop").click()
    assert progress(tab) == "1 of 38 decided"
    asked: list[str] = []
    tab.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    tab.reload()
    assert asked == ["beforeunload"]
    button(tab, 0, "drop").click()
    assert len(export(tab)) == 1
    tab.reload()
    assert len(asked) == 1  # exported: nothing is lost


def test_with_storage_the_page_closes_without_a_question(visit: Any) -> None:
    tab = visit(sample())
    asked: list[str] = []
    tab.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    button(tab, 0, "drop").click()
    tab.reload()
    assert asked == []
    assert not tab.locator("#storage").is_visible()


def test_copy_puts_the_csv_on_the_clipboard(visit: Any) -> None:
    document = sample()
    tab = visit(document)
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button(tab, 0, "drop").click()
    tab.locator("#copy").click()
    tab.locator("#status", has_text="clipboard").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()").splitlines()[1] == "f1ce3800,1,drop,,"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_axe_finds_nothing(visit: Any, dark: bool, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    document = sample(images=True)
    document["suspects"][0]["why"] *= 9
    tab = visit(document, dark=dark, width=width)
    tab.locator("#rows .toggle").first.click()
    button(tab, 1, "drop").click()
    found = axe.run(tab).response["violations"]
    assert [f"{v['impact']}, {v['id']}: {v['nodes'][0]['html'][:200]}" for v in found] == []  # not even minor ones


def test_names_for_screen_readers(visit: Any) -> None:
    tab = visit(sample())
    tree = tab.locator("#list").aria_snapshot()
    assert "columnheader" in tree and "rowheader" in tree
    assert tab.locator("#rows .toggle").first.get_attribute("aria-expanded") == "false"
    assert tab.locator("#status").get_attribute("role") == "status"


def test_the_page_and_the_files_make_the_same_cells_harmless(visit: Any) -> None:
    cells = [
        *("=1+1", " =1+1", "\t=1", '"=cmd()', "'=1", "''=1", "＝1+1", "＠x", "@x", "+44 (0)20", "-x", "\r\n=1"),
        *("-12.5", "+3", "-1,200.5", "-£5", "- 5", "--", "-", "+", "-1e-3", "-5 %", " -7 ", "a=b", "", "it's", "'a'"),
    ]
    source = (Path(trimlearn.report.__file__).parent / "page_csv.js").read_text(encoding="utf-8")
    both = visit(sample()).evaluate(
        f"(cells) => {{ {source}\nreturn cells.map((cell) => [guard(cell), unguard(guard(cell))]); }}", cells
    )
    assert [guarded for guarded, _ in both] == [harmless(cell) for cell in cells]
    assert [back for _, back in both] == cells
