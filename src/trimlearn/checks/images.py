"""A check of images: their labels are judged by features of the pixels, as those of a table are by its columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trimlearn.checks.duplicates import find_duplicates
from trimlearn.checks.findings import CellFindings, Task
from trimlearn.checks.heard import heard
from trimlearn.checks.parts import Parts, Pins, Progress
from trimlearn.checks.target import judge_target
from trimlearn.tables.table import Column, Table

if TYPE_CHECKING:
    from trimlearn.tables.images import ImageTable

__all__ = ["image_parts", "with_features"]

PER_COMPONENT = 10  # images for each component: ten rows a coefficient, as the design of tables has it
COMPONENTS = 40  # principal components; with 40 of 64 pixels nearest neighbours tell scikit-learn's digits as with all


def image_parts(
    images: ImageTable, table: Table, *, task: Task | None, pins: Pins, seed: int, progress: Progress
) -> Parts:
    """Judge the labels in ``table``, that of ``images`` or one with a person's decisions in it."""
    warned: list[str] = []
    with heard(warned, "the fits"):
        progress("looking at the pixels")
        wide = with_features(images, table, seed)
        progress("judging the labels by two models")
        judged = judge_target(
            wide, wide.frame, images.label, task=task, pinned=dict(pins.rows), seed=seed, progress=progress
        )
        progress("looking for images that occur twice")
        duplicates = find_duplicates(wide, wide.frame, images.label)
    cells = CellFindings((), wide.frame, {})
    return Parts(table, cells, judged, None, tuple(duplicates), tuple(warned), wide)


def with_features(images: ImageTable, table: Table, seed: int) -> Table:
    """The table with one more column for each principal component of the pixels."""
    import pandas as pd
    from sklearn.decomposition import PCA

    X = np.asarray(images.pixels, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise ValueError(f"features: row {bad[0]} holds a value that is no number; {len(bad):,} rows are like that.")
    k = min(COMPONENTS, X.shape[1], max(2, len(X) // PER_COMPONENT), len(X) - 1)
    Z = PCA(k, random_state=seed).fit_transform(X)
    names = [f"component {j + 1}" for j in range(k)]
    features = pd.DataFrame(Z, columns=names)
    written = features.astype(str)
    return replace(
        table,
        frame=pd.concat([table.frame, features], axis=1),
        written=pd.concat([table.written, written], axis=1),
        columns=(*table.columns, *(Column(name, "number", "a principal component of the pixels") for name in names)),
    )
