"""Which targets of a table are wrong: a linear model and boosting are asked, and their opinions made one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from trimlearn._utils.arrays import Array, Flags, Floats
from trimlearn.checks.design import Design, linear_design, tree_design
from trimlearn.checks.doubtful import without_doubtful
from trimlearn.checks.errors import Writing
from trimlearn.checks.findings import ModelScore, TargetFindings, Task
from trimlearn.checks.heard import heard
from trimlearn.checks.names import Names
from trimlearn.checks.target_labels import judge_target_labels
from trimlearn.checks.target_learners import BOOSTED, Learners
from trimlearn.checks.target_linear import (
    LinearFits,
    fit_linear,
    linear_predictions,
    model_scores,
    names_classes,
    telling,
)
from trimlearn.checks.target_numbers import EVEN, expected_by_all, judge_target_numbers
from trimlearn.checks.target_rules import find_rule, follow_rule, say_copies
from trimlearn.checks.target_scale import TargetScale, choose_scale
from trimlearn.checks.target_task import Target, TargetJudgement, read_target, told_as_classes
from trimlearn.checks.threads import threads_for
from trimlearn.robust.regression.one_law import looks_skewed

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.tables.table import Table

ANY = 0.0  # share of doubted values from which on it is asked whether errors are skewed: five of them are enough
STRAYS = 0.5  # right numbers among all rows that would be as far off by the heaviest tails: fewer are worth a look
HIGH = 0.4  # share of wrong targets above which nobody can be sure which side is right: at a half there is no majority


def judge_target(
    table: Table,
    mended: pd.DataFrame,
    target: str,
    *,
    task: Task | None = None,
    pinned: Mapping[int, bool] = {},
    corrected: pd.DataFrame | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> TargetFindings:
    """Judge the target of every row that has one.

    Boosting, a forest and a linear model predict each target from the other columns, fitted on other rows, in repeated
    folds; their opinions are averaged, and a model of wrong targets turns them into one probability per row. Numbers
    that are probably wrong are left out, and the models asked again. The linear model's and boosting's own verdicts are
    given beside it.

    Parameters
    ----------
    table : Table
        As it was read.
    mended : DataFrame
        Its frame, wrong cells being NaN. The target is taken from ``table``.
    target : str
        The column to judge.
    task : {"regression", "count", "classification"}, optional
        What is asked. None: told from the column.
    pinned : dict of int to bool
        Rows of which a person has said that the target is wrong (True) or right (False).
    corrected : DataFrame, optional
        The frame with what was expected in the place of wrong cells: a number that goes with that is not wrong.
    seed : int
        Of folds and models.
    progress : callable, optional
        Is told what is being done.

    Returns
    -------
    TargetFindings
        One entry per row of the table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column, Table
    >>> x = np.linspace(0, 10, 60)
    >>> frame = pd.DataFrame({"x": x, "y": 3 * x + np.sin(7 * x)})
    >>> frame.loc[[7, 20, 41], "y"] = 29.0, -20.0, 50.0
    >>> columns = Column("x", "number"), Column("y", "number")
    >>> found = judge_target(Table(frame, frame.astype(str), columns, "lines", 0, ""), frame, "y")
    >>> np.flatnonzero(found.flagged)
    array([ 7, 20, 41])
    """
    tell = progress or (lambda sentence: None)
    asked = read_target(table, target, task, pinned)
    frame = without_doubtful(table, mended, target).iloc[asked.rows].reset_index(drop=True)
    trees, linear = tree_design(table, frame, [target]), linear_design(table, frame, [target])
    if not linear.features or not trees.features:
        raise ValueError(f"No other column of the table can predict {target!r}: all are empty, constant, text or ids.")
    unlogged = [] if asked.classes else [linear_design(table, frame, [target], logs=False)]
    lines = [_telling(design, frame, asked) for design in dict.fromkeys([linear, *unlogged])]
    if asked.may_name_classes and names_classes(lines[0][1], asked.y, seed):
        found = judge_target(
            table,
            mended,
            target,
            task="classification",
            pinned=pinned,
            corrected=corrected,
            seed=seed,
            progress=progress,
        )
        return replace(found, caveats=(told_as_classes(asked), *found.caveats))
    if (used := len(lines[0][0].features)) < len(linear.features):
        said = f"The linear model uses the {used} features that tell most, of {len(linear.features):,}."
        asked = replace(asked, caveats=(*asked.caveats, said))
    numbers = {name: mended[name].to_numpy(dtype=np.float64) for name in table.of_kind("number") if name != target}
    if asked.classes:
        values = {name: frame[name].array for name in trees.columns}
        asked = replace(asked, caveats=(*asked.caveats, *say_copies(asked.y, values, target)))
    supposed = None if corrected is None else corrected.iloc[asked.rows]
    judge = _Judge(asked, lines, (trees, trees.transform(frame)), supposed, Names(table).place, seed, tell)
    with threadpool_limits(threads_for(judge.trees[1].size * max(1, len(asked.classes))), user_api="openmp"):
        found = judge.findings(len(table.frame))
    y = table.frame[target].to_numpy(dtype=np.float64) if not asked.classes else np.zeros(0)
    rule = find_rule(np.where(np.isfinite(y), y, np.nan), numbers) if len(y) and numbers else None
    settled = np.isin(np.arange(len(table.frame)), list(pinned))
    return found if rule is None else follow_rule(found, y, rule, settled)


def _telling(design: Design, frame: pd.DataFrame, asked: Target) -> tuple[Design, Floats]:
    """The design and its matrix, of the features that tell most where they are many."""
    X = design.transform(frame)
    kept = telling(X, asked)
    return design.taking(kept), X[:, kept]


@final
@dataclass
class _Judge:
    """One target, and each design with its matrix; what must be told gathers in ``caveats``.

    ``lines``: the designs that a linear model may have; which one it has is chosen with the scale of the target.
    ``corrected``: the rows with what was expected in cells that were taken out; those that are doubted keep what was
    written. ``place``: where the user finds a row of the table.
    """

    target: Target
    lines: list[tuple[Design, Floats]]
    trees: tuple[Design, Floats]
    corrected: pd.DataFrame | None
    place: Callable[[int], str]
    seed: int
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self.caveats = list(self.target.caveats)
        self.scale = TargetScale("identity", 0.0, 1.0)
        self.line = self.lines[0]

    def findings(self, n: int) -> TargetFindings:
        """For all n rows of the table."""
        self.tell("models judge targets that they have not seen")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # who is chosen is fitted again, and heard then
            self._choose_scale()
        with heard(self.caveats, "the models that judge the target"):
            learners = self._learners(self.scale.to(self.target.y) if self.numeric else self.target.y)
            first = learners.opinions(self._trusted(np.zeros(len(self.target.y), dtype=bool)))
            judged = self._judged(first)
            kept = self._trusted(judged.flagged)
            self.tell("the same, without targets that are probably wrong")
            second, asked = learners.again(kept, first)
            opinions = second if self.numeric else first
            judged = self._judged(opinions) if self.numeric and opinions is not first else judged
            judged = self._excused(judged, opinions, learners)
            by_boosting = self._verdict(opinions[0], judged)
        self.tell("plain and trimmed linear model")
        with heard(self.caveats, "the trimmed linear model"):
            names, level = self.line[0].feature_names, judged.contamination
            linear = fit_linear(self.line[1], self._linear_y, self.target, names, level, self.seed)
        if not self.numeric:
            linear = replace(linear, flagged=self._verdict(first[1], judged))
        flagged = (judged.flagged | self.target.pinned_wrong) & ~self.target.pinned_right
        self._say(judged, linear, learners.sampled)
        found = self._spread(n, judged, flagged, by_boosting, linear)
        return replace(
            found,
            scores=self._scores(flagged, linear, np.flatnonzero(asked), first[0], second[0]),
            caveats=tuple(dict.fromkeys(self.caveats)),
            fits={
                "linear": linear.trimmed,
                "plain": linear.plain,
                "design": self.line[0],
                "link": self._link,
                "rows": self.target.rows[linear.rows],
                "history": list(linear.trimmed.history_),
                "predicted": self._predicted(n, opinions),
            },
        )

    @property
    def numeric(self) -> bool:
        return self.target.task != "classification"

    @property
    def _link(self) -> str:
        """What is linear in the features: the value, its logarithm, or the log-odds of the classes."""
        if not self.numeric:
            return "logit"
        return "log" if self.scale.link in ("log", "root") else "identity"

    @property
    def _linear_y(self) -> Array:
        """The target on the scale on which it is linear."""
        return np.log(self.target.y) if self.scale.link == "log" else self.target.y

    def _learners(self, y: Array) -> Learners:
        design, matrix = self.trees
        return Learners(self.line[1], matrix, design.categorical, y, len(self.target.classes), self.seed)

    def _choose_scale(self) -> None:
        if not self.numeric:
            return
        everybody = np.ones(len(self.target.y), dtype=bool)
        learners = [lambda z, X=X: replace(self._learners(z), linear=X).line(everybody) for _, X in self.lines]
        self.target, self.scale, chosen = choose_scale(self.target, learners)
        self.line = self.lines[chosen]
        if self.scale.link == "log":
            self.caveats.append(f"{self.target.name} is predicted by its logarithm, on which errors are more even.")

    def _trusted(self, flagged: Flags) -> Flags:
        """The rows that models learn from: those that are not flagged, or as a person has said."""
        kept: Flags = np.asarray((~flagged | self.target.pinned_right) & ~self.target.pinned_wrong)
        y = self.target.y
        if not self.numeric and np.bincount(y[kept], minlength=int(y.max()) + 1).min() < 2:
            return np.ones(len(kept), dtype=bool)  # two rows of every class are needed to learn it from
        return kept

    def _judged(self, opinions: list[Floats]) -> TargetJudgement:
        if self.numeric:
            y = self.scale.to(self.target.y)
            expected = expected_by_all(y, opinions)
            rounding = self.scale.half_steps(expected, Writing.of(self.target.y).step)
            return judge_target_numbers(y, expected, self.seed, self.line[1], rounding)
        return judge_target_labels(opinions, self.target.y)

    def _excused(self, judged: TargetJudgement, opinions: list[Floats], learners: Learners) -> TargetJudgement:
        """The judgement without numbers that are as expected once a wrong cell of their row is corrected: one error
        explains both."""
        if self.corrected is None or not self.numeric or not judged.flagged.any():
            return judged
        rows = np.flatnonzero(judged.flagged)
        linear, trees = (design.transform(self.corrected.iloc[rows]) for design in (self.line[0], self.trees[0]))
        mended = np.any(linear != self.line[1][rows], axis=1)
        if not mended.any():
            return judged
        boosting, line = learners.elsewhere(self._trusted(judged.flagged), linear[mended], trees[mended])
        again = [opinion.copy() for opinion in opinions]
        for k, opinion in enumerate(again):
            opinion[rows[mended]] = line if k == 1 else boosting
        found = self._judged(again)
        better = np.intersect1d(rows[mended], np.flatnonzero(found.probability < judged.probability))
        parts = {name: getattr(judged, name).copy() for name in ("probability", "score", "expected")}
        for name, values in parts.items():
            values[better] = getattr(found, name)[better]
        return replace(judged, **parts)

    def _verdict(self, opinion: Floats, judged: TargetJudgement) -> Flags:
        """What one model flags. Whether any label is wrong at all, all models have said together."""
        alone = self._judged([opinion])
        if self.numeric:
            return alone.flagged
        return np.asarray((alone.score > 0) & (judged.flagged.any()))

    def _scores(
        self, flagged: Flags, linear: LinearFits, rows: Array, plain: Floats, trimmed: Floats
    ) -> tuple[ModelScore, ...]:
        """Of both models; ``rows``: those that boosting was asked about. Predictions go back to the table's units."""
        t, plain, trimmed = self.target, plain[rows], trimmed[rows]
        by_line = linear_predictions(self.line[1], self._linear_y, t.task, linear, self.seed)
        if self.scale.link == "log":
            by_line = np.exp(by_line[0]), np.exp(by_line[1])
        if self.numeric:
            by_trees = self.scale.back(plain), self.scale.back(trimmed)
        else:
            by_trees = plain.argmax(axis=1), trimmed.argmax(axis=1)
        predicted = {"linear": (linear.rows, *by_line), "boosting": (rows, *by_trees)}
        return model_scores(t.y, t.task, ~flagged, predicted)

    def _predicted(self, n: int, opinions: list[Floats]) -> Floats:
        """What models expect that had not seen a row: numbers in the units of the table, or P(class)."""
        if self.numeric:
            return np.asarray(_placed(n, self.target.rows, self.scale.back(np.median(opinions, axis=0))))
        P = np.mean(np.exp(opinions), axis=0)
        return np.asarray(_placed(n, self.target.rows, P / P.sum(axis=1, keepdims=True)))

    def _say(self, judged: TargetJudgement, linear: LinearFits, sampled: bool) -> None:
        n = int(np.sum(~self.target.pinned_wrong))
        self.caveats += judged.caveats
        if judged.contamination > HIGH:
            self.caveats.append(
                f"About {judged.contamination:.0%} of {self.target.name} looks wrong: near a half, nobody can tell "
                "which side is right."
            )
        if self.numeric and looks_skewed(
            judged.score * np.sign(self.scale.to(self.target.y) - judged.expected), judged.flagged, ANY
        ):
            self.caveats.append(
                f"Nearly all doubted values of {self.target.name} lie on one side of what is expected, and one skewed "
                "law explains them about as well: its errors may be skewed rather than these values wrong."
            )
        if self.numeric and (farthest := self._farthest_right(judged)) is not None:
            self.caveats.append(farthest)
        if len(linear.rows) < n:
            boosting = f", and boosting to samples of {BOOSTED:,}," if sampled else ""
            self.caveats.append(
                f"The linear model was fitted to a sample of {len(linear.rows):,}{boosting} of {n:,} rows."
            )

    def _farthest_right(self, judged: TargetJudgement) -> str | None:
        """A sentence where numbers not called wrong are farther off than errors of the heaviest tails would be."""
        t, beyond = self.target, float(student.isf(STRAYS / 2 / len(self.target.y), min(EVEN)))
        far = np.flatnonzero((judged.score > beyond) & ~judged.flagged & ~t.pinned_right & ~t.pinned_wrong)
        if not len(far):
            return None
        one = far[np.argmax(judged.score[far])]
        others = f" So are {len(far) - 1} more." if len(far) > 1 else ""
        return (
            f"{t.name} is {t.y[one]:g} in {self.place(int(t.rows[one]))}, {judged.score[one]:.0f} times a usual error "
            f"from what is expected there ({self.scale.back(judged.expected)[one]:.3g}): it is not called wrong, as "
            f"such errors may have long tails, but look at it.{others}"
        )

    def _spread(
        self, n: int, judged: TargetJudgement, flagged: Flags, by_boosting: Flags, linear: LinearFits
    ) -> TargetFindings:
        t = self.target
        probability = np.where(t.pinned_right, 0.0, np.where(t.pinned_wrong, 1.0, judged.probability))
        if self.numeric:
            suggested = _placed(n, t.rows, self.scale.back(judged.expected))
        else:
            suggested = _placed(n, t.rows, np.array(t.classes, dtype=object)[judged.expected], None)
        return TargetFindings(
            name=t.name,
            task=t.task,
            classes=t.classes,
            probability=_placed(n, t.rows, probability),
            flagged=_placed(n, t.rows, flagged, False),
            score=_placed(n, t.rows, judged.score),
            suggested=suggested,
            by_linear=_placed(n, t.rows, linear.flagged, False),
            by_boosting=_placed(n, t.rows, by_boosting, False),
            contamination=judged.contamination,
            coefficients=linear.coefficients,
            noise_matrix=judged.noise_matrix,
        )


def _placed(n: int, rows: Array, values: Array, elsewhere: Any = np.nan) -> Array:
    """Values in their rows of the table."""
    out = np.full((n, *values.shape[1:]), elsewhere)
    out[rows] = values
    return out
