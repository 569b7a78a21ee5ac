"""The pictures of docs/plots.md: every function of `trimlearn.plots`, on data that come with the package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trimlearn import (
    CellwiseOutliers,
    TrimmedCovariance,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    TrimmedPCA,
    forward_search,
    plots,
    trim_path,
)
from trimlearn.datasets import load_digits_contaminated, load_judges

__all__ = ["PICTURES", "diabetes", "draw_plots", "judges"]

SMALL, FLAT, BROAD = (5.4, 3.9), (5.4, 3.2), (10.0, 3.2)
DPI = 90
COLOURS = 128  # in a file: enough for lines and letters, a third of the size


@cache
def judges() -> Any:
    """The ratings of 43 judges, by name."""
    import pandas as pd

    table = load_judges()
    return pd.DataFrame(table.data, columns=table.feature_names, index=[_name(name) for name in table.names])


def _name(name: str) -> str:
    return name.replace(",", ".").split(".")[0].title()


@cache
def diabetes() -> tuple[Any, np.ndarray]:
    """442 patients; of the last 22 (5 %) the progress of the disease was written down with a digit too many, and two of
    these have a body mass index out of range as well."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = y.to_numpy(copy=True)
    X, y[-22:] = X.copy(), 10 * y[-22:]
    X.loc[X.index[-2:], "bmi"] *= 10
    return X.rename(index=lambda i: f"patient {i}"), y


@cache
def _pca() -> TrimmedPCA:
    return TrimmedPCA(2, random_state=0).fit(judges())


@cache
def _regression() -> TrimmedLinearRegression:
    return TrimmedLinearRegression(random_state=0).fit(*diabetes())


@cache
def _digits() -> TrimmedLogisticRegression:
    digits = load_digits_contaminated(fraction=0.2)
    return TrimmedLogisticRegression(random_state=0).fit(digits.X, digits.y)


def _cells(ax: Any) -> None:
    table = judges().copy()
    for row, column, factor in ((3, 2, 0.1), (10, 6, 10), (17, 8, 0.5), (25, 4, 10), (31, 11, 0.1), (40, 1, 0.5)):
        table.iloc[row, column] *= factor
    plots.plot_cell_map(CellwiseOutliers().fit(table), rows=12, ax=ax)


def _matches(ax: Any) -> None:
    """Two views of a sheet of handwritten digits; in the second, the lower rows are other digits that look alike."""
    import cv2

    from trimlearn.geometry import TrimmedHomography, match_images

    X = load_digits_contaminated(fraction=0.0).X[:90].reshape(9, 10, 8, 8)
    first, second = (_sheet(X[rows]) for rows in (range(6), [0, 1, 2, 6, 7, 8]))
    H = np.array([[0.93, 0.09, 0.0], [-0.07, 0.95, 40.0], [1e-4, 5e-5, 1.0]])
    second = cv2.warpPerspective(second, H, (600, 360), borderValue=255)
    found = match_images(first, second, ratio=1.0, max_features=150)
    plots.plot_matches(TrimmedHomography().fit(*found), images=[first, second], ax=ax)


def _sheet(X: np.ndarray) -> np.ndarray:
    import cv2

    page = (255 - 255 * np.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1)))).transpose(0, 2, 1, 3).reshape(60, 100)
    return np.asarray(cv2.resize(page.astype(np.uint8), (600, 360), interpolation=cv2.INTER_CUBIC))


Draw = Callable[[Any], object]
PICTURES: dict[str, tuple[tuple[float, float], int, Draw]] = {  # size, panels, how
    "outlier_map": (SMALL, 1, lambda ax: plots.plot_outlier_map(_regression(), ax=ax)),
    "scores": (SMALL, 1, lambda ax: plots.plot_scores(_regression(), ax=ax)),
    "residuals": (SMALL, 1, lambda ax: plots.plot_residuals(_regression(), ax=ax)),
    "coefficients": (FLAT, 1, lambda ax: plots.plot_coefficients(_regression(), ax=ax)),
    "qq": (SMALL, 1, lambda ax: plots.plot_qq(_pca(), ax=ax)),
    "biplot": (SMALL, 1, lambda ax: plots.plot_biplot(_pca(), label=4, ax=ax)),
    "distances": (SMALL, 1, lambda ax: plots.plot_distances(_covariance(), ax=ax)),
    "noise_matrix": (SMALL, 1, lambda ax: plots.plot_noise_matrix(_digits(), ax=ax)),
    "gallery": (FLAT, 1, lambda ax: plots.plot_gallery(_digits(), ax=ax)),
    "convergence": (SMALL, 1, lambda ax: plots.plot_convergence(_digits(), ax=ax)),
    "cell_map": (SMALL, 1, _cells),
    "matches": ((6.0, 2.3), 1, _matches),
    "trim_path": (BROAD, 3, lambda ax: plots.plot_trim_path(_path(), ax=ax)),
    "forward_search": (BROAD, 2, lambda ax: plots.plot_forward_search(_search(), ax=ax)),
}


def _covariance() -> TrimmedCovariance:
    return TrimmedCovariance(random_state=0).fit(judges().iloc[:, :5])


def _path() -> Any:
    return trim_path(TrimmedLinearRegression(random_state=0), judges()[["INTG", "DILG", "PHYS"]], judges()["RTEN"])


def _search() -> Any:
    return forward_search(judges()[["INTG", "DILG", "PHYS"]], judges()["RTEN"])


def draw_plots(folder: Path) -> None:
    """A small file for each: plot_scores.png, …"""
    from io import BytesIO

    from matplotlib.figure import Figure
    from PIL import Image

    for name, (size, panels, draw) in PICTURES.items():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(1, panels))
        path, drawn = folder / f"plot_{name}.png", BytesIO()
        figure.savefig(drawn, dpi=DPI)
        Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        print("wrote", path.name)
