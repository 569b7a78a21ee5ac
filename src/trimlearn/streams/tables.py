"""Tables that Arrow reads: Parquet, Arrow files and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trimlearn.streams.csv import CsvForm, csv_kinds, csv_names, reads_as_number
from trimlearn.streams.layout import MatrixColumns, SourceColumn, categories_in, is_categorical, is_decimal
from trimlearn.streams.pieces import Piece, naming, some, target_dtype, whole, working_dtype
from trimlearn.streams.table_pieces import (
    ArrowPiece,
    ArrowStreamPiece,
    CsvPiece,
    HeldPiece,
    ParquetPiece,
    TablePiece,
    arrow_stream,
)

TABLES = (".parquet", ".arrow", ".feather", ".csv")  # the kinds of files, after `trimlearn.streams.open.kind_of`
ARROW = b"ARROW1"  # with which an Arrow file begins, and a stream does not: Arrow's columnar format, "IPC File Format"
MANY = 1000  # categories of a column: more are names or numbers of rows, and a limit on memory (a choice)
SCANNED = 1 << 16  # rows at a time when categories are looked for: a limit on memory, some MB of text


def table_pieces(
    files: Sequence[str], kind: str, target: Any, columns: Any, dtype: Any, like: MatrixColumns | None
) -> tuple[list[TablePiece], MatrixColumns]:
    """The pieces of tables with the same columns, and their layout; ``like``: one that is known."""
    written = _written(files) if kind == ".csv" else None
    pieces = some([piece for file in files for piece in _pieces(file, kind, files[0], written)], files)
    return pieces, _layout_of(pieces, target, columns, dtype, like)


def held_pieces(
    table: Any, target: Any, columns: Any, dtype: Any, like: MatrixColumns | None
) -> tuple[list[Piece], MatrixColumns]:
    """The same of a table that is in memory."""
    if not table.num_rows:
        raise ValueError("source is a table without rows.")
    pieces = [HeldPiece(table)]
    return [*pieces], _layout_of(pieces, target, columns, dtype, like)


def _layout_of(
    pieces: Sequence[TablePiece], target: Any, columns: Any, dtype: Any, like: MatrixColumns | None
) -> MatrixColumns:
    schema = pieces[0].schema()
    if like is not None:
        layout = like
        if layout.target is not None and layout.target not in schema.names:
            layout = replace(layout, target=None)
        wanted = layout.columns
    else:
        wanted = _wanted(schema, pieces[0].file, target, columns)
        layout = _layout(pieces, schema, target, wanted, dtype)
    _check_alike(pieces, schema, wanted, every=columns is None and like is None)
    return layout


def _written(files: Sequence[str]) -> tuple[Any, CsvForm]:
    """The columns and the form of CSV files, by the first that has rows: without any, a column is of no type."""
    found = None
    for file in files:
        with naming(file):
            found = csv_kinds(file)
        if not all(str(kind) == "null" for kind in found[0].types):
            break
    assert found is not None, "there is a file"
    return found


def _pieces(file: str, kind: str, first: str, written: tuple[Any, CsvForm] | None) -> list[TablePiece]:
    with naming(file):
        if kind == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(file) as opened:
                groups = [opened.metadata.row_group(g).num_rows for g in range(opened.metadata.num_row_groups)]
            return [ParquetPiece(file, g, rows) for g, rows in enumerate(groups) if rows]
        if written is not None:
            return _csv_pieces(file, first, *written)
        import pyarrow as pa

        with pa.memory_map(file) as mapped:
            if mapped.read(len(ARROW)) != ARROW:  # it may be a stream, which is read from its beginning
                return [ArrowStreamPiece(file, rows)] if (rows := sum(b.num_rows for b in arrow_stream(file))) else []
            opened = pa.ipc.open_file(mapped)
            batches = [opened.get_batch(k).num_rows for k in range(opened.num_record_batches)]
        return [ArrowPiece(file, k, rows) for k, rows in enumerate(batches) if rows]


def _csv_pieces(file: str, first: str, kinds: Any, form: CsvForm) -> list[TablePiece]:
    """One for a file, whose rows are counted."""
    import pyarrow as pa

    own = csv_names(file, form)
    if sorted(own) != sorted(kinds.names):
        raise ValueError(f"{file} has the columns {own}, and {first} has {kinds.names}: write them alike.")
    with form.opened(file, {own[0]: pa.string()}) as reader:
        rows = sum(batch.num_rows for batch in reader)
    return [CsvPiece(file, rows, kinds, form)] if rows else []


def _wanted(schema: Any, file: str, target: Any, columns: Any) -> list[str]:
    """The names of the columns to read, the target's last."""
    if target is not None and not isinstance(target, str):
        raise ValueError(f"target must be the name of a column of {file}, got {target!r}.")
    features = [name for name in schema.names if name != target and not _is_index(name)]
    features = features if columns is None else list(columns)
    if not features:
        raise ValueError(f"{file} has no columns but the target; X must have at least one.")
    wanted = features + ([] if target is None else [target])
    if len(set(schema.names)) < len(schema.names):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise ValueError(f"{file} has several columns called {twice[0]!r}: rename them.")
    for name in wanted:
        if name not in schema.names:
            raise ValueError(f"{file} has no column {name!r}; it has {', '.join(schema.names[:20])}.")
    if target is not None and target in features:
        raise ValueError(f"columns names the target {target!r}: leave it out.")
    return wanted


def _is_index(name: str) -> bool:
    """Whether a column is what pandas writes of an index without a name: row numbers, as a rule, and no feature."""
    return name == "" or (name.startswith("__index_level_") and name.endswith("__"))


def _check_alike(pieces: Sequence[TablePiece], schema: Any, wanted: list[str], every: bool) -> None:
    """All files have the columns wanted, of the same types; and no others, where nobody said which."""
    seen = {pieces[0].file}
    for piece in pieces:
        if piece.file in seen:
            continue
        seen.add(piece.file)
        found = piece.schema()
        for name in wanted:
            if name not in found.names:
                raise ValueError(f"{piece.file} has no column {name!r}, and {pieces[0].file} has: write them alike.")
            mine, first = found.field(name).type, schema.field(name).type
            if mine != first and not (is_categorical(mine) and is_categorical(first)):
                raise ValueError(f"{piece.file}, column {name!r} holds {mine}, and {pieces[0].file} holds {first}.")
        more = set(found.names) - set(schema.names)
        if every and more:
            raise ValueError(
                f"{piece.file} has a column {sorted(more)[0]!r}, and {pieces[0].file} has not: name those to use by "
                "columns=."
            )


def _layout(pieces: Sequence[TablePiece], schema: Any, target: Any, wanted: list[str], dtype: Any) -> MatrixColumns:
    text = [name for name in wanted if is_categorical(schema.field(name).type)]
    found: dict[str, set[Any]] = {name: set() for name in text}
    for piece in pieces if text else ():
        with naming(piece.place):
            categories_in(piece.batches(text, SCANNED), text, piece.place, found)
        for name in text:
            if len(found[name]) > MANY:
                _refuse_many(pieces, piece, name, found[name])
    known = {name: tuple(sorted(values)) for name, values in found.items()}
    features = tuple(SourceColumn(name, known.get(name)) for name in wanted if name != target)
    kinds = [np.dtype(np.int8) if f.column in known else _kind(schema, str(f.column), pieces[0].file) for f in features]
    dtype = working_dtype(kinds) if dtype is None else dtype
    classes = known.get(target)
    of_target = np.dtype(np.int8) if classes is not None or target is None else _kind(schema, target, pieces[0].file)
    written = None if classes is not None or target is None else whole(of_target)
    return MatrixColumns(features, target, classes, dtype, target_dtype(of_target, dtype), named=True, written=written)


def _refuse_many(pieces: Sequence[TablePiece], last: TablePiece, name: str, values: set[str]) -> None:
    """ValueError for a column of too many categories, as was seen in the last piece; where most of its values are
    numbers, for the first that is none."""
    texts = {value for value in values if not reads_as_number(value)}
    if texts and len(texts) < len(values) / 2:
        place, row, value = next(_cells(pieces, name, texts))
        raise ValueError(
            f"{place}, row {row}, column {name!r} holds {value!r}, and most rows hold numbers there: mend it, drop the "
            "row, or leave the column out by columns=."
        )
    raise ValueError(
        f"{last.place}, column {name!r} has more than {MANY} categories: leave it out by columns=, or group them."
    )


def _cells(pieces: Sequence[TablePiece], name: str, texts: set[str]) -> Iterator[tuple[str, int, str]]:
    """Where a column holds one of the texts: the place, the row there, and the text."""
    for piece in pieces:
        row = 0
        for batch in piece.batches([name], SCANNED):
            for value in batch.column(name).cast("string").to_pylist():
                if value in texts:
                    yield piece.place, row, value
                row += 1


def _kind(schema: Any, name: str, file: str) -> np.dtype[Any]:
    """The NumPy type of a column of numbers."""
    import pyarrow as pa

    kind = schema.field(name).type
    if is_decimal(kind, name, file):
        return np.dtype(np.float64)
    return np.dtype(np.bool_) if pa.types.is_boolean(kind) else np.dtype(kind.to_pandas_dtype())
