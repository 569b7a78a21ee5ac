// Pictures: the gallery of images, and the charts.

const FIRST = 48; // pictures of the gallery at first
function gallery() {
  if (!suspects.some((s) => s.image)) return null;
  const grid = make("div", { class: "gallery" });
  let count = FIRST;
  const more = make(
    "button",
    { type: "button", class: "quiet", on: { click: () => { count += FIRST * 4; draw(); } } },
    "Show more",
  );
  const draw = () => {
    const pictured = shown.filter((i) => suspects[i].image);
    grid.replaceChildren(...pictured.slice(0, count).map(thumbnail));
    more.hidden = pictured.length <= count;
  };
  window.addEventListener("trimlearn-list", draw);
  return section(
    "gallery",
    "Gallery",
    make(
      "p",
      { class: "lead" },
      "The images among the suspects above, in the same order. Press one to open it in the table.",
    ),
    grid,
    more,
  );
}

function thumbnail(i) {
  const s = suspects[i];
  const image = picture(s);
  image.setAttribute("loading", "lazy");
  const decided = decisions.of(s.row).map((item) => item.what)[0];
  const caption = s.target ? change(s.target.given, s.target.suggested, 30) : make("span", {}, place(s));
  return make(
    "button",
    { type: "button", class: "thumbnail", on: { click: () => openFromAfar(i) } },
    image,
    make(
      "span",
      { class: "caption" },
      caption,
      make("span", { class: "muted" }, decided ? ` ${decided}` : ` ${chance(s.probability)}`),
    ),
  );
}

function openFromAfar(i) {
  state.page = Math.floor(shown.indexOf(i) / PAGE);
  state.open = null;
  toggleCard(i);
}

function chartsSection() {
  if (!data.charts.length) return null;
  const figures = data.charts.map((spec) => [
    make(
      "figure",
      { class: `chart ${spec.type}` },
      make("figcaption", {}, make("h3", {}, asText(spec.title)), make("p", {}, asText(spec.description))),
    ),
    spec,
  ]);
  // One at a time, so that the table can be used meanwhile.
  const next = () => {
    const [figure, spec] = figures.shift() ?? [];
    if (!figure) return;
    drawChart(figure, spec);
    setTimeout(next);
  };
  setTimeout(next);
  return section("charts", "Charts", make("div", { class: "charts" }, figures.map(([figure]) => figure)));
}

function drawChart(figure, spec) {
  if (!window.trimlearnCharts) return;
  const words = [...figure.childNodes];
  try {
    figure.replaceChildren();
    window.trimlearnCharts.draw(figure, spec);
  } catch (problem) {
    figure.replaceChildren(
      ...words,
      make("p", { class: "notice" }, `This chart could not be drawn: ${problem.message}`),
    );
  }
}
