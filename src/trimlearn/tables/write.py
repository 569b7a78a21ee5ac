"""Tables written as CSV that spreadsheets open without running anything."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from trimlearn._utils.files import replacing
from trimlearn.tables.cells import letters
from trimlearn.tables.table import arrow

# What spreadsheets take for the start of a formula (OWASP, CSV Injection), also after spaces and quotation marks;
# full-width signs are taken for the plain ones.
FORMULA = re.compile(r"""^[\s"']*[=+\-@\t\r\n＝＋－＠]|^[\t\r\n]""")
NO_FORMULA = r"^(?:[0-9A-Za-z.£$€¥]|-[0-9]+(?:\.[0-9]*)?$|$)"  # cells that begin with a letter, plain numbers, no cell
# A number, which no spreadsheet runs: sign, currency, thousands, decimals, exponent, per cent; or a mere dash.
PLAIN = re.compile(r"\s*[-+]?[£$€¥]?(\d{1,3}(,\d{3})+|\d+([.,]\d*)?|[.,]\d+)([.,]\d+)?([eE][-+]?\d+)?\s*%?\s*|-+|\+")


def harmless(cell: str) -> str:
    """The cell with an apostrophe before it where a spreadsheet would take it for a formula.

    >>> harmless("=1+1"), harmless("-12.5"), harmless("+44 (0)20"), harmless("a=b")
    ("'=1+1", '-12.5', "'+44 (0)20", 'a=b')
    """
    return "'" + cell if FORMULA.match(cell) and not PLAIN.fullmatch(cell) else cell


def write_csv(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a DataFrame as CSV in UTF-8, without its index: whole or not at all.

    Cells and headings that a spreadsheet would run as a formula get an apostrophe in front; plain numbers stay as they
    are. Missing values become empty cells.

    Parameters
    ----------
    frame : DataFrame
        The table.
    path : str or path
        The file to write; one that is there is replaced when the new one is complete.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     write_csv(pd.DataFrame({"a": ["=cmd()", "x"], "b": [-1.5, None]}), path)
    ...     path.read_text()
    "a,b\\n'=cmd(),-1.5\\nx,\\n"
    """
    path = Path(path)
    if (lines := _joined(frame)) is not None:
        with replacing(path) as temporary, temporary.open("wb") as file:
            for part in lines:
                file.write(part)
        return
    safe = frame.copy(deep=False)
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if getattr(column.dtype, "kind", "O") not in "iufbMm":
            words = column.astype(object)
            different = {word: harmless(word) for word in words.unique() if isinstance(word, str)}
            if any(word != cell for word, cell in different.items()):
                safe.isetitem(j, [different.get(word, word) if isinstance(word, str) else word for word in words])
    safe.columns = [harmless(str(name)) for name in frame.columns]
    with replacing(path) as temporary:
        safe.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8", errors="replace")


def _joined(frame: Any) -> list[Any] | None:
    """The whole file, in parts, where all columns are words: by Arrow, ten times as fast as row by row. None for other
    columns."""
    if frame.shape[1] < 2 or any(str(dtype) not in ("str", "string") for dtype in frame.dtypes):
        return None  # a line of one empty cell needs quotation marks, which pandas knows
    pa = arrow()
    try:
        columns = [pa.array(frame.iloc[:, j], type=pa.large_string(), from_pandas=True) for j in range(frame.shape[1])]
        head = pa.array([harmless(str(name)) for name in frame.columns], type=pa.large_string())
    except (UnicodeEncodeError, pa.ArrowInvalid):  # half a surrogate pair, which no file can hold
        return None
    first = (",".join(_quoted(head).to_pylist()) + "\n").encode("utf-8")
    if not len(frame):
        return [first]
    columns = [_quoted(_harmless(pa.compute.fill_null(_flat(column), ""))) for column in columns]
    comma, end, nothing = (pa.scalar(text, type=pa.large_string()) for text in (",", "\n", ""))
    columns[-1] = pa.compute.binary_join_element_wise(columns[-1], nothing, end)
    lines = pa.compute.binary_join_element_wise(*columns, comma)
    return [first, letters(lines)]


def _flat(column: Any) -> Any:
    """A column that Arrow may hold in pieces, in one."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def _harmless(column: Any) -> Any:
    """`harmless` of each cell; those that begin with a letter or are plain numbers need not be looked at."""
    pa = arrow()
    looked_at = pa.compute.invert(pa.compute.match_substring_regex(column, NO_FORMULA))
    if not pa.compute.any(looked_at).as_py():
        return column
    safe = [harmless(cell) for cell in column.filter(looked_at).to_pylist()]
    return pa.compute.replace_with_mask(column, looked_at, pa.array(safe, type=pa.large_string()))


def _quoted(column: Any) -> Any:
    """Each cell in quotation marks where a comma, a mark or the end of a line is in it."""
    pa = arrow()
    needed = pa.compute.match_substring_regex(column, '[",\r\n]')
    if not pa.compute.any(needed).as_py():
        return column
    mark, nothing = (pa.scalar(text, type=pa.large_string()) for text in ('"', ""))
    doubled = pa.compute.replace_substring(column, pattern='"', replacement='""')
    marked = pa.compute.binary_join_element_wise(mark, doubled, mark, nothing)
    return pa.compute.if_else(needed, marked, column)
