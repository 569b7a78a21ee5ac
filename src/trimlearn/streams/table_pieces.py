"""Pieces of tables that Arrow reads: row groups of Parquet, batches of Arrow, CSV files, tables in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from trimlearn.streams.csv import CsvForm
from trimlearn.streams.layout import MatrixColumns
from trimlearn.streams.pieces import Block, Piece

BUFFER = 1 << 20  # bytes of a column of Parquet that are held: else all of it in a row group, which may be the file


class TablePiece(Piece):
    """Rows of a table with named columns, read by Arrow."""

    file: str

    @abstractmethod
    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        """Record batches with these columns."""

    @abstractmethod
    def schema(self) -> Any:
        """The columns of the file, and their types."""

    @final
    def _blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        first = 0
        for batch in self.batches(layout.columns, size):
            for start in range(0, batch.num_rows, size):
                part = batch.slice(start, size)
                yield layout.of_table(part, self.place, first)
                first += part.num_rows


@final
@dataclass(frozen=True)
class ParquetPiece(TablePiece):
    """A row group of a Parquet file."""

    file: str
    group: int
    rows: int

    @property
    def place(self) -> str:
        return f"{self.file}, row group {self.group}"

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.file, buffer_size=BUFFER) as opened:
            yield from opened.iter_batches(size, row_groups=[self.group], columns=columns)

    def schema(self) -> Any:
        import pyarrow.parquet as pq

        return pq.read_schema(self.file)


@final
@dataclass(frozen=True)
class ArrowPiece(TablePiece):
    """A record batch of an Arrow (Feather) file, which is mapped into memory."""

    file: str
    number: int
    rows: int

    @property
    def place(self) -> str:
        return f"{self.file}, batch {self.number}"

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        import pyarrow as pa

        with pa.memory_map(self.file) as mapped:
            yield pa.ipc.open_file(mapped).get_batch(self.number).select(columns)

    def schema(self) -> Any:
        import pyarrow as pa

        with pa.memory_map(self.file) as mapped:
            return pa.ipc.open_file(mapped).schema


@final
@dataclass(frozen=True)
class CsvPiece(TablePiece):
    """A CSV file; its columns hold what the first rows of the first file do, as the types of ``kinds`` say."""

    file: str
    rows: int
    kinds: Any
    form: CsvForm

    @property
    def place(self) -> str:
        return self.file

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        types = {name: self.kinds.field(name).type for name in columns}
        with self.form.opened(self.file, types) as reader:
            yield from reader

    def schema(self) -> Any:
        return self.kinds


@final
@dataclass(frozen=True)
class ArrowStreamPiece(TablePiece):
    """A file in Arrow's format for streams, which is read from its beginning."""

    file: str
    rows: int

    @property
    def place(self) -> str:
        return self.file

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        for batch in arrow_stream(self.file):
            yield batch.select(columns)

    def schema(self) -> Any:
        import pyarrow as pa

        with pa.memory_map(self.file) as mapped, pa.ipc.open_stream(mapped) as reader:
            return reader.schema


def arrow_stream(file: str) -> Iterator[Any]:
    """The record batches of a file in Arrow's format for streams."""
    import pyarrow as pa

    with pa.memory_map(file) as mapped, pa.ipc.open_stream(mapped) as reader:
        yield from reader


@final
@dataclass(frozen=True, eq=False)
class HeldPiece(TablePiece):
    """A table that is in memory."""

    table: Any
    file: str = "the table"

    @property
    def rows(self) -> int:  # type: ignore[override]
        return int(self.table.num_rows)

    @property
    def place(self) -> str:
        return self.file

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        yield from self.table.select(columns).to_batches(max_chunksize=size)

    def schema(self) -> Any:
        return self.table.schema
