"""Data larger than memory: files read piece by piece, and copies of them, in order or shuffled in row blocks."""

from trimlearn.streams.copy import OrderedCopy, ShuffledCopy
from trimlearn.streams.dataset import Dataset
from trimlearn.streams.open import open_dataset

__all__ = ["Dataset", "OrderedCopy", "ShuffledCopy", "open_dataset"]
