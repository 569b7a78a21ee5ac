"""Data to try trimmed estimators on: bundled, made dirty on purpose, or looked up where it was put.

What is not bundled (MNIST, the classic robust-statistics tables, photographs) is looked up in ``data_home``, then in
``$TRIMLEARN_DATA``, then in the user's cache; MNIST is fetched from OpenML where there is a network.
"""

from trimlearn.datasets.labels import ContaminatedDigits, load_digits_contaminated, shift_labels
from trimlearn.datasets.mnist import load_mnist
from trimlearn.datasets.penguins import DirtyTable, load_penguins_dirty
from trimlearn.datasets.photos import find_photos, load_oxford_pair
from trimlearn.datasets.tables import NamedNumbers, load_classic, load_judges

__all__ = [
    "ContaminatedDigits",
    "DirtyTable",
    "NamedNumbers",
    "find_photos",
    "load_classic",
    "load_digits_contaminated",
    "load_judges",
    "load_mnist",
    "load_oxford_pair",
    "load_penguins_dirty",
    "shift_labels",
]
