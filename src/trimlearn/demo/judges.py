"""US Judges: TrimmedPCA names the judges whom two components do not explain."""

from __future__ import annotations

from dataclasses import dataclass

from trimlearn import OutlierTable, TrimmedPCA
from trimlearn.datasets import NamedNumbers, load_judges

COMPONENTS = 2  # as in the paper's Figure 3


@dataclass(frozen=True)
class JudgesResult:
    """The ratings, the model, what it says about each judge, and whom it does not explain, worst first."""

    data: NamedNumbers
    model: TrimmedPCA
    table: OutlierTable
    outlying: tuple[str, ...]


def find_outlying_judges() -> JudgesResult:
    """Two components of the ratings; how many judges are out of line is for the model to find."""
    data = load_judges()
    model = TrimmedPCA(COMPONENTS, random_state=0).fit(data.data)
    table = model.outlier_table()
    outlying = tuple(data.names[row] for row in table["row"][table["outlier"]])
    return JudgesResult(data, model, table, outlying)
