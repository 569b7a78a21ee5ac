"""report: docs/performance.md from the JSON that the benchmarks wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, TARGET_COLUMNS, Cell, load, target_rows, text_of

__all__ = ["write"]

PAGE = ROOT / "docs" / "performance.md"

HEAD = """# How fast

*Written by `python -m benchmarks report` from `benchmarks/results/*.json`; change `benchmarks/report.py`, not this page.*

Every figure is measured, on the machine named beside it, and every ratio is taken inside one run. A target that is
not met says so. A pass is n residuals evaluated, as in `Solution.passes`. To read the figures again:

    python -m benchmarks floor      # a few seconds: what a step costs beside the matrix products
    python -m benchmarks rates      # some ten minutes: passes to an objective, against the rivals
    python -m benchmarks growth     # some five minutes: how the work grows with n
    python -m benchmarks small      # seconds: a small problem, and the import
    python -m benchmarks report     # this page

`floor` and `rates` read MNIST from `--data`, `$TRIMLEARN_DATA` or ../shared/data. `--quick` tries each in a second, on
small data. Let nothing else run on the machine: BLAS threads that wait for a busy core make everything several times
slower, and not evenly.
"""

TEXTS = {
    "floor": """## The floor: what a step costs

Multinomial regression on MNIST, all weights positive, float32, b = ⌈n^(2/3)⌉. No method can do without the two products
V·X and Vᵀ·R; one pass of x-steps and one w-step are measured in units of them. Reference and task alternate, and each
repetition gives a ratio.

What limits it: an x-step must gather its rows (b·p numbers from all over V), which a full product need not, and NumPy
gathers with one thread; then come softmax, the sort that finds rows drawn twice, and the draws. A w-step adds softmax and
a partition to the products. Its chunks and the order Rᵀ·V, in which V is read along its rows, make up for that.
""",
    "rates": """## The rates: passes to an objective

The paper's Figure 2: MNIST with a share of the labels shifted by one, 10 points more trimmed than are wrong, λ = 0.01, and
all methods from w = h/n, x = 0; only the continuation starts elsewhere. Rivals, and SMART's own γ by hand, are
the best of a grid (by F at the end), auto is not tuned and stands for each seed. "svrg needs": passes until svrg, auto
has shown the F of that row or less, the unluckier seed's; SMART looks at F at w-steps only, and what it reaches between two
of them counts at the second. "F after 60 passes" is interpolated in log F between the looks around 60.
Auto is compared with γ by hand at the larger of their two final objectives, which both reach.

What limits it: the first look comes after the start's own pass and n^(1/3) iterations more, so that no ratio can be
much below 3 passes / 60. Local minima differ: a lower F is not a better model (with this λ the kept rows become
separable), which is why accuracy and detection stand beside it.
""",
    "growth": """## The growth: work as a function of n

Trimmed logistic regression, one distribution, 20 features with a condition number of about 1,100, float32, from w = h/n, x = 0, τ = ∞,
no continuation; gradient evaluations (all of them: curvature probes count) until a w-step sees
‖∇ₓF(w, x)‖ and stationarity_w below fixed levels. The theory says n^(2/3) for SMART and √n for PAGE while n^(1/3), the
iterations between two w-steps, is small beside all iterations; every full-gradient method pays n an iteration.

What limits it: the first evaluation, the last one, and the wait for a w-step cost n each, so that the exponent creeps
towards 1 where few w-steps are needed: a loose tolerance, or a momentum that needs fewer iterations than n^(1/3) times a few.
""",
    "small": """## Small problems

Trimmed PCA of the US Judges (43 × 12) by `solve` as it comes, to the best F known; and what `import trimlearn` adds to
`import sklearn` in a fresh process.
""",
}


def write(results: Path, page: Path = PAGE) -> Path:
    """Write the page; a benchmark that has not been run is named as missing."""
    sections = [HEAD]
    for name, text in TEXTS.items():
        path = results / f"{name}.json"
        sections.append(text + "\n" + (_section(load(path)) if path.exists() else f"Not run yet: no {path.name}.\n"))
    page.write_text("\n".join(sections), encoding="utf-8")
    return page


def _section(found: dict[str, Any]) -> str:
    blocks = [_machine(found["machine"]), _markdown("", TARGET_COLUMNS, target_rows(found["targets"]))]
    blocks += [_markdown(table["title"], table["columns"], table["rows"]) for table in found["tables"]]
    settings = ", ".join(f"{key} = {value}" for key, value in found["settings"].items())
    return "\n".join([*blocks, f"Settings: {settings}.\n"])


def _machine(found: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    load = found["load_before"]
    busy = "" if load is None else f" Load before the run: {load:.2f}{' (others were at work)' if load > 0.5 else ''}."
    return f"Read on {found['cpu']}, {found['cores']} cores; {found['system']}; {found['blas']}; {versions}.{busy}\n"


def _markdown(title: str, columns: list[str], rows: list[list[Cell]]) -> str:
    lines = [f"**{title}**", ""] if title else []
    lines += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(text_of(value) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
