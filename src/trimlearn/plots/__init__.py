"""Pictures of what a trimmed fit found. They need matplotlib, and take and return its Axes."""

from trimlearn.plots.convergence import plot_convergence
from trimlearn.plots.courses import plot_forward_search, plot_trim_path
from trimlearn.plots.distances import plot_distances, plot_qq
from trimlearn.plots.images import plot_gallery, plot_matches
from trimlearn.plots.matrices import plot_cell_map, plot_noise_matrix
from trimlearn.plots.models import plot_biplot, plot_coefficients
from trimlearn.plots.residuals import plot_outlier_map, plot_residuals, plot_scores

__all__ = [
    "plot_biplot",
    "plot_cell_map",
    "plot_coefficients",
    "plot_convergence",
    "plot_distances",
    "plot_forward_search",
    "plot_gallery",
    "plot_matches",
    "plot_noise_matrix",
    "plot_outlier_map",
    "plot_qq",
    "plot_residuals",
    "plot_scores",
    "plot_trim_path",
]
