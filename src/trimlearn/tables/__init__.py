"""Tables as people have them: read from files, their columns understood, and written again."""

from __future__ import annotations

from trimlearn.tables.images import ImageTable, read_images
from trimlearn.tables.read import read_table
from trimlearn.tables.table import Column, Table
from trimlearn.tables.write import write_csv

__all__ = ["Column", "ImageTable", "Table", "read_images", "read_table", "write_csv"]
