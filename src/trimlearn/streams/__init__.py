"""Data larger than memory: files read piece by piece, and a shuffled copy of them in row blocks."""

from trimlearn.streams.copy import ShuffledCopy
from trimlearn.streams.dataset import Dataset
from trimlearn.streams.open import open_dataset

__all__ = ["Dataset", "ShuffledCopy", "open_dataset"]
