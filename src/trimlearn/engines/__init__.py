"""Where the n examples live."""

from trimlearn.engines.base import Counts, Engine
from trimlearn.engines.local import LocalEngine

__all__ = ["Counts", "Engine", "LocalEngine"]
