"""`python -m benchmarks.pictures`: docs/img."""

from __future__ import annotations

from pathlib import Path

from benchmarks.pictures.cells import draw_cells, draw_forward_search
from benchmarks.pictures.covariance import draw_covariance, draw_graphical_lasso
from benchmarks.pictures.house import draw_house
from benchmarks.pictures.pca import draw_pca
from benchmarks.pictures.plots import draw_plots
from benchmarks.pictures.predictors import draw_glm, draw_linear, draw_logistic
from benchmarks.pictures.wrapper import draw_outlier_map, draw_path, draw_wrapper

FOLDER = Path(__file__).parents[2] / "docs" / "img"
PICTURES = [
    draw_cells,
    draw_covariance,
    draw_forward_search,
    draw_glm,
    draw_graphical_lasso,
    draw_linear,
    draw_logistic,
    draw_outlier_map,
    draw_path,
    draw_pca,
    draw_wrapper,
]

if __name__ == "__main__":
    draw_house(FOLDER / "house.svg")  # of text and boxes
    for draw in PICTURES:
        path = FOLDER / f"{draw.__name__.removeprefix('draw_')}.png"
        draw(path)
        print("wrote", path.name)
    draw_plots(FOLDER)
