"""report: docs/performance.md from the JSON that the benchmarks wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, TARGET_COLUMNS, Cell, load, target_rows, text_of
from trimlearn._utils.text import markdown

__all__ = ["write"]

PAGE = ROOT / "docs" / "performance.md"

HEAD = """# How fast

*Written by `python -m benchmarks report` from benchmarks/results/; change benchmarks/report.py, not this page.*

Every figure is measured, on the machine named beside it, and every ratio is taken inside one run. A target that is
not met says so. A pass is n residuals evaluated, as in `Solution.passes`. To read the figures again:

    python -m benchmarks floor      # three minutes: what a step costs beside the matrix products
    python -m benchmarks cores      # a minute: the same on one thread, two, four, … up to all cores
    python -m benchmarks gpu        # two minutes on a CUDA device: the same fits there
    python -m benchmarks rates      # some fifteen minutes: passes to an objective, against the rivals
    python -m benchmarks growth     # some four minutes: how the work grows with n
    python -m benchmarks small      # seconds: a small problem, and the import
    python -m benchmarks peers      # some half an hour: the estimators beside what people use today
    python -m benchmarks large      # minutes: trimmed PCA of a memory map
    python -m benchmarks battery    # some ten minutes: how close svrg() comes, untuned, on all kinds of problems
    python -m benchmarks trust      # more than half an hour: never silently worse than the plain model?
    python -m benchmarks dirty      # more than five minutes: are wrong targets found in tables full of other errors?
    python -m benchmarks torch      # some seven minutes on a GPU, half an hour without: networks on wrong labels
    python -m benchmarks scale      # two minutes, 7 GB of disk: files larger than memory, and Dask's overhead
    python -m benchmarks walk       # seconds: how many files and functions a fit visits
    python -m benchmarks report     # this page

`floor`, `cores`, `gpu`, `rates`, `peers` and `trust` read MNIST from `--data`, `$TRIMLEARN_DATA` or ../shared/data;
`peers` reads the classics of robust statistics there as well, `trust` the tables of tabular/, `dirty` one of
regression/. `--quick` tries each of them in seconds, on small data; `--parts` runs some parts of `peers` or of `trust`.
Let nothing else run on the machine: BLAS threads that wait for a busy core make all of it several times slower, and not
evenly. Counts of passes and of gradients do not depend on that.
"""

TEXTS = {
    "floor": """## The floor: what a step costs

Multinomial regression on MNIST, all weights positive, float32, b = ⌈n^(2/3)⌉. No method can do without the two
products V·X and Vᵀ·R; one pass of x-steps and one w-step are measured in units of them. Reference and task alternate,
every repetition gives one ratio, and the median of the ratios is judged, for the draws included.

What limits it:

- A row is read once: its prediction, its residual and its part of the gradient are found while it is in the cache, by
  code that numba has compiled (`trimlearn.kernels`), where the two products read V twice. All x-steps between two
  w-steps are one compiled loop, draws and prox included (`trimlearn.engines.stretch`), so that no thread waits for the
  interpreter. On 16 cores of another machine x-steps took 1.6 to 1.8 of the products, and a w-step 1.0 to 1.2, while
  threads still wrote to one another's cache lines: two threads whose sums lie side by side took 1.1 to 1.5 times as
  long for it. `python -m benchmarks cores` says what they take now.
- "rows drawn before" are steps taken one by one, as all are where numba is missing or the penalty has no compiled prox:
  a few dozen NumPy calls each. saga's steps are of that kind too where examples have weights; rows drawn twice are
  read again.
- A w-step needs no second read but for the rows whose weight has changed. The curvature probe of `step="auto"` is a
  handful of products with n^(2/3) rows.
- The loop keeps partial sums for each piece of a step, which is what the memory is above what was allowed.
- CSR: the K numbers of an entry are one vector, which halved a pass with K = 10.
- Binary labels: 22 of 29 passes are the continuation's, and a row of 50 numbers that is drawn costs more than one read
  in order.
""",
    "cores": """## Cores: what more threads are good for

The steps of the floor on one thread, two, four, … up to all cores, with h = 0.7 n. "Without rows" is a pass of x-steps
in which all weights are 0: draws, the move of x, the sums over pieces, and the threads' waiting for one another.
"By Amdahl's law": that, and the rest of what one thread takes divided by the threads. "Weights alone": the h smallest
losses, and the sums that follow.
""",
    "gpu": """## On a GPU

Fits whose rows lie on a CUDA device (docs/gpu.md). The first run of each, which compiles the kernels it needs, is shown
apart; "this process" is the processor of the same machine. "One read" is the time in which a copy on the device reads
and writes as many bytes as V has.

What limits it:

- First runs of this table found their kernels compiled, on disk; without, the first fit took 8.5 s.
- MNIST: under half of the time the device is busy, 24 µs with an x-step, whose two kernels wait for one another and for
  memory rather than for arithmetic; the rest is Python between them, w-steps and the curvature probe most of it.
- The estimator: its fits take little of that time. Labels are judged by a forest and by nearest neighbours, and the
  noise model is fitted, on the processor.
- Large data: all losses, residuals and the sum over what counts take 1.18 reads, where copies alone take 0.96 and
  those of single rows from everywhere 1.01. An x-step takes 31 µs, and its 36,000 rows need 13. All steps between two
  w-steps are one launch, and rows of the next step are copied while x moves, as many as fit into shared memory. What
  is left, of one step: 2 µs until the model is there, some 17 for four or five tiles, 5 until sums are written, 3
  until all have come, 2 to add them up, 2 to move. Asking for rows earlier, into the second-level cache, made that
  slower, as all else then waits for memory; a deeper look ahead at duals and labels changed nothing. Moments of the
  columns and the search for the smallest losses are a tenth of all, Python at w-steps a seventh.
- This run was on a slower host than most. On one machine, in turn, before all steps were one launch and after: 0.19 and
  0.17 s, then 0.16 and 0.13 s, for the first table; 2.77 and 2.82, then 2.44 and 2.33 reads.
""",
    "rates": """## The rates: passes to an objective

The paper's Figure 2: MNIST with a share of the labels shifted by one, ten points more trimmed than are wrong,
λ = 0.01, and all methods from w = h/n, x = 0; only the continuation starts elsewhere. The rivals, and SMART's own γ by
hand, are the best of a grid, by F at the end; where the best lies at an end of its grid, the table says so. auto is not
tuned, and has a row for each seed.

"F after 60 passes" is interpolated, in log F, between the two looks at F around 60. "svrg needs": passes until svrg
with auto has shown the F of that row or less, the unluckier seed's; SMART looks at F at w-steps only, and what it
reaches between two of them counts at the second. auto and γ by hand are compared at the larger of their two final
objectives, which both reach.

What limits it:

- The first look comes after the evaluation at the start, the curvature probe and n^(1/3) iterations: three passes,
  on average. PALM's final F is passed at the second or third look.
- Local minima differ, and a lower F is not a better model (with this λ the kept rows become separable): hence the
  accuracy and the detection beside it. The continuation finds better minima than any cold start.
- "palm, momentum 0.9" has auto's metric, probe and momentum, which PALM has not: what is left of the difference is what
  the sampling is worth.
""",
    "growth": """## The growth: work as a function of n

Trimmed logistic regression, rows of one distribution, 20 features with a condition number of about 1,100, float32,
from w = h/n, x = 0, τ = ∞, no continuation: gradient evaluations, those of curvature probes included, until a w-step
sees ‖∇ₓF(w, x)‖ and stationarity_w below fixed levels. The theory says n^(2/3) for SMART and n^(1/2) for PAGE, as long
as the iterations between two w-steps, n^(1/3) and n^(1/2), are few beside all iterations; a method of full gradients
pays n for each.

What limits it: the evaluations at both ends and the wait for the last w-step cost n each, and w settles by w-steps,
not by iterations. Where that leaves only a dozen w-steps, their n dominates and the exponent creeps towards 1. So it
is for large n (the second column of exponents), and on "an easier problem", which has no target: correlation 0.9,
which needs a third of the iterations, and labels flipped at random instead of far outliers, so that w-steps go on
exchanging rows.

The verdict depends on the problem, and the problem was chosen after others had been tried: over several distributions
and tolerances the exponent of svrg with auto ran from 0.60 to 0.83. The one with a target was taken because it needs
more than 1,000 iterations at every n. The easier problem needs more than 100 as well, and misses 0.75. PALM has auto's
metric and momentum here, and one seed.
""",
    "small": """## Small problems

Trimmed PCA of the US Judges (43 × 12) by `solve` as it comes, to the best F known; and what `import trimlearn` adds to
`import sklearn` in a fresh process. The first call pays for imports that the package leaves until they are needed.
""",
    "peers": """## Peers: the estimators beside what people use today

Same data, same machine, same run, everything at default unless said otherwise; what is evaluated is evaluated outside
the clock. scikit-learn's LinearRegression, HuberRegressor, RANSACRegressor, TheilSenRegressor, MinCovDet and
LogisticRegression; statsmodels' RLM with Huber's and with Tukey's function; "three sigma": least squares, what is
beyond three standard deviations removed, and again until nothing is; cleanlab's CleanLearning around
LogisticRegression, three folds; ltsReg of R's robustbase. `pip install statsmodels cleanlab`, and Debian's r-base-core
and r-cran-robustbase, bring the optional ones; what is not there is listed as absent, and its targets are left out.

How to read it:

- *Classics.* The objective is the sum of the h smallest squared residuals of the trimmed fit, computed here from the
  coefficients. "Missed": rows of known_outliers.json not flagged; "extra": flagged, and named by nobody.
- *Breakdown.* Errors are those of coefficients and intercept together, and divided by the error of least squares on the
  clean rows. "Other basin": the trimmed fit keeps more bad rows than the clean fit does, and has the lower
  objective: then no search can be blamed, and the objective is what is judged, not the error. The clean fit's objective
  is what concentration steps reach from least squares on the clean rows.
- *Least trimmed squares.* ltsReg times itself inside R, around the one call, without its diagnosis of X (mcd = FALSE);
  R's start and the transfer of the data do not count. It has reweighted its fit by then, so "everything at default" is
  the like of it, and "the trimmed fit alone" the shorter task. R's BLAS is named above; "one thread" is for fairness.
- *Covariance.* MinCovDet flags nothing by itself: the 97.5 % quantile of χ² does.
- *Wrong labels.* CleanLearning's estimate is the share it flags. "At cleanlab's rate": our scores with the threshold
  that flags as many right labels as cleanlab did. MiB: anonymous memory beyond what was held before the fit.
""",
    "large": """## Large: trimmed PCA of a memory map

A fifth of the rows lies off the subspace. Memory is what the process holds of its own, looked at every 5 ms; pages of
the mapped file do not count, the system drops them when it likes. The figure includes what threads and BLAS allocate.
""",
    "battery": """## The battery: how close, untuned

`solve(problem, svrg())` at its default limits, on all losses and designs (scales, offsets, correlation 0.99, Cauchy
columns, n from 5 to 200,000, n < p) and with every regularizer. Beside it stands the least F known: the least of its
own, of `alternating()`, of the best of `palm` over steps of nine decades with concentration steps from there, and of
concentration steps from svrg's own end. "Above" is relative to that; where a fit is exact (F below a millionth of F at
the start) to that millionth.

How to read it: trimming makes F nonconvex, and two methods may end in two minima, each of them exact. "Above own basin"
tells a run that did not get to the bottom from one that got to the bottom of another valley: it compares with
concentration steps from where svrg ended. The headline is "above": against the best of all. Where rows are few beside
parameters (n = 5, n < p), where classes overlap, and where a penalty is not convex, a dozen starts find a better valley
now and then, and a user who needs the least F asks for `start="multistart"`.
""",
    "trust": """## Trust: right, or it says so

A default fit should not be worse than the plain model without a word, a ranking not worse than the simplest one, and a
status not better than the truth.

How to read it:

- *Labels.* The tables of tabular/ and four of scikit-learn's, 1,500 rows of each at most, standardised by the training
  part, three folds and three seeds. Labels of the training part are made wrong; those of the test part stay as they
  are. uniform: to any other class; pair: class k to k + 1 (with two classes that is uniform, and left out); one-way: a
  fifth of the largest class becomes the next one. "Plain" is LogisticRegression(max_iter=1000) on the same labels,
  "clean labels'" the same on labels that are right. A table's figure is the mean over its draws, ratios are ratios of
  means; means and the worst are those of the tables. What is said of 10–30 % holds for every kind of noise together,
  but for lists, where one-way is left out; a goal beside a target looks at each kind and level by itself.
- *Ranking.* AUROC of `outlier_scores_` for telling the wrong labels, beside 1 − p of the given label by plain models of
  five folds that have not seen it.
- *Lists.* `flag(fdr=0.1)` promises that a tenth of the list is innocent, at most. Innocents: by the truth, 0 where the
  list is empty. Findable: the wrong rows above the lowest cut of our own scores above which a tenth is innocent by the
  truth. A list that is longer than that counts as 1 of it, not more.
- *Probabilities.* Rows of all draws with wrong labels, uniform and pair, by the probability they were given.
- *TrimmedEstimator.* A few tables and one seed, since it fits dozens of models.
- *The middle group of three.* No label is wrong, but no line can part the classes.
- *Certificates.* False: said to have converged, though a stationarity measure is above tol, F is not finite, or F is
  more than 0.1 % above the least known: (a) a Newton solver stopped after 5, 6, … 59 passes; (b) svrg on columns far
  from 0, beside the least F for its own w; (c) svrg with a step so large that F overflows.
""",
    "dirty": """## Dirty tables: which targets are wrong?

What `trimlearn.check` says of a target in tables with a tenth of wrong labels and numbers and 5 % of wild cells,
nothing told. The rival is scikit-learn's boosting out of fold, by 1 − p of the given label or by the size of the
residual, and it sees the table without wild cells: what is left for it is the target alone.

How to read it:

- *Precision.* Of the shortest list, worst first, that holds 70 % of the wrong labels or 75 % of the wrong numbers.
- *Flagged.* The shares of wrong and of right targets with a probability above a half.
- *Right targets.* The same tables with wild cells only. Some labels and numbers of real tables are wrong or odd as they
  come, so that none flagged is not what to expect.
- *Probability.* Rows of all draws by the probability they were given. Constants of the judgement were chosen on other
  tables, of which a few are here too with other errors: 25 columns of labels, 33 of numbers. There numbers at 10 %
  were within 0.1 all together (given 0.72: 0.62 of 140 wrong); single tables may be off by more (TopGear's MPG in one
  draw: 0.83 given, 0.64 of 44 wrong). Labels were overrated where 4 % are wrong (0.29 given, 0.11 wrong) and underrated
  where 20 % are (0.49 given, 0.59 wrong).
""",
    "torch": """## Networks: wrong labels, `trim` beside plain training

Everything at default and the level unknown unless said otherwise (docs/torch_trim.md). Digits and seconds are those of
a GPU where one is named; `--parts … --out benchmarks/results` measures some parts again and leaves the others alone.

How to read it:

- *Digits.* Labels shifted by one. Every seed draws wrong labels, the network's weights and batches anew; targets are
  those of the worst.
- *Noises.* Noise and a network that no constant was chosen on: wished for, not required.
- *Tables.* Those of tabular/ and four of scikit-learn's, two thirds of at most 900 rows to train on, test labels right.
- *Seconds.* Beside a loop of Adam as people write it, as many epochs of the same batches.
- *A pass.* Value and gradient of a softmax by `TorchLoss`, in units of the core's own on NumPy, one thread.
""",
    "scale": """## Scale: files larger than memory, and Dask

Linear and logistic regression at default from Parquet files, each in a process of its own; then SMART on two Dask
workers (docs/scale.md, docs/dask.md).

How to read it:

- *Reading.* What pyarrow takes to read the files once, the median of three readings; a fit is judged by how many of
  these it takes, its copy of the rows included. MiB are what the process holds beside the system's cache of files, in
  which all of them lie. The rows of four files are made up, the other twelve are their copies.
- *Pass.* Over the copy: losses and gradient of all rows.
- *Dask.* An empty submit-and-gather beside a round of the engine; b is the engine's own choice for that round trip, and
  serves the pass in one process too.
- *The same fit.* From Parquet, a memory map and arrays of the same rows: linear regression.
""",
    "walk": """## The walk: how far a reader goes

Which files and functions of trimlearn a fit visits (Python functions; comprehensions and imports do not count), how
deep they call each other, and how often an estimator's file calls another's: each such call is a jump for who reads
along. "Where it is found" lists every file that must be opened to see how an idea is carried out, from
benchmarks/walk.py, which a test holds to the source. The counts do not depend on the machine.
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
    blocks = [*_machines(found), _markdown("", TARGET_COLUMNS, target_rows(found["targets"]))]
    blocks += [_markdown(table["title"], table["columns"], table["rows"]) for table in found["tables"]]
    settings = ", ".join(f"{key} = {value}" for key, value in found["settings"].items())
    return "\n".join([*blocks, f"Settings: {settings}.\n"])


def _machines(found: dict[str, Any]) -> list[str]:
    """The machine, or, where parts were read on several, those of each."""
    texts: dict[str, list[str]] = {}
    for part, machine in found.get("machines", {"": found["machine"]}).items():
        texts.setdefault(_machine(machine), []).append(part)
    return [text if len(texts) == 1 else f"*{', '.join(parts)}*: {text}" for text, parts in texts.items()]


def _machine(found: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    load = found["load_before"]
    busy = "" if load is None else f" Load before the run: {load:.2f}{' (others were at work)' if load > 0.5 else ''}."
    return f"Read on {found['cpu']}, {found['cores']} cores; {found['system']}; {found['blas']}; {versions}.{busy}\n"


def _markdown(title: str, columns: list[str], rows: list[list[Cell]]) -> str:
    lines = [f"**{title}**", ""] if title else []
    lines += markdown([columns, *[[text_of(value) for value in row] for row in rows]])
    return "\n".join(lines) + "\n"
