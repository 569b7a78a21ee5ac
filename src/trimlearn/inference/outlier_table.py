"""The table of examples, worst first: columns of arrays, no pandas needed, a DataFrame where one is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimlearn._utils.text import grid, markdown

SHOWN = 20  # rows that are printed: they fit on a screen of 24 lines, the least there are


@final
class OutlierTable:
    """A table with one row per example, worst first; each column is a NumPy array that cannot be written to.

    ``table["score"]`` or ``table.score`` is a column, ``table[0]`` a row as a dict, ``table[:5]``, ``table.head()`` and
    ``table[table["outlier"]]`` are tables; iteration goes over the rows. It pickles, prints, and shows as HTML in a
    notebook. `to_pandas` makes a DataFrame, `to_dict` lists.

    Parameters
    ----------
    columns : mapping from str to array-like of shape (n,)
        The columns by name, one entry per row each.

    Examples
    --------
    >>> table = OutlierTable({"row": np.array([7, 2]), "score": np.array([9.25, 0.1]), "kind": np.array(["odd", "ok"])})
    >>> table
    row  score  kind
      7   9.25   odd
      2    0.1    ok
    >>> table["score"], table[0]["row"], len(table), table.columns
    (array([9.25, 0.1 ]), 7, 2, ('row', 'score', 'kind'))
    >>> [row["kind"] for row in table[table.score > 1]]
    ['odd']
    """

    __slots__ = ("_columns",)
    _columns: dict[str, NDArray[Any]]

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        kept = {str(name): _column(values) for name, values in columns.items()}
        lengths = {len(values) for values in kept.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns must have one entry per row each, got lengths {sorted(lengths)}.")
        self._columns = kept

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return next((len(values) for values in self._columns.values()), 0)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._columns:
                raise KeyError(f"no column {key!r}; there are {', '.join(self.columns)}.")
            return self._columns[key]
        if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
            if not -len(self) <= key < len(self):
                raise IndexError(f"row {key} of a table of {len(self)} rows.")
            return {name: _plain(values[key]) for name, values in self._columns.items()}
        return self.chosen(key if isinstance(key, slice) else np.asarray(key))

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_") or name not in self._columns:  # "_columns" itself, while unpickling, is not there yet
            raise AttributeError(f"OutlierTable has neither a method nor a column {name!r}.")
        return self._columns[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.columns]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def chosen(self, rows: slice | NDArray[Any]) -> OutlierTable:
        """The table of some rows: a slice, their numbers, or a mask."""
        return OutlierTable({name: values[rows] for name, values in self._columns.items()})

    def head(self, n: int = 5) -> OutlierTable:
        """The n worst rows; a negative n: all but the |n| best."""
        return self.chosen(slice(n))

    def to_dict(self) -> dict[str, list[Any]]:
        """A list for every column, of Python's own types."""
        return {name: values.tolist() for name, values in self._columns.items()}

    def to_pandas(self) -> Any:
        """A DataFrame of the same columns."""
        return data_frame({name: values.copy() for name, values in self._columns.items()}, "use to_dict()")

    def to_markdown(self, n: int = SHOWN) -> str:
        """The n worst rows in Markdown."""
        return "\n".join(markdown(self._cells(n)))

    def __repr__(self) -> str:
        left = [j for j, name in enumerate(self.columns) if name == "features"]
        lines = grid(self._cells(SHOWN), left) if self._columns else ["an empty table"]
        return "\n".join([*lines, *self._rest()])

    def _repr_html_(self) -> str:
        head, *body = [[escape(cell) for cell in line] for line in self._cells(SHOWN)]
        lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in body]
        names = "<tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"
        rest = "".join(f"<p>{line}</p>" for line in self._rest())
        return f"<table><thead>{names}</thead><tbody>{''.join(lines)}</tbody></table>{rest}"

    def _cells(self, n: int) -> list[list[str]]:
        """The names, and the n worst rows as text."""
        shown = [[written(value) for value in values[:n]] for values in self._columns.values()]
        return [list(self.columns), *map(list, zip(*shown, strict=True))]

    def _rest(self) -> list[str]:
        return [f"({len(self) - SHOWN} more)"] if len(self) > SHOWN else []

    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return self._columns

    def __setstate__(self, columns: dict[str, NDArray[Any]]) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}


def _column(values: ArrayLike) -> NDArray[Any]:
    """A one-dimensional view that cannot be written to. Tuples, the names of a MultiIndex, stay whole."""
    if isinstance(values, (list, tuple)) and any(isinstance(value, tuple) for value in values):
        column = np.empty(len(values), dtype=object)
        column[:] = values
    else:
        column = np.asarray(values).view()
    if column.ndim != 1:
        raise ValueError(f"a column must be one-dimensional, got shape {column.shape}.")
    column.flags.writeable = False
    return column


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python object it stands for; dates stay as they are, Python's are less fine."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def written(value: Any) -> str:
    """A value as a table shows it.

    >>> written(np.float64(0.123456)), written(("UK", 7)), written(np.datetime64("2020-01-31T00:00:00"))
    ('0.123', 'UK / 7', '2020-01-31')
    """
    if isinstance(value, (float, np.floating)):
        return f"{value:.3g}"
    if isinstance(value, tuple):  # a row of a MultiIndex
        return " / ".join(map(written, value))
    if isinstance(value, np.datetime64):
        return str(value).removesuffix(".000000000").removesuffix(".000000").removesuffix("T00:00:00").replace("T", " ")
    return str(value)


def data_frame(columns: Mapping[str, Any], instead: str, names: tuple[str, ...] | None = None) -> Any:
    """A DataFrame of these columns, its rows named or numbered; pandas is imported only now.

    ``instead``: what to do without pandas, the end of the sentence that is raised where it is not installed.
    """
    if find_spec("pandas") is None:
        raise ImportError(f"a DataFrame needs pandas, which is not installed: pip install pandas, or {instead}.")
    pandas = import_module("pandas")
    return pandas.DataFrame(columns, index=None if names is None else pandas.Index(names, name="term"))
