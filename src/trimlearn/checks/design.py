"""Columns of a table as matrices that models take: one for linear models and one for trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np

from trimlearn._utils.arrays import Array, Floats
from trimlearn.checks.spread import median_and_deviation

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.tables.table import Table

LEAST_MEMBERS = 10  # rows that a coefficient needs of its own: Harrell, Regression Modeling Strategies
LEVELS = 20  # of a category in a linear model; a limit on its size, and on what a person reads
TREE_LEVELS = 250  # scikit-learn's boosting takes 255 at most; the others are one level together
REPEATS = 4  # rows per value on average from which on text is a category: fewer say nothing about the next row
# A positive column that spans a factor of this between its outer twentieths, and is not skewed to the left, is taken by
# its logarithm: for such amounts ratios count (Tukey 1977). Of a normal law without negative values it is 3 at most.
SPAN = 3.0
DAY = 86_400 * 10**9  # nanoseconds

How = Literal["number", "log", "missing", "level", "other", "codes", "date"]


@final
@dataclass(frozen=True)
class Feature:
    """One column of a matrix, and how it is made from a column of a table.

    Parameters
    ----------
    column : str
        The column of the table.
    how : str
        "number" or "log" (the value or its logarithm), "date" (days since 1970), "missing" (1 where there is no value),
        "level" (1 where it is ``levels[0]``), "other" (1 where it is none of ``levels``), "codes" (its place in
        ``levels``, after the last for any other value).
    levels : tuple of str
        Of a category.
    fill : float or None
        What stands where there is no value; None: NaN does.
    centre, scale : float
        Subtracted from the value, and what it is divided by then.
    reach : float or None
        The largest absolute entry of a number or date in the table that it was made for; None: not known.

    Examples
    --------
    >>> Feature("Price", "log", fill=10.0, centre=9.5).name
    'log Price'
    """

    column: str
    how: How
    levels: tuple[str, ...] = ()
    fill: float | None = None
    centre: float = 0.0
    scale: float = 1.0
    reach: float | None = None

    @property
    def name(self) -> str:
        """What a reader is shown."""
        return {
            "log": f"log {self.column}",
            "missing": f"{self.column} is missing",
            "level": f"{self.column} = {self.levels[0] if self.levels else ''}",
            "other": f"{self.column} = other",
        }.get(self.how, self.column)

    def values(self, column: pd.Series) -> Floats:
        """Its entries, one per row."""
        if self.how == "missing":
            return np.asarray(column.isna(), dtype=np.float64)
        if self.how in ("level", "other", "codes"):
            codes = _codes(column, self.levels)
            if self.how == "codes":
                return np.asarray(np.where(codes < 0, np.nan, codes), dtype=np.float64)
            return np.asarray(codes == (0 if self.how == "level" else len(self.levels)), dtype=np.float64)
        raw = _numbers(column, self.how)
        values = raw if self.fill is None else np.where(np.isnan(raw), self.fill, raw)
        return np.asarray((values - self.centre) / self.scale)


@final
@dataclass(frozen=True)
class Design:
    """The features of a model; what is needed to make its matrix from another table with these columns.

    Examples
    --------
    >>> import pandas as pd
    >>> design = Design((Feature("age", "number", fill=40.0, centre=40.0, scale=10.0), Feature("sex", "level", ("f",))))
    >>> design.feature_names
    ('age', 'sex = f')
    >>> design.transform(pd.DataFrame({"age": [50.0, None], "sex": ["m", "f"]}))
    array([[1., 0.],
           [0., 1.]])
    >>> Design.from_json(design.to_json()) == design
    True
    """

    features: tuple[Feature, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One per column of the matrix."""
        return tuple(feature.name for feature in self.features)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are used."""
        return tuple(dict.fromkeys(feature.column for feature in self.features))

    @property
    def categorical(self) -> list[bool]:
        """Which features are codes, for boosting."""
        return [feature.how == "codes" for feature in self.features]

    def taking(self, kept: Sequence[int]) -> Design:
        """Of these features only."""
        return Design(tuple(self.features[k] for k in kept))

    def transform(self, frame: pd.DataFrame) -> Floats:
        """The matrix of these rows. Values of a category that were not seen are like other rare ones."""
        if lacking := [name for name in self.columns if name not in frame.columns]:
            raise ValueError(f"The table lacks columns that the model needs: {', '.join(lacking)}.")
        columns = {feature.column: frame[feature.column] for feature in self.features}
        for feature in self.features:
            if feature.how in ("level", "other", "codes") and columns[feature.column].dtype != "category":
                columns[feature.column] = frame[feature.column].astype("category")  # words are compared once
        matrix = np.empty((len(frame), len(self.features)))
        for j, feature in enumerate(self.features):
            matrix[:, j] = feature.values(columns[feature.column])
        return matrix

    def to_json(self) -> dict[str, Any]:
        """All of it, for a file."""
        return {"features": [{**asdict(feature), "levels": list(feature.levels)} for feature in self.features]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        known = {field.name for field in fields(Feature)}
        entries = [{key: value for key, value in entry.items() if key in known} for entry in document["features"]]
        return cls(tuple(Feature(**{**entry, "levels": tuple(entry.get("levels", ()))}) for entry in entries))


def linear_design(table: Table, frame: pd.DataFrame, exclude: Sequence[str] = (), logs: bool = True) -> Design:
    """For linear models: medians and flags where values are missing, a 0/1 column per level of a category.

    The most frequent level of a category is what the others are compared with; rare ones are one level together. A
    positive column that spans magnitudes is taken by its logarithm, unless ``logs`` says otherwise.
    """
    numbers, dates, categories = _usable(table, frame, exclude)
    features: list[Feature] = []
    flagged: list[Array] = []
    for name in [*numbers, *dates]:
        how: How = "date" if name in dates else "log" if logs and _is_skewed(frame[name]) else "number"
        if (feature := _standardised(frame[name], name, how)) is not None:
            features.append(feature)
        missing = frame[name].isna().to_numpy()
        enough = LEAST_MEMBERS <= missing.sum() <= len(missing) - LEAST_MEMBERS
        if enough and not any(np.array_equal(missing, other) for other in flagged):  # the same flag twice is singular
            features.append(Feature(name, "missing"))
            flagged.append(missing)
    for name in categories:
        features += _levels(frame[name], name)
    return Design(tuple(features))


def tree_design(table: Table, frame: pd.DataFrame, exclude: Sequence[str] = ()) -> Design:
    """For boosting: numbers as they are, NaN where there is none, categories as codes."""
    numbers, dates, categories = _usable(table, frame, exclude)
    features = [Feature(name, "number") for name in numbers] + [Feature(name, "date") for name in dates]
    for name in categories:
        features.append(Feature(name, "codes", tuple(map(str, _counts(frame[name]).index[:TREE_LEVELS]))))
    return Design(tuple(features))


def _usable(table: Table, frame: pd.DataFrame, exclude: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Numbers, dates and categories that take at least two values."""
    varied = {name for name in frame.columns if name not in exclude and frame[name].nunique() > 1}
    numbers, dates = ([name for name in table.of_kind(kind) if name in varied] for kind in ("number", "date"))
    texts = [name for name in table.of_kind("text") if name in varied]
    repeated = [name for name in texts if frame[name].count() >= REPEATS * frame[name].nunique()]
    return numbers, dates, [name for name in table.of_kind("category") if name in varied] + repeated


def _standardised(column: pd.Series, name: str, how: How) -> Feature | None:
    values = _numbers(column, how)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return None
    centre, scale = median_and_deviation(values)
    if not scale > 0:
        return None
    reach = float(np.abs(values - centre).max()) / scale
    return Feature(name, how, fill=centre, centre=centre, scale=scale, reach=reach)


def _is_skewed(column: pd.Series) -> bool:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = values[np.isfinite(values)]
    if len(values) < LEAST_MEMBERS or values.min() <= 0:
        return False
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return bool(high > SPAN * low and high - middle > middle - low)


def _levels(column: pd.Series, name: str) -> list[Feature]:
    counts = _counts(column)
    kept = [str(level) for level in counts.index[counts >= LEAST_MEMBERS][:LEVELS]]
    features = [Feature(name, "level", (level,)) for level in kept[1:]]
    if kept and counts.iloc[len(kept) :].sum() >= LEAST_MEMBERS:
        features.append(Feature(name, "other", tuple(kept)))
    if LEAST_MEMBERS <= column.isna().sum() <= len(column) - LEAST_MEMBERS:
        features.append(Feature(name, "missing"))
    return features


def _counts(column: pd.Series) -> pd.Series:
    """How often each value occurs, the most frequent first, ties by name: the order of rows must not matter."""
    counts = column.value_counts(dropna=True).sort_index()
    return counts.sort_values(ascending=False, kind="stable")


def _codes(column: pd.Series, levels: Sequence[str]) -> Array:
    """The place of each value in levels, their number where it is none of them, −1 where there is none."""
    import pandas as pd

    values = column.astype("category").cat
    places = pd.Index(levels, dtype=object).get_indexer(values.categories.astype(object))
    places = np.append(np.where(places < 0, len(levels), places), -1)  # the code of a missing value is −1: the last
    return np.asarray(places[values.codes.to_numpy()])


def _numbers(column: pd.Series, how: How) -> Floats:
    """Numbers, their logarithms or days, NaN where there is none."""
    if how == "date":
        import pandas as pd

        days = pd.to_datetime(column).astype("datetime64[ns]").astype("int64").to_numpy() / DAY
        return np.where(column.isna().to_numpy(), np.nan, days)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.where(np.isfinite(values), values, np.nan)  # an infinite cell tells no more than an empty one
    if how == "log":
        positive = values > 0
        return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)
    return np.asarray(values)
