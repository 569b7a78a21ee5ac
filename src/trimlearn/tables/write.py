"""Tables written as CSV that spreadsheets open without running anything."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from trimlearn._utils.files import replacing

__all__ = ["harmless", "write_csv"]

# What spreadsheets take for the start of a formula (OWASP, CSV Injection), also after spaces and quotation marks;
# full-width signs are taken for the plain ones.
FORMULA = re.compile(r"""^[\s"']*[=+\-@\t\r\n＝＋－＠]|^[\t\r\n]""")
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
