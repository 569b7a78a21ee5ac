"""Features of images, as columns of the table that labels them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trimlearn.tables.table import Column, Table

if TYPE_CHECKING:
    from trimlearn.tables.images import ImageTable

PER_COMPONENT = 10  # images for each component: ten rows a coefficient, as the design of tables has it
COMPONENTS = 40  # principal components; with 40 of 64 pixels nearest neighbours tell scikit-learn's digits as with all


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
