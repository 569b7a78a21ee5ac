// Puts the page together.

function drawHeads() {
  const head = ({ key, label }) =>
    make(
      "th",
      { role: "columnheader", scope: "col", class: `c-${key}`, "data-key": key, "aria-sort": "none" },
      make(
        "button",
        { type: "button", on: { click: () => sortBy(key) } },
        label,
        make("span", { class: "sorted", "aria-hidden": "true" }),
      ),
    );
  byId("heads").replaceChildren(...COLUMNS.map(head));
}

function drawBulk() {
  const button = (what, label) => make(
    "button",
    { type: "button", class: "link", on: { click: () => decideAll(what) } },
    label,
  );
  byId("bulk").replaceChildren(
    make("span", { id: "bulk-title" }, "All of these:"),
    button("keep", "keep"),
    button("drop", "drop"),
    button("suggested", "use suggestions"),
    button("clear", "clear"),
  );
}

function onPress(event) {
  const row = event.target.closest("[data-suspect]");
  if (!row) return;
  const i = Number(row.dataset.suspect);
  const button = event.target.closest("[data-act]");
  if (button) {
    state.current = i;
    return perform(i, button);
  }
  const chosen = String(window.getSelection()); // text in a row can be selected
  if (row.classList.contains("suspect") && !event.target.closest("button, input, select") && !chosen) toggleCard(i);
}

function drawTheme() {
  const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
  const say = () => {
    byId("theme").textContent = dark() ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", `${byId("theme").textContent} colours`);
  };
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("trimlearn-theme", document.documentElement.dataset.theme);
    } catch {
      // It lasts as long as the page.
    }
    say();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
}

function drawContents(parts) {
  const links = [["suspects", "Suspects"], ...parts.map((part) => [part.id, part.querySelector("h2").textContent])];
  byId("contents").replaceChildren(...links.map(([id, title]) => make("li", {}, make("a", { href: `#${id}` }, title))));
}

// A section that cannot be drawn says so, and takes no other with it.
function attempt(build) {
  try {
    return build();
  } catch (problem) {
    return section(build.name, "Not drawn", make("p", { class: "notice" }, `This part failed: ${problem.message}`));
  }
}

function start() {
  drawTheme();
  drawCounts();
  const parts = [gallery, chartsSection, columnsSection, modelsSection, notesSection].map(attempt).filter(Boolean);
  byId("sections").replaceWith(...parts);
  drawContents(parts);
  drawAbout();
  byId("suspects-none").hidden = suspects.length > 0;
  byId("review").hidden = suspects.length === 0;
  if (!suspects.length) return;
  decisions.load();
  drawBar();
  drawFilters();
  drawHeads();
  drawBulk();
  drawKeys();
  refresh();
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("rows").addEventListener("click", onPress);
  document.addEventListener("keydown", onKey);
  window.addEventListener("storage", (event) => {
    if (event.key !== decisions.key) return; // another tab has decided
    decisions.load();
    refresh({ keepPage: true });
  });
  window.addEventListener("beforeunload", (event) => {
    if (!decisions.lasting && decisions.unsaved && decisions.rows.size) event.preventDefault();
  });
}

start();
