"""The charts in a browser: what is drawn, what is told on hover, by keys and by touch, zoom, dark, phone, print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import chart_examples as examples
from trimlearn.report.charts import charts

Visit = Callable[..., Any]
MARKUP = '<img src=x onerror="window.hacked=1">'


def document(specs: list[dict[str, Any]]) -> dict[str, Any]:
    source = {"name": "cars.csv", "rows": 297, "columns": 9, "fingerprint": "f00", "first_line": 2}
    lists: dict[str, Any] = {k: [] for k in ("headline", "next", "caveats", "notes", "columns", "models", "suspects")}
    made = {"format": "trimlearn-check/1", "version": "0", "created": "2026-01-31T12:00:00+00:00", "seed": 0}
    return {**made, **lists, "source": source, "target": None, "counts": {}, "charts": specs, "decisions": None}


def every() -> list[dict[str, Any]]:
    made = [e() for e in (examples.regression, examples.classification, examples.whole_rows)]
    return [spec for example in made for spec in charts(**example.arguments)]


@pytest.fixture(scope="module")
def specs() -> list[dict[str, Any]]:
    """Of all examples: every kind of chart."""
    return every()


@pytest.fixture(scope="module")
def few() -> list[dict[str, Any]]:
    """Of one example, which is drawn sooner."""
    return charts(**examples.regression().arguments)


def drawn(tab: Any, count: int) -> Any:
    tab.locator("svg.chart-picture").nth(count - 1).wait_for()
    return tab.locator("figure.chart")


def figure(tab: Any, specs: list[dict[str, Any]], key: str) -> Any:
    """The first chart of a kind, in view."""
    index = next(i for i, spec in enumerate(specs) if spec["key"] == key)
    found = drawn(tab, len(specs)).nth(index)
    found.scroll_into_view_if_needed()
    return found


def test_every_chart_is_drawn_and_named(visit: Visit, specs: list[dict[str, Any]]) -> None:
    tab = visit(document(specs))
    assert drawn(tab, len(specs)).count() == len(specs)
    for i, spec in enumerate(specs):
        picture = tab.locator("svg.chart-picture").nth(i)
        assert picture.get_attribute("role") == "img"
        assert picture.locator("title").text_content() == spec["title"]
        assert picture.locator("desc").text_content() == spec["description"]
        assert picture.locator("path, rect").count() >= 1
    assert tab.locator(".notice", has_text="could not be drawn").count() == 0
    assert tab.locator("[style]").count() == tab.locator(".chart-tip[style]").count()


def test_names_of_points_do_not_cover_each_other(visit: Visit, specs: list[dict[str, Any]]) -> None:
    tab = visit(document(specs), width=390)
    drawn(tab, len(specs))
    overlaps = tab.evaluate("""() => {
      let count = 0;
      for (const svg of document.querySelectorAll('svg.chart-picture')) {
        const boxes = [...svg.querySelectorAll('.chart-name')].map((node) => node.getBoundingClientRect());
        boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
          const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (wide > 1 && tall > 4) count += 1;
        }));
      }
      return count;
    }""")
    assert overlaps == 0
    assert tab.locator(".chart-name").count() > 20


@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_sticks_out(visit: Visit, specs: list[dict[str, Any]], width: int) -> None:
    tab = visit(document(specs), width=width)
    drawn(tab, len(specs))
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    beyond = tab.evaluate("""() => [...document.querySelectorAll('svg.chart-picture text')].filter((node) => {
      const [own, all] = [node.getBoundingClientRect(), node.closest('figure').getBoundingClientRect()];
      return own.left < all.left - 1 || own.right > all.right + 1;
    }).map((node) => node.textContent)""")
    assert beyond == []


def test_hover_tells_the_values(visit: Visit, few: list[dict[str, Any]]) -> None:
    tab = visit(document(few))
    bars = figure(tab, few, "columns")
    box = bars.locator(".chart-glass").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 36)
    tip = bars.locator(".chart-tip")
    assert tip.is_visible()
    first = next(spec for spec in few if spec["key"] == "columns")["items"][0]
    assert tip.inner_text().startswith(first["name"])
    tab.mouse.move(2, 2)
    assert not tip.is_visible()


def test_keys_tell_the_values_one_by_one(visit: Visit, few: list[dict[str, Any]]) -> None:
    tab = visit(document(few))
    spec = next(spec for spec in few if spec["key"] == "outlier-map")
    chart = figure(tab, few, "outlier-map")
    chart.locator(".chart-glass").focus()
    tip = chart.locator(".chart-tip")
    tab.keyboard.press("ArrowRight")
    worst = spec["points"]["name"][spec["label"][0]]
    assert tip.inner_text().splitlines()[0] == worst
    tab.keyboard.press("ArrowRight")
    assert tip.inner_text().splitlines()[0] == spec["points"]["name"][spec["label"][1]]
    tab.keyboard.press("Home")
    assert tip.inner_text().splitlines()[0] == worst
    tab.keyboard.press("Escape")
    assert not tip.is_visible()


def test_touch_tells_the_values(visit: Visit, few: list[dict[str, Any]]) -> None:
    tab = visit(document(few), width=390)
    chart = figure(tab, few, "coefficients")
    chart.locator(".chart-glass").dispatch_event("click", {"clientX": 0, "clientY": 0})
    assert not chart.locator(".chart-tip").is_visible()
    box = chart.locator(".chart-glass").bounding_box()
    place = {"clientX": box["x"] + 100, "clientY": box["y"] + 40, "pointerType": "touch"}
    chart.locator(".chart-glass").dispatch_event("click", place)
    assert "95 % interval" in chart.locator(".chart-tip").inner_text()


def ticks(chart: Any) -> list[str]:
    return list(chart.locator(".chart-tick").all_text_contents())


def test_zoom_by_buttons_keys_wheel_and_box(visit: Visit, few: list[dict[str, Any]]) -> None:
    tab = visit(document(few))
    chart = figure(tab, few, "outlier-map")
    whole = ticks(chart)
    chart.get_by_role("button", name="Zoom in").click()
    chart.get_by_role("button", name="Zoom in").click()
    assert ticks(chart) != whole
    chart.get_by_role("button", name="Show everything again").click()
    assert ticks(chart) == whole
    glass = chart.locator(".chart-glass")
    glass.focus()
    for _ in range(3):
        tab.keyboard.press("+")
    assert ticks(chart) != whole
    for _ in range(4):
        tab.keyboard.press("-")
    assert ticks(chart) == whole
    box = glass.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x - 60, y - 60)
    tab.mouse.down()
    tab.mouse.move(x + 20, y + 20, steps=4)
    assert chart.locator(".chart-box").count() == 1
    tab.mouse.up()
    zoomed = ticks(chart)
    assert zoomed != whole
    assert chart.locator(".chart-box").count() == 0
    tab.mouse.down()
    tab.mouse.move(x + 90, y + 60, steps=4)
    tab.mouse.up()
    assert ticks(chart) != zoomed  # moved
    glass.dblclick()
    assert ticks(chart) == whole
    tab.mouse.wheel(0, 10)  # scrolls the page, not the chart
    assert ticks(chart) == whole
    tab.keyboard.down("Control")
    tab.mouse.move(x, y)
    tab.mouse.wheel(0, -300)
    tab.keyboard.up("Control")
    assert ticks(chart) != whole


def test_two_fingers_zoom(visit: Visit, few: list[dict[str, Any]]) -> None:
    tab = visit(document(few), width=390)
    chart = figure(tab, few, "outlier-map")
    whole = ticks(chart)
    box = chart.locator(".chart-glass").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def finger(event: str, number: int, shift: float) -> None:
        place = {"pointerId": number, "pointerType": "touch", "clientX": x + shift, "clientY": y + shift, "button": 0}
        chart.locator(".chart-glass").dispatch_event(event, {**place, "bubbles": True})

    for number, shift in ((1, -20), (2, 20)):
        finger("pointerdown", number, shift)
    for number, shift in ((1, -80), (2, 80)):
        finger("pointermove", number, shift)
    for number, shift in ((1, -80), (2, 80)):
        finger("pointerup", number, shift)
    assert ticks(chart) != whole
    chart.get_by_role("button", name="Show everything again").click()
    assert ticks(chart) == whole


def test_the_numbers_are_a_table(visit: Visit, specs: list[dict[str, Any]]) -> None:
    tab = visit(document(specs))
    chart = figure(tab, specs, "noise")
    chart.locator("summary").click()
    cells = [cell.replace("\xa0", " ") for cell in chart.locator("td").all_text_contents()]
    assert cells == ["Diesel", "86 %", "14 %", "Petrol", "9 %", "91 %"]
    assert chart.get_by_role("columnheader").count() == 3


def test_markup_in_the_data_is_shown_and_never_run(visit: Visit) -> None:
    example = examples.classification()
    specs = charts(**{**example.arguments, "names": lambda row: MARKUP})
    hostile = json.loads(json.dumps(specs).replace("Diesel", json.dumps(MARKUP)[1:-1]).replace("Price", "</script><b>"))
    tab = visit(document(hostile))
    drawn(tab, len(hostile))
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("figure img, figure b").count() == 0
    assert tab.locator("figure text", has_text="<img").count() > 0


def test_colours_follow_the_page(visit: Visit, few: list[dict[str, Any]]) -> None:
    colours = []
    for dark in (False, True):
        tab = visit(document(few), dark=dark)
        drawn(tab, len(few))
        colours.append(tab.evaluate("getComputedStyle(document.querySelector('.chart-mark.is-wrong')).fill"))
    assert colours[0] != colours[1]


def test_print_leaves_out_what_paper_cannot_do(visit: Visit, specs: list[dict[str, Any]]) -> None:
    tab = visit(document(specs))
    drawn(tab, len(specs))
    tab.emulate_media(media="print")
    assert tab.locator(".chart-tools:visible").count() == 0
    assert tab.locator("svg.chart-picture:visible").count() == len(specs)
    assert len(tab.pdf()) > 10_000


def test_no_serious_barrier(visit: Visit, specs: list[dict[str, Any]]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    one_each = list({spec["type"]: spec for spec in specs}.values())
    for dark in (False, True):
        tab = visit(document(one_each), dark=dark)
        drawn(tab, len(one_each))
        tab.locator("figure summary").first.click()
        tab.locator(".chart-glass").first.focus()
        tab.keyboard.press("ArrowRight")
        found = axe.run(tab, context="figure").response["violations"]
        bad = [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
        assert bad == []


def test_a_hundred_thousand_rows_are_drawn_at_once(visit: Visit) -> None:
    specs = charts(**examples.regression(100_000, 5_000).arguments)
    tab = visit(document(specs))
    drawn(tab, len(specs))
    spent = tab.evaluate(
        """([spec]) => {
      const element = document.createElement('figure');
      document.body.append(element);
      const start = performance.now();
      window.trimlearnCharts.draw(element, spec);
      return performance.now() - start;
    }""",
        [specs[0]],
    )
    assert spent < 500  # ms; some 60 on a desk
