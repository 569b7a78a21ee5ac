"""Columns as a pandas DataFrame, where pandas is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["data_frame"]


def data_frame(columns: Mapping[str, Any], instead: str, names: tuple[str, ...] | None = None) -> Any:
    """A DataFrame of these columns, its rows named or numbered; pandas is imported only now.

    ``instead``: what to do without pandas, the end of the sentence that is raised where it is not installed.
    """
    if find_spec("pandas") is None:
        raise ImportError(f"a DataFrame needs pandas, which is not installed: pip install pandas, or {instead}.")
    pandas = import_module("pandas")
    return pandas.DataFrame(columns, index=None if names is None else pandas.Index(names, name="term"))
