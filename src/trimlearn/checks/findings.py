"""What the parts of a check find, as plain data. Rows are numbered from 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

from numpy.typing import NDArray

from trimlearn._utils.arrays import Flags, Floats

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["regression", "count", "classification"]

# Targets are listed from this probability on, where any is more likely wrong than right: of seven such rows one is
# wrong, which is worth a look to who goes through a list (a choice). Only those beyond one half are called wrong.
DOUBTFUL = 0.15
# Of targets that nothing explains, those that are right all the same: hybrids among cars. Measured: with 0, of numbers
# given 0.96 a share of 0.90 is wrong, on 26 columns of 13 tables; with 0.05, of 0.92 it is 0.92. Of the labels that
# TopGear's other columns contradict, those given 0.90 are wrong in 0.83 with 0, those given 0.88 in 0.81 with 0.05.
RIGHT_ANYWAY = 0.05


@final
@dataclass(frozen=True)
class WrongCell:
    """A value that does not fit to the others in its row: a number, a date as text (2024-05-31), or a category."""

    row: int
    column: str
    value: float | str
    expected: float | str
    score: float  # (value − expected)/σ
    probability: float  # that it is wrong, calibrated
    error: str = ""  # "10 times too large", "sign", "digits swapped"; "" where no such rule explains it


@final
@dataclass(frozen=True)
class CellFindings:
    """All wrong cells, and the table with them set right."""

    cells: tuple[WrongCell, ...]
    mended: pd.DataFrame  # the table's frame; each wrong number or date is missing, and categories are spelt as usual
    typical: dict[str, str]  # column → the commonest error of its wrong cells, "" where there is none
    caveats: tuple[str, ...] = ()
    reckoned: tuple[str, ...] = ()  # columns that follow exactly from others: sums, products

    def corrected(self) -> pd.DataFrame:
        """The table with what was expected in the place of wrong numbers; of words and dates no such thing is known."""
        frame = self.mended.copy()
        for cell in self.cells:
            if frame[cell.column].dtype.kind == "f":
                frame.iat[cell.row, frame.columns.get_loc(cell.column)] = cell.expected
        return frame


@final
@dataclass(frozen=True)
class OddRow:
    """A row that is unlike all others as a whole, though no single cell of it is to blame."""

    row: int
    score: float
    probability: float
    columns: tuple[str, ...]  # those that contribute most


@final
@dataclass(frozen=True)
class RowFindings:
    """Rows judged as a whole."""

    odd: tuple[OddRow, ...]
    scores: Floats  # one per row, larger is worse; NaN for a row that was not judged
    threshold: float
    contamination: float
    caveats: tuple[str, ...] = ()
    fits: dict[str, Any] = field(default_factory=dict)  # the estimators, for charts: "pca", "covariance"


@final
@dataclass(frozen=True)
class DuplicateRows:
    """Rows that are the same, or nearly."""

    rows: tuple[int, ...]
    kind: Literal["exact", "near", "contradictory"]  # contradictory: the same but for the target
    differs: tuple[str, ...] = ()  # columns in which they are not the same


@final
@dataclass(frozen=True)
class ModelScore:
    """How well a model predicts rows that it has not seen."""

    model: str  # "linear", "boosting"
    fit: Literal["plain", "trimmed"]
    measure: str  # in words: "median absolute error", "share of labels predicted"
    value: float  # on rows that were not flagged, cross-validated
    better: Literal["lower", "higher"]


@final
@dataclass(frozen=True)
class TargetFindings:
    """The target, judged by two models. Arrays have one entry per row; rows without a target have NaN and False."""

    name: str
    task: Task
    classes: tuple[str, ...]  # of labels; () for numbers
    probability: Floats  # that the target is wrong, calibrated
    flagged: Flags  # what the report shows as wrong
    score: Floats  # larger is worse: of the opinion that decided
    suggested: NDArray[Any]  # float or str: what the models expect
    by_linear: Flags  # the linear model's verdict
    by_boosting: Flags
    contamination: float  # the estimated share of wrong targets
    scores: tuple[ModelScore, ...] = ()
    coefficients: tuple[dict[str, Any], ...] = ()  # name, plain, trimmed, low, high (95 % interval of the trimmed one)
    noise_matrix: Floats | None = None  # [k, j] = P(labelled j | of class k)
    caveats: tuple[str, ...] = ()
    fits: dict[str, Any] = field(default_factory=dict)  # the estimators and their design, for charts and model.json
