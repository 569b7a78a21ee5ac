"""How a CSV file is written: what stands between its columns, and in its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

COMPRESSED = (".gz", ".bz2", ".zst")  # how a compressed file of text may end: pyarrow.csv.open_csv unpacks these
DELIMITERS = (",", ";", "\t", "|")  # that are looked for in the first line, the first of them where there is none
HEADER = 1 << 20  # bytes of a first line at most: a limit on memory


@final
@dataclass(frozen=True)
class CsvForm:
    """What stands between columns, and before the decimals of a number."""

    delimiter: str
    point: str

    def opened(self, file: str, types: dict[str, Any] | None = None) -> Any:
        """A reader of a file; types: the columns to read, and as what. None: all, as they look."""
        import pyarrow.csv as csv

        parse = csv.ParseOptions(delimiter=self.delimiter)
        if types is None:
            convert = csv.ConvertOptions(decimal_point=self.point)
        else:
            convert = csv.ConvertOptions(column_types=types, include_columns=list(types), decimal_point=self.point)
        return csv.open_csv(file, parse_options=parse, convert_options=convert)


def csv_kinds(file: str) -> tuple[Any, CsvForm]:
    """The columns of a file and their types, by its first rows, and how it is written.

    Whole numbers may go on as others: all numbers are float64. Decimals stand behind a comma where more columns are
    numbers then.
    """
    import pyarrow as pa

    line = _first_line(file)
    delimiter = max(DELIMITERS, key=line.count)
    names = [name.strip().strip('"') for name in line.split(delimiter)]
    if all(map(reads_as_number, names)) and any("." in name for name in names):  # 0, 1, 2 ... may be names
        raise ValueError("its first line holds numbers, which would be lost: write the names of the columns there")
    schemas = {}
    for point in (".",) if delimiter == "," else (".", ","):
        with CsvForm(delimiter, point).opened(file) as reader:
            schemas[point] = reader.schema
    point = max(schemas, key=lambda point: sum(pa.types.is_floating(kind) for kind in schemas[point].types))
    fields = [
        pa.field(field.name, pa.float64() if pa.types.is_integer(field.type) else field.type)
        for field in schemas[point]
    ]
    return pa.schema(fields), CsvForm(delimiter, point)


def csv_names(file: str, form: CsvForm) -> list[str]:
    """The columns of a file."""
    with form.opened(file) as reader:
        return list(reader.schema.names)


def _first_line(file: str) -> str:
    """The line with the names, as far as it goes."""
    import pyarrow as pa

    with pa.input_stream(file) as opened:  # which unpacks what its name says is packed, as open_csv does
        start = opened.read(HEADER)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError("it is written in UTF-16: save it as UTF-8")
    try:
        return str(start.splitlines()[0].decode("utf-8-sig")) if start else ""
    except UnicodeDecodeError:
        raise ValueError("the names of its columns are not written in UTF-8: save it as UTF-8") from None


def reads_as_number(name: str) -> bool:
    """Whether a text is a number.

    >>> reads_as_number("-1e3"), reads_as_number("n/k")
    (True, False)
    """
    try:
        float(name)
    except ValueError:
        return False
    return True
